// The memory that a finished job and its handled event use. A busy account creates a million jobs a week.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { redisStore } from '../../src/adapters/redis/index.js';
import { GenClient, memoryStore, type Store } from '../../src/index.js';
import { createSandbox, type Sandbox } from '../../src/sandbox/index.js';
import { createWebhookHandler, signWebhook } from '../../src/webhooks/index.js';
import { startRedis, whyNoRedis } from '../redis/real-redis.js';

const SECRET = 'whsec_test';

/** Creates a webhook handler on the store. */
function receiver(store: Store) {
  let handled = 0;
  const on = { 'job.completed': () => void handled++ };
  const handler = createWebhookHandler({ secret: SECRET, store, on });
  return async (jobId: string) => {
    const before = handled;
    const id = `evt_${crypto.randomUUID()}`;
    const event = { id, type: 'job.completed', created_at: new Date().toISOString(), data: { job: { id: jobId } } };
    const { body, headers } = await signWebhook(event, { secret: SECRET });
    await handler(new Request('https://app.example/hook', { method: 'POST', body, headers }));
    expect(handled - before).toBe(1);
  };
}

/** Runs jobs to their end, with keys of a typical length, and handles each one's event. */
function busyAccount(store: Store): (count: number) => Promise<void> {
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
  const receive = receiver(store);
  return async (count) => {
    for (let at = 0; at < count; at++) {
      // Discard the sandbox's own memory.
      if (at % 50 === 0) sandbox = openSandbox();
      const { job } = await client.images.create({ prompt: 'a fox' }, { idempotencyKey: crypto.randomUUID() });
      const done = await client.waitForJob(job.id, { pollIntervalMs: 1 });
      await client.markStored(done);
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
  const receive = receiver(memoryStore());
  for (let at = 0; at < 500; at++) await receive('job_1');
  const before = heapBytes();
  for (let at = 0; at < 6_000; at++) await receive('job_1');
  const bytes = (heapBytes() - before) / 6_000;
  // Use the store after the measurement, so that it isn't collected before.
  await receive('job_1');
  expect(bytes).toBeGreaterThan(30);
  // One key is about 400 bytes, and more on some engines. A second key per event would be 700 or more.
  expect(bytes).toBeLessThanOrEqual(500);
});

test.skipIf(whyNoRedis())(
  'a finished job and its event use at most three keys and 500 bytes in Redis',
  async () => {
    const redis = await startRedis();
    try {
      const finishJobs = busyAccount(redisStore(redis.ioredis));
      // The first jobs create the per-account entries: prices and limits.
      await finishJobs(20);
      const before = new Set(await redis.ioredis.keys('*'));
      await finishJobs(20);
      const left = (await redis.ioredis.keys('*')).filter((key) => !before.has(key));
      const sizes = await Promise.all(left.map((key) => redis.ioredis.memory('USAGE', key)));
      const bytes = sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0) / 20;
      expect(left.length).toBeLessThanOrEqual(60);
      expect(bytes).toBeLessThanOrEqual(500);
    } finally {
      await redis.close();
    }
  },
  120_000,
);
