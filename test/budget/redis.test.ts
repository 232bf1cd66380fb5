// A budget in a real Redis that stops and recovers. For a hanging store, see store.test.ts.
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { redisStore } from '../../src/adapters/redis/index.js';
import { startRedis, whyNoRedis } from '../redis/real-redis.js';
import { clientWithBudget, openService, runInSequence, VIDEO } from './service.js';

test.skipIf(whyNoRedis())(
  'creates reject without sending anything while Redis is unavailable, and count again after it recovers',
  async () => {
    const redis = await startRedis({ isPersistent: true });
    // A typical user configuration: commands wait for the connection and are retried.
    const connection = new Redis({ port: redis.port, host: '127.0.0.1', retryStrategy: () => 50 });
    connection.on('error', () => {});
    const service = openService();
    const { client, budget } = clientWithBudget(service, { maxTokens: 30, store: redisStore(connection) });
    await client.videos.create(VIDEO);
    await redis.stop();
    const startMs = performance.now();
    await expect(client.videos.create(VIDEO)).rejects.toMatchObject({ name: 'ConnectionError', attempts: 0 });
    expect(performance.now() - startMs).toBeLessThan(10_000);
    expect(service.jobs.size).toBe(1);
    await redis.restart();
    await expect.poll(() => connection.status).toBe('ready');
    await runInSequence(5, () => client.videos.create(VIDEO));
    expect(service.chargedTokens()).toBe(24);
    await expect.poll(() => budget.usage(), { timeout: 10_000 }).toMatchObject({ spentTokens: 24, reservedTokens: 0 });
    connection.disconnect();
    await redis.close();
  },
);
