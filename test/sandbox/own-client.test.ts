// An app that creates its own client doesn't use the sandbox's clock.
import { afterEach, expect, test, vi } from 'vitest';
import { GenClient } from '../../src/client/client.js';
import { createSandbox } from '../../src/sandbox/index.js';

/** An app that creates its own client and waits for a job. */
const app = (client: GenClient) => client.videos.createAndWait({ prompt: 'a fox at dawn' });

afterEach(() => vi.useRealTimers());

test('with jobDurationMs: 0, a job ends within its create, so its wait needs no poll and no timer', async () => {
  const sandbox = createSandbox({ jobDurationMs: 0 });
  const client = new GenClient({ apiKey: sandbox.apiKey, baseUrl: sandbox.baseUrl, fetch: sandbox.fetch });
  const started = performance.now();
  expect((await app(client)).status).toBe('completed');
  expect(performance.now() - started).toBeLessThan(8_000);
  expect(sandbox.requests.map(({ method, path }) => `${method} ${path}`)).toEqual(['POST /v1/videos']);
});

test('a wait follows fake timers, through processing', async () => {
  vi.useFakeTimers();
  const sandbox = createSandbox();
  const client = new GenClient({ apiKey: sandbox.apiKey, baseUrl: sandbox.baseUrl, fetch: sandbox.fetch });
  const waiting = app(client);
  await vi.advanceTimersByTimeAsync(60_000);
  expect((await waiting).status).toBe('completed');
});
