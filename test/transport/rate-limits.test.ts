import { describe, expect, it, vi } from 'vitest';
import { RateLimitError } from '../../src/index.js';
import { DOCUMENTED_LIMITS } from '../../src/rules/limits.js';
import { advanceUntil } from '../support/advance-until.js';
import { fakeTimers } from '../support/fake-timers.js';
import { countedSignal, created, freshKey, json, PROMPT, rejection, stubbed } from './support.js';

const { limit: LIMIT } = DOCUMENTED_LIMITS['videos.create'];
const limited =
  (retryAfter?: string, headers: Record<string, string> = {}) =>
  () =>
    json(
      { error: 'rate_limited' },
      { status: 429, headers: retryAfter ? { 'retry-after': retryAfter, ...headers } : headers },
    );

fakeTimers(Date.parse('2030-01-01T00:00:00.000Z'));

describe("the service's 429", () => {
  it('makes a call wait for at least its Retry-After, even with no retries left', async () => {
    const { client, requests } = stubbed([limited('20'), limited('20'), () => json(created())], { maxRetries: 0 });
    const create = client.videos.create(PROMPT).withResponse();
    await vi.advanceTimersByTimeAsync(19_999);
    expect(requests).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(22_000);
    expect(requests.length).toBeGreaterThanOrEqual(2);
    await vi.advanceTimersByTimeAsync(22_000);
    expect(await create).toMatchObject({ attempts: 3, data: { job: { id: 'job_1' } } });
  });

  it("may contain a date, which is compared with the service's clock", async () => {
    const date = 'Tue, 01 Jan 2030 05:00:00 GMT';
    const { client, requests } = stubbed([limited('Tue, 01 Jan 2030 05:00:40 GMT', { date }), () => json(created())]);
    const create = client.images.create(PROMPT);
    await vi.advanceTimersByTimeAsync(39_999);
    expect(requests).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await create).toMatchObject({ job: { id: 'job_1' } });
  });

  it('beyond maxRetryAfterMs throws immediately with retryAfterMs, and delays no other call', async () => {
    const { client, requests } = stubbed(limited('3600'));
    const error = await rejection(client.videos.create(PROMPT));
    expect(error).toBeInstanceOf(RateLimitError);
    expect(error).toMatchObject({
      retryAfterMs: 3_600_000,
      code: 'rate_limited',
      recovery: 'wait_and_retry',
      attempts: 1,
    });
    await rejection(client.videos.create(PROMPT));
    expect(requests).toHaveLength(2);
  });

  it('repeated with Retry-After: 0 causes neither a busy loop nor an endless call', async () => {
    const { client, requests } = stubbed(limited('0'), { maxRetryAfterMs: 5_000 });
    const outcome = rejection(client.images.create(PROMPT));
    await vi.advanceTimersByTimeAsync(200_000);
    expect(await outcome).toBeInstanceOf(RateLimitError);
    expect(requests.length).toBeLessThan(40);
  });

  it('pauses the entire limit for every client of the account', async () => {
    const apiKey = freshKey();
    const first = stubbed([limited('30'), () => json(created())], { apiKey });
    const second = stubbed(() => json(created()), { apiKey });
    const rejectedOnce = first.client.videos.create(PROMPT);
    await vi.advanceTimersByTimeAsync(10);
    const queued = second.client.videos.create(PROMPT);
    await vi.advanceTimersByTimeAsync(29_900);
    expect(second.requests).toHaveLength(0);
    await vi.advanceTimersByTimeAsync(5_000);
    await Promise.all([rejectedOnce, queued]);
    expect(second.requests).toHaveLength(1);
  });
});

describe("rateLimit: 'throw'", () => {
  it("rejects with the service's 429 instead of waiting", async () => {
    const { client, requests } = stubbed(limited('7'), { rateLimit: 'throw' });
    expect(await rejection(client.images.create(PROMPT))).toMatchObject({ retryAfterMs: 7_000 });
    expect(requests).toHaveLength(1);
  });
});

