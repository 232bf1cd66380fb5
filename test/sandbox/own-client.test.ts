// Tests of an app that makes its own client, which does not take its time from the sandbox.
import { afterEach, describe, expect, test, vi } from 'vitest';
import { GenClient } from '../../src/client/client.js';
import { createSandbox, type SandboxOptions } from '../../src/sandbox/index.js';

/** An app that makes its own client and waits for a job. */
const app = (client: GenClient) => client.videos.createAndWait({ prompt: 'a fox at dawn' });

afterEach(() => vi.useRealTimers());

describe('with Date alone faked', () => {
  /** A sandbox that was loaded before the fake, and a client of the app whose waits take no time. */
  const frozen = async (options: SandboxOptions = {}) => {
    let passed = 0;
    vi.resetModules();
    vi.stubGlobal('performance', { now: () => passed });
    const { createSandbox: load } = await import('../../src/sandbox/index.js');
    vi.unstubAllGlobals();
    vi.useFakeTimers({ toFake: ['Date'] });
    const { apiKey, baseUrl, fetch, client } = load(options);
    const own = new GenClient({ apiKey, baseUrl, fetch });
    return { own, client, pass: (ms: number) => (passed += ms) };
  };

  test('a read of a job that can never end says so', async () => {
    const { own, pass } = await frozen();
    const { job } = await own.videos.create({ prompt: 'a fox at dawn' });
    pass(1900);
    expect((await own.jobs.get(job.id)).status).toBe('processing');
    pass(200);
    await expect(own.jobs.get(job.id)).rejects.toThrow('Date is faked and setTimeout is not');
    await expect(own.waitForJob(job.id)).rejects.toMatchObject({ status: 400 });
  });

  test('a Date that the test moves is the time of the sandbox', async () => {
    const { own, pass } = await frozen();
    const { job } = await own.videos.create({ prompt: 'a fox at dawn' });
    pass(60_000);
    vi.setSystemTime(Date.now() + 60_000);
    expect((await own.jobs.get(job.id)).status).toBe('completed');
  });

  test('waits of sandbox.client(), and jobs that end at once, need no Date', async () => {
    const { client, pass } = await frozen();
    pass(60_000);
    expect((await app(client())).status).toBe('completed');
    const { own } = await frozen({ jobDurationMs: 0 });
    expect((await app(own)).status).toBe('completed');
  });
});

test('jobDurationMs: 0 ends a job before its create is answered, so its wait needs neither a read nor a timer', async () => {
  const sandbox = createSandbox({ jobDurationMs: 0 });
  const client = new GenClient({ apiKey: sandbox.apiKey, baseUrl: sandbox.baseUrl, fetch: sandbox.fetch });
  const started = performance.now();
  expect((await app(client)).status).toBe('completed');
  expect(performance.now() - started).toBeLessThan(8_000);
  expect(sandbox.requests.map(({ method, path }) => `${method} ${path}`)).toEqual(['POST /v1/videos']);
});

test('under fake timers a wait follows them, through processing', async () => {
  vi.useFakeTimers();
  const sandbox = createSandbox();
  const client = new GenClient({ apiKey: sandbox.apiKey, baseUrl: sandbox.baseUrl, fetch: sandbox.fetch });
  const waiting = app(client);
  await vi.advanceTimersByTimeAsync(60_000);
  expect((await waiting).status).toBe('completed');
});
