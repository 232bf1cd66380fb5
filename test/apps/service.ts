import { createSandbox, type SandboxOptions } from 'gen-client/sandbox';
import { vi } from 'vitest';

/** Creates a sandbox that `new GenClient()` uses, through the environment and the global fetch. */
export function serveApps(options: SandboxOptions = {}) {
  const sandbox = createSandbox(options);
  vi.stubEnv('GEN_API_KEY', sandbox.apiKey);
  vi.stubEnv('GEN_BASE_URL', sandbox.baseUrl);
  vi.stubEnv('GEN_WEBHOOK_SECRET', sandbox.webhookSecret);
  const { fetch } = globalThis;
  vi.stubGlobal('fetch', (input: RequestInfo | URL, init?: RequestInit) => {
    const request = new Request(input, init);
    return request.url.startsWith(sandbox.baseUrl) ? sandbox.fetch(request) : fetch(request);
  });
  return sandbox;
}

/** Restores the environment and the global fetch. */
export function stopServing(): void {
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
}
