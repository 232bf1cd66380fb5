// Each test is named after what once happened.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { redisLimiter } from '../../src/redis/index.js';
import { type RealRedis, startRedis, whyNoRedis } from '../redis/real-redis.js';

const LANE = 'videos.create';
const WINDOW_MS = 300;
const TEN_MINUTES = 600_000;

describe.skipIf(whyNoRedis())('B5: a clock of Redis that was set back', () => {
  let redis: RealRedis;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.close());

  const key = (part: string) => `gen-client:limit:{${LANE}}:${part}`;
  /** What was written before the clock was set back lies in the future. */
  const setBack = async () => {
    for (const part of ['rest', 'flight', 'alive']) {
      for (const member of await redis.ioredis.zrange(key(part), '0', '-1'))
        await redis.ioredis.zincrby(key(part), TEN_MINUTES, member);
    }
    const paused = Number(await redis.ioredis.hget(key('meta'), 'paused'));
    if (paused > 0) await redis.ioredis.hset(key('meta'), 'paused', paused + TEN_MINUTES);
  };
  const limiterOf = () =>
    redisLimiter(redis.ioredis, { limits: { [LANE]: { limit: 2, windowMs: WINDOW_MS } }, onUnavailable: 'throw' });
  /** The milliseconds until two calls of this limiter, and two of another process, have gone out. */
  const msToGo = async (limiter = limiterOf()) => {
    const start = performance.now();
    const other = limiterOf();
    for (const each of [limiter, limiter, other, other]) (await each.acquire(LANE))();
    return performance.now() - start;
  };

  test('stopped every process for the whole step, because the slots of calls that were answered rested that long', async () => {
    const limiter = limiterOf();
    await msToGo(limiter);
    expect(await redis.ioredis.zcard(key('rest'))).toBe(2);
    await setBack();
    expect(await msToGo(limiter)).toBeLessThan(5_000);
  });

  test('stopped every process for the whole step, because a pause lasted that long', async () => {
    const limiter = limiterOf();
    limiter.pause(LANE, 200);
    await expect.poll(() => redis.ioredis.hget(key('meta'), 'pausedFor')).not.toBeNull();
    await setBack();
    const other = limiterOf();
    const start = performance.now();
    (await other.acquire(LANE))();
    expect(performance.now() - start).toBeLessThan(3_000);
  });

  test('kept the slots of calls under way of a process that had died for the whole step', async () => {
    await redis.ioredis.flushall();
    const slots = [await limiterOf().acquire(LANE), await limiterOf().acquire(LANE)];
    await setBack();
    const waiting = limiterOf().acquire(LANE);
    // A turn takes what lies further away than a lease for what it is.
    const time = await redis.ioredis.time();
    const now = Number(time[0]) * 1000;
    const furthest = async () => Number((await redis.ioredis.zrevrange(key('flight'), 0, 0, 'WITHSCORES'))[1]) - now;
    await expect.poll(furthest).toBeLessThan(20_000);
    for (const release of slots) release();
    (await waiting)();
  });
});
