// The memory that a finished job and its handled event use, because an account may create a million jobs a week.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { redisStore } from '../../src/adapters/redis/index.js';
import { GenClient, memoryStore, type Store } from '../../src/index.js';
import { createSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { createWebhookHandler, signWebhook } from '../../src/webhooks/index.js';
import { startRedis, whyNoRedis } from '../redis/real-redis.js';

const SECRET = 'whsec_test';

/** Returns a function that handles a job's event with the store. */
function openReceiver(store: Store) {
  let handled = 0;
  const on = { 'job.completed': () => void handled++ };
  const handler = createWebhookHandler({ secret: SECRET, store, on });
  return async (jobId: string) => {
    const handledBefore = handled;
    const id = `evt_${crypto.randomUUID()}`;
    const event = { id, type: 'job.completed', created_at: new Date().toISOString(), data: { job: { id: jobId } } };
    const { body, headers } = await signWebhook(event, { secret: SECRET });
    await handler(new Request('https://app.example/hook', { method: 'POST', body, headers }));
    expect(handled - handledBefore).toBe(1);
  };
}

/** Returns a function that finishes jobs, whose idempotency keys have a typical length, and handles their events. */
function openAccount(store: Store): (count: number) => Promise<void> {
  const openSandbox = () => createSandbox({ jobDurationMs: 0, limits: 'off', balanceTokens: 1e9 });
  let sandbox: Sandbox = openSandbox();
  const client = new GenClient({
    ...{ apiKey: 'sk_test', baseUrl: sandbox.baseUrl, store, account: 'main', rateLimit: 'off' },
    fetch: (input, init) => {
      const headers = new Headers(init.headers);
      headers.set('authorization', `Bearer ${sandbox.apiKey}`);
      return sandbox.fetch(new Request(input, { ...init, headers }));
    },
  });
  const receive = openReceiver(store);
  return async (count) => {
    for (let at = 0; at < count; at++) {
      // Replace the sandbox, which retains its jobs.
      if (at % 50 === 0) sandbox = openSandbox();
      const { job } = await client.images.create({ prompt: 'a fox' }, { idempotencyKey: crypto.randomUUID() });
      await client.markStored(await client.waitForJob(job.id, { pollIntervalMs: 1 }));
      await receive(job.id);
    }
  };
}

function heapBytes(): number {
  setFlagsFromString('--expose-gc');
  const gc: () => void = runInNewContext('gc');
  for (let times = 0; times < 3; times++) gc();
  return process.memoryUsage().heapUsed;
}

test('a handled event uses at most 500 bytes of memory', async () => {
  const receive = openReceiver(memoryStore());
  for (let at = 0; at < 500; at++) await receive('job_1');
  const heapBefore = heapBytes();
  for (let at = 0; at < 6_000; at++) await receive('job_1');
  const bytes = (heapBytes() - heapBefore) / 6_000;
  // Use the store after the measurement, so that it isn't collected earlier.
  await receive('job_1');
  expect(bytes).toBeGreaterThan(30);
  // A key takes about 400 bytes, or more in some engines. Two keys per event would take at least 700.
  expect(bytes).toBeLessThanOrEqual(500);
});

test.skipIf(whyNoRedis())(
  'a finished job and its event use at most three keys and 500 bytes in Redis',
  async () => {
    const redis = await startRedis();
    try {
      const finishJobs = openAccount(redisStore(redis.ioredis));
      // The first jobs create the account's prices and limits.
      await finishJobs(20);
      const keysBefore = new Set(await redis.ioredis.keys('*'));
      await finishJobs(20);
      const added = (await redis.ioredis.keys('*')).filter((key) => !keysBefore.has(key));
      const sizes = await Promise.all(added.map((key) => redis.ioredis.memory('USAGE', key)));
      const bytes = sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0) / 20;
      expect(added.length).toBeLessThanOrEqual(60);
      expect(bytes).toBeLessThanOrEqual(500);
    } finally {
      await redis.close();
    }
  },
  120_000,
);
