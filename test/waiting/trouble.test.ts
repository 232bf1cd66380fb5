import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type ClientOptions, GenClient, type Job, WaitTimeoutError } from '../../src/index.js';
import type { JobNotice } from '../../src/waiting/notifications.js';
import { BASE_URL, freshKey, json, rejection, stubbed } from '../transport/support.js';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const DONE = { status: 'completed', providerOutputUrl: 'https://x.example/output' };
const response = (fields: Partial<Job> = {}) =>
  json({ data: { job: { id: 'job_1', status: 'processing', ...fields } } });
const notice: JobNotice = { data: { job: { id: 'job_1' } } };

/** Advances the manual clock until the promise settles. */
async function advanceUntil<T>(promise: Promise<T>, maxMs = 3_600_000): Promise<T> {
  let open = true;
  promise.then(
    () => (open = false),
    () => (open = false),
  );
  for (let ms = 0; open && ms < maxMs; ms += 250) await vi.advanceTimersByTimeAsync(250);
  return promise;
}

describe('one poll', () => {
  it("with status 200 and success: false doesn't end the wait for a running, paid job", async () => {
    const failed = () => json({ success: false, error: { code: 'internal_error' } });
    const odd = () => json({ success: false, error: { code: 'who_knows' } });
    const { client } = stubbed([failed, odd, () => response(DONE)]);
    await expect(advanceUntil(client.waitForJob('job_1'))).resolves.toMatchObject(DONE);
  });

  it("with another job in the response doesn't resolve the wait", async () => {
    const { client, seen } = stubbed([() => response({ id: 'job_2', ...DONE }), () => response(DONE)]);
    await expect(advanceUntil(client.waitForJob('job_1'))).resolves.toMatchObject({ id: 'job_1' });
    expect(seen).toHaveLength(2);
    const wrong = stubbed(() => response({ id: 'job_2', ...DONE }));
    await expect(wrong.client.jobs.get('job_1')).rejects.toThrow('the response is about another job');
  });

  it("with a completed job but no link doesn't resolve as a CompletedJob", async () => {
    const { client, seen } = stubbed([() => response({ status: 'completed' }), () => response(DONE)]);
    await expect(advanceUntil(client.waitForJob('job_1'))).resolves.toMatchObject(DONE);
    expect(seen).toHaveLength(2);
    const never = stubbed(() => response({ status: 'completed', providerOutputUrl: null }));
    const error = await rejection(advanceUntil(never.client.waitForJob('job_1', { timeoutMs: 60_000 })));
    expect(error).toBeInstanceOf(WaitTimeoutError);
    expect(String(error)).toContain('It is completed, but its file is not available yet');
  });

  it("that hangs doesn't delay the webhook", async () => {
    const { client } = stubbed([() => new Promise<Response>(() => {}), () => response(DONE)], { timeoutMs: 20_000 });
    const start = Date.now();
    const wait = client.waitForJob('job_1');
    await vi.advanceTimersByTimeAsync(1_000);
    client.notify(notice);
    await expect(advanceUntil(wait)).resolves.toMatchObject(DONE);
    expect(Date.now() - start).toBeLessThan(2_000);
  });
});

describe('onUpdate', () => {
  const unhandled = vi.fn();
  beforeEach(() => {
    unhandled.mockClear();
    process.on('unhandledRejection', unhandled);
  });
  afterEach(() => {
    process.off('unhandledRejection', unhandled);
  });

  it.each([
    ['an object without a prototype', Object.create(null)],
    ['a symbol', Symbol('odd')],
    [
      "an error that can't be converted to a string",
      Object.assign(new Error('x'), {
        toString: () => {
          throw new Error('no');
        },
      }),
    ],
  ])('that throws %s stops neither the scheduler nor another wait on the job (B3)', async (_what, thrown) => {
    const { client } = stubbed([() => response(), () => response(DONE)]);
    const onUpdate = () => {
      throw thrown;
    };
    const waits = [client.waitForJob('job_1', { onUpdate }), client.waitForJob('job_1')];
    await expect(advanceUntil(Promise.all(waits))).resolves.toHaveLength(2);
  });
});

describe('a broken client', () => {
  it("doesn't starve a healthy client's wait on the same job", async () => {
    const apiKey = freshKey();
    const dead = stubbed(() => Promise.reject(new Error('proxy is down')), { apiKey });
    const healthy = stubbed(() => response(DONE), { apiKey });
    const lost = dead.client.waitForJob('job_1', { timeoutMs: 60_000 });
    const found = healthy.client.waitForJob('job_1');
    const start = Date.now();
    await expect(advanceUntil(found)).resolves.toMatchObject(DONE);
    expect(Date.now() - start).toBeLessThan(15_000);
    await expect(advanceUntil(lost)).resolves.toMatchObject(DONE);
  });

  it("doesn't end a healthy client's wait on the same job", async () => {
    const apiKey = freshKey();
    const revoked = stubbed(() => json({ error: 'invalid_api_key' }, { status: 401 }), { apiKey });
    const healthy = stubbed(() => response(DONE), { apiKey });
    const rejected = rejection(advanceUntil(revoked.client.waitForJob('job_1')));
    await expect(advanceUntil(healthy.client.waitForJob('job_1'))).resolves.toMatchObject(DONE);
    expect(await rejected).toMatchObject({ code: 'invalid_api_key' });
  });
});

describe('the current limit', () => {
  /** Waits for `count` jobs that finish by their second poll, and returns the seconds. */
  async function secondsFor(count: number, options: ClientOptions): Promise<number> {
    const reads = new Map<string, number>();
    const fetch = async (input: RequestInfo | URL, init?: RequestInit) => {
      const id = new URL(new Request(input, init).url).pathname.split('/').at(-1) ?? '';
      reads.set(id, (reads.get(id) ?? 0) + 1);
      return response({ id, ...((reads.get(id) ?? 0) > 1 && DONE) });
    };
    const client = new GenClient({ apiKey: freshKey(), baseUrl: BASE_URL, fetch, ...options });
    const start = Date.now();
    const ids = Array.from({ length: count }, (_, at) => `job_${at}`);
    await advanceUntil(Promise.all(ids.map((id) => client.waitForJob(id, { pollIntervalMs: 1_000 }))));
    return (Date.now() - start) / 1_000;
  }

  it.each<[string, ClientOptions]>([
    ["rateLimit: 'off'", { rateLimit: 'off' }],
    ['limit: Infinity', { limits: { 'jobs.get': { limit: Number.POSITIVE_INFINITY } } }],
  ])('applies to waits if it is removed with %s (C1)', async (_how, options) => {
    expect(await secondsFor(200, options)).toBeLessThan(5);
  });

  it("leaves capacity for the caller's own polls", async () => {
    const limits = { 'jobs.get': { limit: 30, windowMs: 60_000 } };
    const fetch = async (input: RequestInfo | URL, init?: RequestInit) =>
      response({ id: new URL(new Request(input, init).url).pathname.split('/').at(-1) ?? '' });
    const client = new GenClient({ apiKey: freshKey(), baseUrl: BASE_URL, fetch, limits });
    const end = new AbortController();
    for (let at = 0; at < 100; at++) client.waitForJob(`job_${at}`, { signal: end.signal }).catch(() => {});
    await vi.advanceTimersByTimeAsync(90_000);
    expect(client.limits()['jobs.get']?.queued).toBeLessThanOrEqual(1);
    const start = Date.now();
    await advanceUntil(client.jobs.get('mine'));
    // One eighth is left to the caller: 30 / 8 per minute.
    expect(Date.now() - start).toBeLessThanOrEqual(16_000);
    end.abort();
  });
});
