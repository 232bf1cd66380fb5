import { createSandbox, type SandboxOptions } from 'gen-client/sandbox';
import { vi } from 'vitest';

/** Starts a sandbox that `new GenClient()` reaches through the environment and the global fetch. */
export function serveApps(options: SandboxOptions = {}) {
  const sandbox = createSandbox(options);
  vi.stubEnv('GEN_API_KEY', sandbox.apiKey);
  vi.stubEnv('GEN_BASE_URL', sandbox.baseUrl);
  vi.stubEnv('GEN_WEBHOOK_SECRET', sandbox.webhookSecret);
  const { fetch } = globalThis;
  vi.stubGlobal('fetch', (input: RequestInfo | URL, init?: RequestInit) => {
    const requested = new Request(input, init);
    return requested.url.startsWith(sandbox.baseUrl) ? sandbox.fetch(requested) : fetch(requested);
  });
  return sandbox;
}