describe("rateLimit: 'off'", () => {
  it('disables the limits, but still waits after a 429', async () => {
    const { client, requests } = stubbed([limited('5'), () => json(created())], { rateLimit: 'off' });
    const first = client.videos.create(PROMPT);
    await vi.advanceTimersByTimeAsync(100);
    expect(requests).toHaveLength(1);
    await Promise.all(Array.from({ length: 30 }, () => client.videos.create(PROMPT)));
    expect(requests).toHaveLength(31);
    await vi.advanceTimersByTimeAsync(6_000);
    await first;
  });
});

describe('rate limits', () => {
  it('reject a call that is aborted in the tick in which it gets its slot', async () => {
    const limits = { 'videos.create': { limit: 2, windowMs: 1_000 } };
    const controller = new AbortController();
    const enough = new Error('one is enough');
    let sent = 0;
    const onRequest = () => {
      sent += 1;
      if (sent === 3) controller.abort(enough);
    };
    const { client } = stubbed(() => json(created()), { limits, hooks: { onRequest } });
    await Promise.all([client.videos.create(PROMPT), client.videos.create(PROMPT)]);
    const second = rejection(client.videos.create(PROMPT, { signal: controller.signal }));
    const first = client.videos.create(PROMPT);
    await vi.advanceTimersByTimeAsync(5_000);
    await first;
    expect(await second).toBe(enough);
  });

  it('release the slots of calls whose key function threw', async () => {
    let isSealed = true;
    const key = freshKey();
    const apiKey = () => {
      if (isSealed) throw new Error('the vault is sealed');
      return key;
    };
    const { client } = stubbed(() => json(created()), { apiKey, maxRetries: 0 });
    for (let call = 0; call < LIMIT - 1; call++) await rejection(client.videos.create(PROMPT));
    isSealed = false;
    await Promise.all(Array.from({ length: LIMIT }, () => client.videos.create(PROMPT)));
    expect(client.limits()['videos.create']).toMatchObject({ free: 0, queued: 0 });
  });

  it('release the slots of calls that the service rejected with a 429', async () => {
    const times: number[] = [];
    const { client } = stubbed(() => {
      const now = Date.now();
      const inWindow = times.filter((time) => time > now - 4_000);
      if (inWindow.length >= 5) return limited(String(Math.ceil(((inWindow[0] ?? now) + 4_000 - now) / 1_000)))();
      times.push(now);
      return json(created());
    });
    const start = Date.now();
    await advanceUntil(Promise.all(Array.from({ length: 18 }, () => client.videos.create(PROMPT))), 500);
    // 18 creates at 5 per 4 s take at least 12 s. A defect once made them take 69.5 s.
    expect(Date.now() - start).toBeLessThan(30_000);
  });

  it('add one listener for all queued calls with the same signal', async () => {
    vi.useRealTimers();
    const limits = { 'videos.create': { limit: 1, windowMs: 1 } };
    const { signal } = new AbortController();
    const added = vi.spyOn(signal, 'addEventListener');
    const { client } = stubbed(() => json(created()), { limits });
    const calls = Array.from({ length: 200 }, () => client.videos.create(PROMPT, { signal }));
    await new Promise(setImmediate);
    const listeners = added.mock.calls.length;
    await Promise.all(calls);
    // One for the queue, plus those of the requests in flight.
    expect(listeners).toBeLessThan(5);
  });

  it('reject an aborted queued call immediately, and leave no listener', async () => {
    const { client, requests } = stubbed(() => json(created()));
    await Promise.all(Array.from({ length: LIMIT }, () => client.videos.create(PROMPT)));
    const { controller, signal, listeners } = countedSignal();
    const outcome = rejection(client.videos.create(PROMPT, { signal }));
    await vi.advanceTimersByTimeAsync(5);
    controller.abort('enough');
    expect(await outcome).toBe('enough');
    expect(listeners()).toBe(0);
    expect(requests).toHaveLength(LIMIT);
  });
});
