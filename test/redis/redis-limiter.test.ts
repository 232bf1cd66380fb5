import { getEventListeners } from 'node:events';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { GenError, RateLimitError } from '../../src/errors/index.js';
import { GenClient } from '../../src/index.js';
import { type LaneWait, type RateLimiter, type RedisLimiterOptions, redisLimiter } from '../../src/redis/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { type RealRedis, startRedis, whyNoRedis } from './real-redis.js';
import { startUpstash } from './upstash-bridge.js';

const LANE = 'videos.create';

describe.skipIf(whyNoRedis())('a limiter over Redis', () => {
  let redis: RealRedis;
  const errors: unknown[] = [];
  let upstash: Awaited<ReturnType<typeof startUpstash>>;
  beforeAll(async () => {
    redis = await startRedis();
    upstash = await startUpstash(redis.ioredis);
  });
  afterAll(async () => {
    upstash.close();
    await redis.close();
  });
  beforeEach(() => redis.ioredis.flushall());
  afterEach(() => expect(errors.splice(0)).toEqual([]));

  /** A limiter as one more process would have it; each over the next kind of client. */
  let made = 0;
  const limiterOf = (limit: number, windowMs: number, options: RedisLimiterOptions = {}): RateLimiter => {
    const clients = [redis.ioredis, redis.nodeRedis, upstash.client()];
    const client = clients[made++ % clients.length] ?? redis.ioredis;
    const limits = { [LANE]: { limit, windowMs } };
    return redisLimiter(client, { limits, onError: (error) => errors.push(error), ...options });
  };

  /** Notes in which order calls go out. */
  const inOrder = () => {
    const order: string[] = [];
    const call = async (limiter: RateLimiter, name: string, onWait?: () => void) => {
      const release = await limiter.acquire(LANE, undefined, onWait);
      order.push(name);
      release();
    };
    return { order, call };
  };

  test('lets in no more than the limit over all processes, and the next after the window', async () => {
    const limiters = Array.from({ length: 4 }, () => limiterOf(6, 300));
    const times: number[] = [];
    await Promise.all(
      Array.from({ length: 18 }, async (_, at) => {
        const release = await limiters[at % 4]?.acquire(LANE);
        times.push(performance.now());
        release?.();
      }),
    );
    times.sort((left, right) => left - right);
    for (let at = 6; at < times.length; at++) expect((times[at] ?? 0) - (times[at - 6] ?? 0)).toBeGreaterThan(300);
  });

  test('a slot rests from the answer on, not from the call', async () => {
    const one = limiterOf(1, 200);
    const other = limiterOf(1, 200);
    const release = await one.acquire(LANE);
    const next = other.acquire(LANE);
    const early = vi.fn();
    next.then(early);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(early).not.toHaveBeenCalled();
    const released = performance.now();
    release();
    release();
    (await next)();
    expect(performance.now() - released).toBeGreaterThan(200);
  });

  test('serves in order of arrival over all processes', async () => {
    const [one, other, third] = [limiterOf(1, 40), limiterOf(1, 40), limiterOf(1, 40)];
    const { order, call } = inOrder();
    const calls: Promise<void>[] = [];
    for (const [limiter, name] of [
      [one, 'a'],
      [other, 'b'],
      [one, 'c'],
      [third, 'd'],
      [other, 'e'],
      [one, 'f'],
    ] as const) {
      // The next one comes when Redis has let this one in or told it to wait.
      await new Promise<void>((resolve) => calls.push(call(limiter, name, resolve).finally(resolve)));
    }
    await Promise.all(calls);
    expect(order.join('')).toBe('abcdef');
  });

  test('an abort leaves the queue at once with its own reason, and its place goes to the next', async () => {
    const [one, other] = [limiterOf(1, 150), limiterOf(1, 150)];
    (await one.acquire(LANE))();
    const { order, call } = inOrder();
    const controller = new AbortController();
    const waits = vi.fn();
    const aborted = one.acquire(LANE, controller.signal, waits).catch((reason: unknown) => reason);
    await vi.waitFor(() => expect(waits).toHaveBeenCalled());
    const last = call(other, 'last');
    const reason = new Error('enough');
    controller.abort(reason);
    const atOnce = new Promise((resolve) => setImmediate(resolve, 'not at once'));
    expect(await Promise.race([aborted, atOnce])).toBe(reason);
    await last;
    expect(order).toEqual(['last']);
    expect(await redis.ioredis.zcard(`gen-client:limit:{${LANE}}:queue`)).toBe(0);
    await expect(one.acquire(LANE, AbortSignal.abort(new Error('before')))).rejects.toThrow('before');
  });

  test('hundreds of calls under one signal put one listener on it, and none when they are through', async () => {
    const limiter = limiterOf(1, 60_000);
    (await limiter.acquire(LANE))();
    const controller = new AbortController();
    const { signal } = controller;
    const added = vi.spyOn(signal, 'addEventListener');
    const waiting = Array.from({ length: 300 }, () => limiter.acquire(LANE, signal));
    const open = limiterOf(1, 60_000, { prefix: 'open:' });
    (await open.acquire(LANE, signal))();
    expect(added).toHaveBeenCalledOnce();
    controller.abort(new Error('enough'));
    const results = await Promise.allSettled(waiting);
    expect(results.every((result) => result.status === 'rejected' && result.reason.message === 'enough')).toBe(true);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    await vi.waitFor(async () => expect(await redis.ioredis.zcard(`gen-client:limit:{${LANE}}:queue`)).toBe(0));
  });

  test('a pause holds back every process, also one that comes later', async () => {
    const [one, other] = [limiterOf(5, 50), limiterOf(5, 50)];
    one.pause(LANE, 200);
    const paused = performance.now();
    await redis.ioredis.ping();
    await redis.nodeRedis.ping();
    await Promise.all([one, other, limiterOf(5, 50)].map((limiter) => limiter.acquire(LANE)));
    expect(performance.now() - paused).toBeGreaterThan(195);
    expect(performance.now() - paused).toBeLessThan(600);
  });

  test('says once to each call that it waits, how long, behind how many and why', async () => {
    const [one, other] = [limiterOf(1, 200), limiterOf(1, 200)];
    const waits: LaneWait[] = [];
    const note = (wait: LaneWait) => waits.push(wait);
    (await one.acquire(LANE, undefined, note))();
    const first = other.acquire(LANE, undefined, note).then((release) => release());
    await vi.waitFor(() => expect(waits).toHaveLength(1));
    const second = one.acquire(LANE, undefined, note).then((release) => release());
    await Promise.all([first, second]);
    expect(waits).toEqual([
      { lane: LANE, waitMs: expect.any(Number), queued: 1, reason: 'limit' },
      { lane: LANE, waitMs: expect.any(Number), queued: 2, reason: 'limit' },
    ]);
    expect(waits.every(({ waitMs }) => waitMs > 0 && waitMs <= 202)).toBe(true);
    one.pause(LANE, 50);
    (await one.acquire(LANE, undefined, note))();
    expect(waits.at(-1)).toMatchObject({ reason: 'pause', queued: 1 });
  });

  test('a listener that throws rejects its own call and no other', async () => {
    const limiter = limiterOf(1, 100);
    (await limiter.acquire(LANE))();
    const broken = limiter.acquire(LANE, undefined, () => {
      throw new Error('broken listener');
    });
    const other = limiter.acquire(LANE);
    await expect(broken).rejects.toThrow('broken listener');
    (await other)();
  });

  test('a client that does not wait is refused on a full lane, and leaves nobody in the queue', async () => {
    const sandbox = createSandbox();
    const limiter = limiterOf(1, 60_000, { prefix: 'refusing:' });
    const { apiKey, baseUrl, fetch } = sandbox;
    const client = new GenClient({ apiKey, baseUrl, fetch, limiter, rateLimit: 'throw' });
    await client.videos.create({ prompt: 'a fox' });
    await expect(client.videos.create({ prompt: 'a hare' })).rejects.toBeInstanceOf(RateLimitError);
    expect(sandbox.jobs).toHaveLength(1);
    await vi.waitFor(async () => expect(await redis.ioredis.zcard(`refusing:{${LANE}}:queue`)).toBe(0));
  });

  test('the queue of a process that died is passed over, and its slots come back', async () => {
    const dead = new Redis({ port: redis.port, host: '127.0.0.1' });
    const gone = redisLimiter(dead, { limits: { [LANE]: { limit: 2, windowMs: 50 } } });
    await gone.acquire(LANE);
    await gone.acquire(LANE);
    const waits = vi.fn();
    gone.acquire(LANE, undefined, waits).catch(() => {});
    await vi.waitFor(() => expect(waits).toHaveBeenCalled());
    dead.disconnect();
    // The fifteen seconds of its lease, made short: what it has in Redis is moved into the past.
    for (const part of ['alive', 'flight']) {
      const key = `gen-client:limit:{${LANE}}:${part}`;
      for (const member of await redis.ioredis.zrange(key, '0', '-1'))
        await redis.ioredis.zincrby(key, '-15000', member);
    }
    const began = performance.now();
    (await limiterOf(2, 50).acquire(LANE))();
    expect(performance.now() - began).toBeLessThan(1000);
  });

  test('a call that takes long keeps its slot, by a word every five seconds until its answer', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const release = await limiterOf(1, 60_000).acquire(LANE);
      const key = `gen-client:limit:{${LANE}}:flight`;
      const [slot = ''] = await redis.ioredis.zrange(key, '0', '-1');
      const leaseLeft = async () => Number(await redis.ioredis.zscore(key, slot)) - Date.now();
      for (let word = 0; word < 3; word++) {
        await redis.ioredis.zincrby(key, '-12000', slot);
        expect(await leaseLeft()).toBeLessThan(4000);
        vi.advanceTimersByTime(5001);
        await redis.nodeRedis.ping();
        await redis.ioredis.ping();
        expect(await leaseLeft()).toBeGreaterThan(14_000);
      }
      release();
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  test('accounts with prefixes of their own do not share', async () => {
    const [one, other] = [limiterOf(1, 60_000, { prefix: 'a:' }), limiterOf(1, 60_000, { prefix: 'b:' })];
    (await one.acquire(LANE))();
    (await other.acquire(LANE))();
    await vi.waitFor(async () => {
      for (const prefix of ['a:', 'b:']) expect(await redis.ioredis.zcard(`${prefix}{${LANE}}:rest`)).toBe(1);
    });
  });

  test('a lane without a limit lets everything through', async () => {
    const limiter = redisLimiter(redis.ioredis, {
      limits: { [LANE]: { limit: Number.POSITIVE_INFINITY, windowMs: 1 } },
    });
    for (const lane of [LANE, 'models.list']) {
      await Promise.all(Array.from({ length: 500 }, async () => (await limiter.acquire(lane))()));
    }
    expect(await redis.ioredis.keys('*')).toEqual([]);
  });

  test('a Redis that was emptied counts anew and loses no call', async () => {
    const limiter = limiterOf(1, 100);
    (await limiter.acquire(LANE))();
    const { order, call } = inOrder();
    const waits = vi.fn();
    const waiting = [call(limiter, 'one', waits), call(limiter, 'other', waits)];
    await vi.waitFor(() => expect(waits).toHaveBeenCalledTimes(2));
    await redis.ioredis.flushall();
    await Promise.all(waiting);
    expect(order).toEqual(['one', 'other']);
  });
});

describe.skipIf(whyNoRedis())('when Redis is away', () => {
  let redis: RealRedis;
  beforeEach(async () => {
    redis = await startRedis();
  });
  afterEach(() => redis.close());
  const limits = { [LANE]: { limit: 2, windowMs: 300 } };

  test('"local" keeps the limit inside the process, counting what it used before', async () => {
    const onError = vi.fn();
    for (const client of [redis.ioredis, redis.nodeRedis]) {
      await redis.restart();
      const limiter = redisLimiter(client, { limits, onError, timeoutMs: 300 });
      (await limiter.acquire(LANE))();
      await redis.stop();
      const times = await Promise.all(
        [1, 2, 3, 4].map(async () => {
          const release = await limiter.acquire(LANE);
          const at = performance.now();
          release();
          return at;
        }),
      );
      expect((times[2] ?? 0) - (times[0] ?? 0)).toBeGreaterThan(299);
      expect(onError).toHaveBeenCalledOnce();
      onError.mockClear();
      await redis.restart();
    }
  });

  test('"throw" rejects, with what is wrong as the cause', async () => {
    const limiter = redisLimiter(redis.ioredis, { limits, onUnavailable: 'throw', timeoutMs: 200 });
    (await limiter.acquire(LANE))();
    await redis.stop();
    const error: unknown = await limiter.acquire(LANE).catch((reason) => reason);
    expect(GenError.isInstance(error) && error.message).toContain('cannot reach Redis');
    expect(error).toMatchObject({ cause: { message: expect.stringMatching(/200 ms|closed/) } });
    await redis.restart();
    await vi.waitFor(async () => (await limiter.acquire(LANE))(), { timeout: 5000 });
  });

  test('a turn that comes too late is given back, its slots and its place in the queue', async () => {
    const limiter = redisLimiter(redis.ioredis, { limits, onUnavailable: 'throw', timeoutMs: 100 });
    (await limiter.acquire(LANE))();
    await redis.nodeRedis.sendCommand(['CLIENT', 'PAUSE', '400']);
    const late = await Promise.allSettled([1, 2, 3, 4].map(() => limiter.acquire(LANE)));
    expect(late.map(({ status }) => status)).toEqual(Array(4).fill('rejected'));
    const key = (part: string) => `gen-client:limit:{${LANE}}:${part}`;
    await vi.waitFor(async () => {
      expect(await redis.ioredis.hget(key('meta'), 'slot')).not.toBe('1');
      expect(await redis.ioredis.zcard(key('flight'))).toBe(0);
      expect(await redis.ioredis.zcard(key('queue'))).toBe(0);
    });
  });
});

test.each([
  [{}, {}, 'ioredis or redis'],
  [{ evalsha() {} }, { onUnavailable: 'ignore' }, 'onUnavailable'],
  [{ evalsha() {} }, { timeoutMs: 0 }, 'timeoutMs'],
  [{ evalsha() {} }, { limits: { [LANE]: { limit: 0, windowMs: 1 } } }, 'limit'],
])('what cannot be right is refused when the limiter is made (%#)', (client, options, named) => {
  // @ts-expect-error JavaScript callers pass what they have.
  expect(() => redisLimiter(client, options)).toThrow(named);
});
