// Programs that start many calls at once and rely on the client's rate limits.
import { expect, it, vi } from 'vitest';
import { GenClient } from '../../src/client/client.js';
import type { ClientOptions } from '../../src/index.js';
import { DOCUMENTED_LIMITS } from '../../src/rules/limits.js';
import { createSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { advanceUntil } from '../support/advance-until.js';
import { fakeTimers } from '../support/fake-timers.js';

const { limit: LIMIT } = DOCUMENTED_LIMITS['videos.create'];

/** Creates a client on the program's clock, unlike `sandbox.client()`. */
const clientOf = ({ apiKey, baseUrl, fetch }: Sandbox, options: ClientOptions = {}) =>
  new GenClient({ apiKey, baseUrl, fetch, ...options });

fakeTimers();

it('creates 500 videos with one Promise.all under the documented limits', async () => {
  const sandbox = createSandbox({ jobDurationMs: [20_000, 90_000], balanceTokens: 100_000 });
  const client = clientOf(sandbox);
  const start = Date.now();
  const prompts = Array.from({ length: 500 }, (_, at) => `fox ${at}`);
  const jobs = await advanceUntil(Promise.all(prompts.map((prompt) => client.videos.createAndWait({ prompt }))));
  expect(jobs.map(({ status }) => status)).toEqual(prompts.map(() => 'completed'));
  expect(new Set(jobs.map(({ id }) => id)).size).toBe(500);
  expect(sandbox.requests.filter(({ status }) => status === 429)).toEqual([]);
  // The last job ends within two minutes after its create.
  const windows = Math.ceil(500 / LIMIT);
  expect(Date.now() - start).toBeLessThan(((windows - 1) * 60_000) / 0.95 + 120_000);
  expect(client.limits()['videos.create']?.queued).toBe(0);
}, 60_000);

it('reports why calls wait, and applies one limit to two clients of an account', async () => {
  const sandbox = createSandbox({ balanceTokens: 100_000 });
  const onWait = vi.fn();
  const first = clientOf(sandbox);
  const second = clientOf(sandbox, { hooks: { onWait } });
  const creates = Promise.all(
    [first, second].flatMap((client) =>
      Array.from({ length: LIMIT - 5 }, () => client.videos.create({ prompt: 'fox' })),
    ),
  );
  await vi.advanceTimersByTimeAsync(100);
  const limit = second.limits()['videos.create'];
  expect(limit).toEqual({ limit: LIMIT, windowMs: 60_000, free: 0, queued: LIMIT - 10, pausedMs: 0 });
  await advanceUntil(creates);
  expect(sandbox.requests.filter(({ status }) => status === 429)).toEqual([]);
  // The first client's calls and five of the second's were sent immediately.
  expect(onWait).toHaveBeenCalledTimes(LIMIT - 10);
  expect(onWait.mock.calls[0]?.[0]).toMatchObject({ limit: 'videos.create', reason: 'limit', queued: 1 });
});

it('leaves slots for jobs.get calls while 200 waits poll at the full rate', async () => {
  const sandbox = createSandbox({
    jobDurationMs: 600_000,
    balanceTokens: 100_000,
    limits: { 'jobs.get': { limit: 120, windowMs: 60_000 } },
  });
  const client = clientOf(sandbox);
  const jobs = await advanceUntil(
    Promise.all(Array.from({ length: 200 }, () => client.images.create({ prompt: 'fox' }))),
    10,
  );
  const abort = new AbortController();
  const waits = jobs.map(({ job }) => client.waitForJob(job, { signal: abort.signal }).catch(() => {}));
  await vi.advanceTimersByTimeAsync(180_000);
  const earlierPolls = sandbox.requests.filter(({ method }) => method === 'GET').length;
  const start = Date.now();
  // The caller polls twelve times a minute.
  for (let poll = 0; poll < 12; poll++) {
    await advanceUntil(client.jobs.get(jobs[poll]!.job.id), 10);
    await vi.advanceTimersByTimeAsync(5000);
  }
  expect(Date.now() - start).toBeLessThan(12 * 5000 + 3000);
  expect(sandbox.requests.filter(({ method }) => method === 'GET').length - earlierPolls).toBeGreaterThan(100);
  expect(sandbox.requests.filter(({ status }) => status === 429)).toEqual([]);
  abort.abort();
  await Promise.all(waits);
});
