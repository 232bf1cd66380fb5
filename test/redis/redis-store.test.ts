import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  createWebhookHandler,
  memoryStore,
  redisStore,
  signWebhook,
  type WebhookStore,
} from '../../src/webhooks/index.js';
import { completedEvent } from '../support/completed-event.js';
import { type RealRedis, startRedis, whyNoRedis } from './real-redis.js';

const secret = 'whsec_test';
const event = completedEvent('job_1', 'https://gen.test', '2026-01-02T03:04:05.000Z');

describe.skipIf(whyNoRedis())('a store in Redis', () => {
  let redis: RealRedis;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.close());
  beforeEach(() => redis.ioredis.flushall());

  describe.each(['ioredis', 'node-redis', 'memory'] as const)('over %s', (kind) => {
    /** As many stores over one state as there are processes; in memory there is one. */
    const stores = (count: number): WebhookStore[] => {
      const memory = memoryStore();
      const client = kind === 'ioredis' ? redis.ioredis : redis.nodeRedis;
      return Array.from({ length: count }, () => (kind === 'memory' ? memory : redisStore(client)));
    };

    test('an event is new once, busy until it ended, and done then', async () => {
      const [one, other] = stores(2) as [WebhookStore, WebhookStore];
      expect(await one.claim('evt', 60_000)).toBe('new');
      expect(await other.claim('evt', 60_000)).toBe('busy');
      await one.complete('evt', 60_000);
      expect(await other.claim('evt', 60_000)).toBe('done');
      expect(await other.claim('evt_2', 60_000)).toBe('new');
    });

    test('a released event is new again', async () => {
      const [one, other] = stores(2) as [WebhookStore, WebhookStore];
      await one.claim('evt', 60_000);
      await one.release('evt');
      expect(await other.claim('evt', 60_000)).toBe('new');
    });

    test('of two hundred claims at once one hears "new"', async () => {
      const claims = await Promise.all(stores(200).map((store) => store.claim('evt', 60_000)));
      expect(claims.filter((found) => found === 'new')).toHaveLength(1);
      expect(claims.filter((found) => found === 'busy')).toHaveLength(199);
    });

    test('a lease and a memory run out', async () => {
      const [one, other] = stores(2) as [WebhookStore, WebhookStore];
      await one.claim('evt', 20);
      await vi.waitFor(async () => expect(await other.claim('evt', 60_000)).toBe('new'), { interval: 5 });
      await other.complete('evt', 20);
      await vi.waitFor(async () => expect(await one.claim('evt', 60_000)).toBe('new'), { interval: 5 });
    });

    test('fifty copies over five receivers are handled once', async () => {
      const work = vi.fn(async () => {});
      const handlers = stores(5).map((store) =>
        createWebhookHandler({ secret, store, ack: 'after', on: { '*': work } }),
      );
      const { body, headers } = await signWebhook(event, { secret });
      const answers = Array.from({ length: 50 }, (_, at) => {
        return handlers[at % 5]?.(new Request('https://me.test/hook', { method: 'POST', body, headers }));
      });
      const statuses = (await Promise.all(answers)).map((answer) => answer?.status);
      expect(work).toHaveBeenCalledOnce();
      expect(statuses).toContain(200);
      expect(statuses.every((status) => status === 200 || status === 503)).toBe(true);
    });
  });

  test('a process whose lease ran out does not release the claim of the next', async () => {
    const late = redisStore(redis.ioredis);
    const next = redisStore(redis.nodeRedis);
    await late.claim('evt', 1);
    await vi.waitFor(async () => expect(await next.claim('evt', 60_000)).toBe('new'), { interval: 5 });
    await late.release('evt');
    expect(await late.claim('evt', 60_000)).toBe('busy');
  });

  test('keys carry the prefix and a time to live', async () => {
    const store = redisStore(redis.ioredis, { prefix: 'mine:' });
    await store.claim('evt', 60_000);
    expect(await redis.ioredis.keys('*')).toEqual(['mine:evt']);
    expect(await redis.ioredis.pttl('mine:evt')).toBeGreaterThan(50_000);
    await store.complete('evt', 90_000.5);
    expect(await redis.ioredis.pttl('mine:evt')).toBeGreaterThan(80_000);
  });

  test('a Redis that lost its scripts is given them again', async () => {
    for (const client of [redis.ioredis, redis.nodeRedis]) {
      const store = redisStore(client, { prefix: `${client === redis.ioredis}:` });
      expect(await store.claim('evt', 60_000)).toBe('new');
      await redis.ioredis.script('FLUSH');
      expect(await store.claim('evt', 60_000)).toBe('busy');
    }
  });
});
