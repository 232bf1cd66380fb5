// What a handled webhook event leaves behind: one small value, for as long as its id is remembered.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { redisStore } from '../../src/adapters/redis/index.js';
import { memoryStore, type Store } from '../../src/index.js';
import { createWebhookHandler, signWebhook } from '../../src/webhooks/index.js';
import { startRedis, whyNoRedis } from '../redis/real-redis.js';

const SECRET = 'whsec_test';

async function handleEvents(store: Store, count: number): Promise<void> {
  let handled = 0;
  const on = {
    'job.completed': () => {
      handled += 1;
    },
  };
  const handler = createWebhookHandler({ secret: SECRET, store, ack: 'after', on });
  for (let at = 0; at < count; at++) {
    const id = `evt_${crypto.randomUUID()}`;
    const event = {
      id,
      type: 'job.completed',
      created_at: new Date().toISOString(),
      data: { job: { id: `job_${at}` } },
    };
    const { body, headers } = await signWebhook(event, { secret: SECRET });
    await handler(new Request('https://app.example/hook', { method: 'POST', body, headers }));
  }
  expect(handled).toBe(count);
}

function heapBytes(): number {
  setFlagsFromString('--expose-gc');
  const gc: () => void = runInNewContext('gc');
  for (let times = 0; times < 3; times++) gc();
  return process.memoryUsage().heapUsed;
}

test('a handled event takes at most 250 bytes of this process', async () => {
  const store = memoryStore();
  await handleEvents(store, 500);
  const before = heapBytes();
  await handleEvents(store, 6_000);
  const bytes = (heapBytes() - before) / 6_000;
  expect(bytes).toBeLessThan(250);
  expect((await store.read('g', [])).values).toEqual({});
});

test.skipIf(whyNoRedis())('a handled event is one key of at most 250 bytes in Redis', async () => {
  const redis = await startRedis();
  try {
    await handleEvents(redisStore(redis.ioredis), 20);
    const keys = await redis.ioredis.keys('*');
    expect(keys).toHaveLength(20);
    for (const key of keys) expect(await redis.ioredis.memory('USAGE', key)).toBeLessThanOrEqual(250);
  } finally {
    await redis.close();
  }
});
