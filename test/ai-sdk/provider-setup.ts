import { GenClient } from 'gen-client';
import { createGen, type GenProvider } from 'gen-client/ai-sdk';
import { createSandbox, type Sandbox, type SandboxOptions } from 'gen-client/sandbox';

Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false });

/** Creates a provider on a new sandbox with short jobs. */
export function providerOnSandbox(options: SandboxOptions = {}): {
  sandbox: Sandbox;
  client: GenClient;
  gen: GenProvider;
} {
  const sandbox = createSandbox({ jobDurationMs: 20, limits: 'off', ...options });
  const { apiKey, baseUrl, fetch } = sandbox;
  const client = new GenClient({ apiKey, baseUrl, fetch, rateLimit: 'off', maxRetries: 5 });
  return { sandbox, client, gen: createGen({ client }) };
}

/** A short poll interval, for fast tests. */
export const QUICK = { gen: { pollIntervalMs: 5 } };

/** Returns the bodies of a sandbox's creates at a path. */
export function createsOf(sandbox: Sandbox, path: string): readonly Record<string, unknown>[] {
  return sandbox.requests
    .filter((request) => request.method === 'POST' && request.path === path)
    .map((request) => JSON.parse(request.body ?? '{}'));
}
