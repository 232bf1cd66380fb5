import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isTooSlow } from '../support/core-share.js';
import { bundleProgram, receiveMessage } from '../support/program.js';
import { startCountingService } from './counting-service.js';
import { type RealRedis, startRedis, whyNoRedis } from './real-redis.js';

const LIMIT = 20;
/** `npm run campaign -- limits` uses the documented minute. CI uses a shorter window, which still allows many polls. */
const [COUNTS, WINDOW_MS, WINDOWS] = process.env.CAMPAIGN === 'full' ? [[1, 8, 50], 60_000, 5] : [[4], 10_000, 3];

/** Returns the number of commands that clients have sent, excluding those that scripts run. */
async function countCommands({ ioredis }: RealRedis): Promise<number> {
  const sent = (await ioredis.info('commandstats')).matchAll(
    /cmdstat_(?:evalsha|eval|\w*subscribe|publish):calls=(\d+)/g,
  );
  return [...sent].reduce((sum, [, calls]) => sum + Number(calls), 0);
}

describe.skipIf(whyNoRedis())('processes with one rate limit', () => {
  let worker: Awaited<ReturnType<typeof bundleProgram>>;
  beforeAll(async () => {
    worker = await bundleProgram(new URL('limiter-worker.ts', import.meta.url));
  });
  afterAll(() => worker.remove());

  /** Creates videos. Returns the used share of the allowed rate. */
  async function measureUsage(count: number): Promise<number> {
    const redis = await startRedis();
    const service = await startCountingService(LIMIT, WINDOW_MS);
    const createsPerProcess = Math.ceil((LIMIT * WINDOWS) / count);
    const settings = [service.baseUrl, redis.port, WINDOW_MS, createsPerProcess];
    const processes = Array.from({ length: count }, (_, at) =>
      worker.start([...settings, at % 2 === 0 ? 'ioredis' : 'node-redis']),
    );
    await Promise.all(processes.map((process) => receiveMessage(process, (message) => message === 'ready')));
    const commandsBefore = await countCommands(redis);
    const startMs = performance.now();
    const results = processes.map((process) => receiveMessage(process, (message) => message === createsPerProcess));
    for (const process of processes) process.send('go');
    await Promise.all(results);
    const tookMs = performance.now() - startMs;
    expect((((await countCommands(redis)) - commandsBefore) * 1000) / tookMs).toBeLessThanOrEqual(100);
    for (const process of processes) process.send('end');
    await service.close();
    expect(service.rejectedCount()).toBe(0);
    expect(service.countedAt).toHaveLength(count * createsPerProcess);
    await redis.close();
    // The first twenty creates are sent immediately, and each further twenty one window later.
    return ((Math.ceil((count * createsPerProcess) / LIMIT) - 1) * WINDOW_MS) / tookMs;
  }

  test.each(COUNTS)(
    'get no 429 if there are %i, and use 90% of the allowed rate with at most 100 commands a second',
    { timeout: 600_000 },
    async (count) => {
      const share = await measureUsage(count);
      console.info(`${count} processes: ${share.toFixed(3)} of the allowed slots`);
      if (share >= 0.9 || isTooSlow('the rate of several processes')) return;
      // Repeat a slow run once. A 429 has failed the test already.
      expect(await measureUsage(count)).toBeGreaterThanOrEqual(0.9);
    },
  );
});
