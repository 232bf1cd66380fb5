// redisLimiter in Workers, over HTTP: no call uses the promise, timer or stream of another request.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type RealRedis, startRedis, whyNoRedis } from '../redis/real-redis.js';
import { startUpstash } from '../redis/upstash-bridge.js';
import { bundle, startWorkerd, type Worker, whyNoWorkerd } from './workerd.js';

const LIMIT = 3;
const WINDOW_MS = 500;

describe.skipIf(whyNoRedis() ?? whyNoWorkerd)('redisLimiter in workerd', () => {
  let redis: RealRedis;
  let upstash: Awaited<ReturnType<typeof startUpstash>>;
  let isolates: Worker[];
  beforeAll(async () => {
    redis = await startRedis();
    upstash = await startUpstash(redis.ioredis);
    const script = await bundle({ file: 'redis-worker.ts' });
    const start = () => startWorkerd({ modules: true, script, bindings: { REDIS_URL: upstash.url } });
    isolates = await Promise.all([start(), start()]);
  });
  afterAll(async () => {
    await Promise.all(isolates.map((isolate) => isolate.dispose()));
    upstash.close();
    await redis.close();
  });
  beforeEach(async () => {
    await redis.ioredis.flushall();
    await Promise.all(isolates.map((isolate) => isolate.dispatchFetch('http://worker.test/errors')));
  });

  const ask = async (path: string, isolate = 0) =>
    (await (await isolates[isolate]!.dispatchFetch(`http://worker.test${path}`)).json()) as { at: number };

  test('requests of two isolates share one limit, and none is lost', async () => {
    const asked = Array.from({ length: 12 }, (_, at) => ask('/acquire', at % 2));
    const times = (await Promise.all(asked)).map(({ at }) => at).sort((a, b) => a - b);
    for (let at = LIMIT; at < times.length; at++)
      expect(times[at]! - times[at - LIMIT]!).toBeGreaterThan(WINDOW_MS - 60);
    expect(await ask('/errors')).toEqual([]);
  });

  test('a request that ends while its turn is under way leaves the others theirs', async () => {
    // Until what the test before used is free again in the isolate's own count.
    await new Promise((resolve) => setTimeout(resolve, WINDOW_MS + 50));
    await ask('/leave');
    expect(await ask('/acquire')).toMatchObject({ at: expect.any(Number) });
    expect(await ask('/errors')).toEqual([]);
  });

  test('a pause that one request reports holds the requests of another isolate', async () => {
    const { at: pausedAt } = await ask('/pause');
    const { at } = await ask('/acquire', 1);
    expect(at - pausedAt).toBeGreaterThan(350);
  });

  test("with Redis away every request goes on with the isolate's own limit, and onError is told once", async () => {
    await redis.stop();
    const asked = await Promise.all(Array.from({ length: 5 }, () => ask('/acquire')));
    expect(asked).toHaveLength(5);
    expect(await ask('/errors')).toHaveLength(1);
  });
});
