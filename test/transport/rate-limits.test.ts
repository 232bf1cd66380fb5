import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { RateLimitError } from '../../src/index.js';
import { DOCUMENTED_LIMITS } from '../../src/rules/limits.js';
import type { WaitEvent } from '../../src/transport/events.js';
import { countedSignal, created, freshKey, json, rejection, stubbed } from './support.js';

const PROMPT = { prompt: 'a fox at dawn' };
const { limit: LIMIT } = DOCUMENTED_LIMITS['videos.create'];
const limited =
  (retryAfter?: string, headers: Record<string, string> = {}) =>
  () =>
    json(
      { error: 'rate_limited' },
      { status: 429, headers: retryAfter ? { 'retry-after': retryAfter, ...headers } : headers },
    );

beforeEach(() => {
  vi.useFakeTimers({ now: Date.parse('2030-01-01T00:00:00.000Z') });
});
afterEach(() => {
  vi.useRealTimers();
});

describe("the service's 429", () => {
  it('makes a call wait long enough, even with no retries left', async () => {
    const { client, seen } = stubbed([limited('20'), limited('20'), () => json(created())], { maxRetries: 0 });
    const made = client.videos.create(PROMPT).withResponse();
    await vi.advanceTimersByTimeAsync(19_999);
    expect(seen).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(22_000);
    expect(seen.length).toBeGreaterThanOrEqual(2);
    await vi.advanceTimersByTimeAsync(22_000);
    expect(await made).toMatchObject({ attempts: 3, data: { job: { id: 'job_1' } } });
  });

  it("may contain a date, which is compared with the service's clock", async () => {
    const date = 'Tue, 01 Jan 2030 05:00:00 GMT';
    const { client, seen } = stubbed([limited('Tue, 01 Jan 2030 05:00:40 GMT', { date }), () => json(created())]);
    const made = client.images.create(PROMPT);
    await vi.advanceTimersByTimeAsync(39_999);
    expect(seen).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await made).toMatchObject({ job: { id: 'job_1' } });
  });

  it('beyond maxRetryAfterMs throws immediately with retryAfterMs, and delays no other call', async () => {
    const { client, seen } = stubbed(limited('3600'));
    const error = await rejection(client.videos.create(PROMPT));
    expect(error).toBeInstanceOf(RateLimitError);
    expect(error).toMatchObject({
      retryAfterMs: 3_600_000,
      code: 'rate_limited',
      recovery: 'wait_and_retry',
      attempts: 1,
    });
    await rejection(client.videos.create(PROMPT));
    expect(seen).toHaveLength(2);
  });

  it('repeated with Retry-After: 0 causes neither a busy loop nor an endless call', async () => {
    const { client, seen } = stubbed(limited('0'), { maxRetryAfterMs: 5_000 });
    const outcome = rejection(client.images.create(PROMPT));
    await vi.advanceTimersByTimeAsync(200_000);
    expect(await outcome).toBeInstanceOf(RateLimitError);
    expect(seen.length).toBeLessThan(40);
  });

  it('pauses the entire limit for every client of the account', async () => {
    const apiKey = freshKey();
    const first = stubbed([limited('30'), () => json(created())], { apiKey });
    const second = stubbed(() => json(created()), { apiKey });
    const one = first.client.videos.create(PROMPT);
    await vi.advanceTimersByTimeAsync(10);
    const two = second.client.videos.create(PROMPT);
    await vi.advanceTimersByTimeAsync(29_900);
    expect(second.seen).toHaveLength(0);
    await vi.advanceTimersByTimeAsync(5_000);
    await Promise.all([one, two]);
    expect(second.seen).toHaveLength(1);
  });
});

describe("rateLimit: 'throw'", () => {
  it("also rejects with the service's 429", async () => {
    const { client, seen } = stubbed(limited('7'), { rateLimit: 'throw' });
    expect(await rejection(client.images.create(PROMPT))).toMatchObject({ retryAfterMs: 7_000 });
    expect(seen).toHaveLength(1);
  });
});

describe("rateLimit: 'off'", () => {
  it('disables the limits, but still waits after a 429', async () => {
    const { client, seen } = stubbed([limited('5'), () => json(created())], { rateLimit: 'off' });
    const first = client.videos.create(PROMPT);
    await vi.advanceTimersByTimeAsync(100);
    expect(seen).toHaveLength(1);
    await Promise.all(Array.from({ length: 30 }, () => client.videos.create(PROMPT)));
    expect(seen).toHaveLength(31);
    await vi.advanceTimersByTimeAsync(6_000);
    await first;
  });
});

describe('rate limits', () => {
  it('queue calls when full, call onWait, and appear in limits()', async () => {
    const waits: WaitEvent[] = [];
    const { client, seen } = stubbed(() => json(created()), { hooks: { onWait: (event) => waits.push(event) } });
    const all = Promise.all(Array.from({ length: LIMIT + 5 }, () => client.videos.create(PROMPT)));
    await vi.advanceTimersByTimeAsync(10);
    expect(seen).toHaveLength(LIMIT);
    expect(client.limits()['videos.create']).toMatchObject({ free: 0, queued: 5 });
    expect(waits).toHaveLength(5);
    expect(waits[0]).toMatchObject({ limit: 'videos.create', reason: 'limit', queued: 1 });
    await vi.advanceTimersByTimeAsync(61_000);
    expect(await all).toHaveLength(LIMIT + 5);
  });

  it('end an aborted queued call immediately, and leave no listener', async () => {
    const { client, seen } = stubbed(() => json(created()));
    await Promise.all(Array.from({ length: LIMIT }, () => client.videos.create(PROMPT)));
    const { controller, signal, listeners } = countedSignal();
    const outcome = rejection(client.videos.create(PROMPT, { signal }));
    await vi.advanceTimersByTimeAsync(5);
    controller.abort('enough');
    expect(await outcome).toBe('enough');
    expect(listeners()).toBe(0);
    expect(seen).toHaveLength(LIMIT);
  });
});
