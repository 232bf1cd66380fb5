// Exact waits between attempts, measured with a manual clock and fixed random values.
import { describe, expect, it } from 'vitest';
import { type ClientOptions, RateLimitError } from '../../src/index.js';
import type { WaitEvent } from '../../src/transport/events.js';
import { errorOf } from '../support/rejection.js';
import { virtualClock } from '../waiting/virtual-clock.js';
import { created, json, PROMPT, rejection, stubbed } from './support.js';

const done = () => json(created());
const failed = (headers: Record<string, string> = {}) => json({}, { status: 503, headers });
const limited = (headers: Record<string, string> = {}) => json({ error: 'rate_limited' }, { status: 429, headers });

/** Creates a client with a manual clock. `sentAt` records when its requests are sent. */
function timedClient(steps: readonly (() => Response)[], options: ClientOptions = {}, chance = 0.5) {
  let ids = 0;
  const random = { next: () => chance, uuid: () => `id-${++ids}` };
  const clock = { ...virtualClock(), random };
  const startMs = clock.now();
  const sentAt: number[] = [];
  const timed = steps.map((step) => () => {
    sentAt.push(clock.now() - startMs);
    return step();
  });
  const { client, requests } = stubbed(timed, { [Symbol.for('gen-client.clock')]: clock, ...options });
  return { client, requests, sentAt, clock };
}

async function requestTimes(steps: readonly (() => Response)[], options: ClientOptions = {}, chance = 0.5) {
  const { client, sentAt, clock } = timedClient(steps, options, chance);
  const error = await clock.until(errorOf(client.videos.create(PROMPT)));
  return { sentAt, error };
}

describe('after a failure', () => {
  it.each<[number, number[]]>([
    [0, [0, 250, 750, 1_750, 3_750, 7_750, 11_750]],
    [0.5, [0, 375, 1_125, 2_625, 5_625, 11_625, 17_625]],
  ])('the pauses double from 0.5 to 8 seconds, and half of each is random (random value %d)', async (chance, times) => {
    expect(await requestTimes([failed], { maxRetries: 6 }, chance)).toMatchObject({
      sentAt: times,
      error: { attempts: 7 },
    });
  });

  it.each<[string, number]>([
    ['2', 2_000],
    ['0.1', 375],
    ['0', 375],
  ])('Retry-After: %s is respected, but never shortens the pause', async (seconds, waitMs) => {
    const { sentAt } = await requestTimes([() => failed({ 'retry-after': seconds }), done]);
    expect(sentAt).toEqual([0, waitMs]);
  });

  it('a Retry-After above maxRetryAfterMs throws immediately, and one equal to it is respected', async () => {
    const steps = [() => failed({ 'retry-after': '5' }), done];
    expect(await requestTimes(steps, { maxRetryAfterMs: 4_999 })).toMatchObject({
      sentAt: [0],
      error: { name: 'ServerError', retryAfterMs: 5_000, attempts: 1 },
    });
    expect((await requestTimes(steps, { maxRetryAfterMs: 5_000 })).sentAt).toEqual([0, 5_000]);
  });
});

describe('after a 429', () => {
  const rateLimit = 'off';

  it('without Retry-After, the pauses double, and each is extended by up to 10%', async () => {
    const { sentAt } = await requestTimes([limited, limited, limited, done], { rateLimit });
    // 375, 750, and 1,500 ms, plus 5% each.
    expect(sentAt).toEqual([0, 394, 394 + 788, 394 + 788 + 1_575]);
  });

  it('without Retry-After, the call gives up before its waits exceed maxRetryAfterMs in total', async () => {
    // 375 + 750 + 1,500 = 2,625 ms, and the next pause would be 3,000.
    const { sentAt, error } = await requestTimes([limited], { rateLimit, maxRetryAfterMs: 5_624 });
    expect(sentAt).toHaveLength(4);
    expect(error).toBeInstanceOf(RateLimitError);
    expect((await requestTimes([limited], { rateLimit, maxRetryAfterMs: 5_625 })).sentAt).toHaveLength(5);
  });

  it('hooks.onWait receives the pause, and hooks.onRequest the time that the call has waited', async () => {
    const waits: WaitEvent[] = [];
    const waited: number[] = [];
    const hooks: ClientOptions['hooks'] = {
      onWait: (event) => void waits.push(event),
      onRequest: ({ limitWaitMs }) => void waited.push(limitWaitMs),
    };
    await requestTimes([limited, done], { rateLimit, hooks });
    expect(waits).toEqual([
      { callId: expect.any(String), limit: 'videos.create', waitMs: 393.75, queued: 0, reason: 'pause' },
    ]);
    expect(waited).toEqual([0, 393.75]);
  });
});

describe("rateLimit: 'throw'", () => {
  it("reports why a call wasn't sent and when to retry", async () => {
    const { client, requests } = timedClient([done], {
      rateLimit: 'throw',
      limits: { 'videos.create': { limit: 1, windowMs: 60_000 } },
    });
    await client.videos.create(PROMPT);
    const error = (await rejection(client.videos.create(PROMPT, { idempotencyKey: 'order-2' }))) as RateLimitError;
    expect(error.retryAfterMs).toBeGreaterThanOrEqual(60_000);
    expect(error.message).toBe(
      `The limit of videos.create is reached, so the call was not sent. The next slot is free in ${error.retryAfterMs} ms.`,
    );
    expect(error).toMatchObject({ code: 'rate_limited', idempotencyKey: 'order-2', attempts: 0 });
    expect(requests).toHaveLength(1);
  });

  it('uses one slot for a create with a file', async () => {
    const responses: Record<string, unknown> = {
      '/v1/uploads': { success: true, data: { upload_id: 'upl_1', direct_upload_url: 'https://storage.test/file' } },
      '/v1/videos': JSON.parse(created()),
    };
    const { client, requests } = stubbed(
      ({ url }) => json(responses[new URL(url).pathname.replace('/prefix', '')] ?? { success: true, data: {} }),
      { rateLimit: 'throw', limits: { 'videos.create': { limit: 1, windowMs: 60_000 } } },
    );
    const png = new Blob([new Uint8Array([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10])], { type: 'image/png' });
    const { job } = await client.videos.create({ ...PROMPT, first_frame_upload_id: png });
    expect(job.id).toBe('job_1');
    const error = await rejection(client.videos.create({ ...PROMPT, first_frame_upload_id: png }));
    expect(error).toMatchObject({ name: 'RateLimitError', attempts: 0 });
    // A call that can't be sent uploads nothing.
    expect(requests.filter(({ method }) => method === 'PUT')).toHaveLength(1);
  });
});
