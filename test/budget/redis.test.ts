// Budgets in a real Redis that is frozen, killed or full of other things. Waits in real time.

import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { redisStore } from '../../src/adapters/redis/index.js';
import { type RealRedis, startRedis, whyNoRedis } from '../redis/real-redis.js';
import { inTurn, openService, spenderOn, VIDEO } from './service.js';

describe.skipIf(whyNoRedis())('a budget in a Redis', () => {
  let redis: RealRedis;
  /** As a user makes it: commands wait for the connection, and are repeated. */
  let plain: Redis;
  beforeAll(async () => {
    redis = await startRedis();
    plain = new Redis({ port: redis.port, host: '127.0.0.1' });
    plain.on('error', () => {});
  });
  afterAll(async () => {
    plain.disconnect();
    await redis.close();
  });

  async function frozen(work: () => Promise<void>): Promise<void> {
    const pid = Number(/process_id:(\d+)/.exec(await redis.ioredis.info('server'))?.[1]);
    process.kill(pid, 'SIGSTOP');
    try {
      await work();
    } finally {
      process.kill(pid, 'SIGCONT');
    }
  }

  test('that is frozen between a create and its answer delays the answer for a moment at most', async () => {
    const service = openService();
    const { client, budget } = spenderOn(service, { maxTokens: 100, scope: 'frozen', store: redisStore(plain) });
    const pid = Number(/process_id:(\d+)/.exec(await redis.ioredis.info('server'))?.[1]);
    const freezing = client.withOptions({
      async fetch(input, init) {
        process.kill(pid, 'SIGSTOP');
        return service.fetch(input, init);
      },
    });
    const began = performance.now();
    const { job } = await freezing.videos.create(VIDEO);
    expect(performance.now() - began).toBeLessThan(10_000);
    expect(job.id).toBe('job_1');
    process.kill(pid, 'SIGCONT');
    expect(await budget.usage()).toMatchObject({ spentTokens: 12, reservedTokens: 0 });
  });

  test('that is frozen delays neither an abort nor a time limit, and nothing is sent', async () => {
    const service = openService();
    const { client } = spenderOn(service, { maxTokens: 100, scope: 'aborted', store: redisStore(plain) });
    await frozen(async () => {
      const began = performance.now();
      await expect(client.videos.create(VIDEO, { signal: AbortSignal.timeout(500) })).rejects.toMatchObject({
        name: 'TimeoutError',
      });
      await expect(client.videos.create(VIDEO, { timeoutMs: 500 })).rejects.toMatchObject({
        name: 'ConnectionError',
        attempts: 0,
      });
      expect(performance.now() - began).toBeLessThan(10_000);
    });
    expect(service.jobs.size).toBe(0);
  });

  test('that is away refuses creates within its time limit, and nothing is sent', async () => {
    const own = await startRedis({ keeps: true });
    const client = new Redis({ port: own.port, host: '127.0.0.1', retryStrategy: () => 50 });
    client.on('error', () => {});
    const service = openService();
    const { client: spender, budget } = spenderOn(service, { maxTokens: 30, store: redisStore(client) });
    await spender.videos.create(VIDEO);
    await own.stop();
    const began = performance.now();
    await expect(spender.videos.create(VIDEO)).rejects.toMatchObject({ name: 'ConnectionError', attempts: 0 });
    expect(performance.now() - began).toBeLessThan(10_000);
    expect(service.jobs.size).toBe(1);
    await own.restart();
    await expect.poll(() => client.status).toBe('ready');
    await inTurn(5, () => spender.videos.create(VIDEO));
    expect(service.charged()).toBe(24);
    await expect.poll(() => budget.usage(), { timeout: 10_000 }).toMatchObject({ spentTokens: 24, reservedTokens: 0 });
    client.disconnect();
    await own.close();
  });
});
