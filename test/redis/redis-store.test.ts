import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { redisLimiter } from '../../src/redis/index.js';
import {
  createWebhookHandler,
  memoryStore,
  type RedisClient,
  redisStore,
  signWebhook,
  type WebhookStore,
} from '../../src/webhooks/index.js';
import { completedEvent } from '../support/completed-event.js';
import { type RealRedis, startCluster, startRedis, whyNoRedis } from './real-redis.js';
import { startUpstash } from './upstash-bridge.js';

const secret = 'whsec_test';
const event = completedEvent('job_1', 'https://gen.test', '2026-01-02T03:04:05.000Z');

describe.skipIf(whyNoRedis())('a store in Redis', () => {
  let redis: RealRedis;
  let cluster: Awaited<ReturnType<typeof startCluster>>;
  let upstash: Awaited<ReturnType<typeof startUpstash>>;
  beforeAll(async () => {
    redis = await startRedis();
    cluster = await startCluster();
    upstash = await startUpstash(redis.ioredis);
  });
  afterAll(async () => {
    upstash.close();
    await cluster.close();
    await redis.close();
  });
  beforeEach(async () => {
    await redis.ioredis.flushall();
    await cluster.flush();
  });

  const clients = {
    ioredis: () => redis.ioredis,
    'node-redis': () => redis.nodeRedis,
    'a cluster by ioredis': () => cluster.ioredis,
    'a cluster by node-redis': () => cluster.nodeRedis,
    'the HTTP client of Upstash': () => upstash.client({ enableAutoPipelining: false }),
    'the HTTP client of Upstash, which gathers commands': () => upstash.client({ enableAutoPipelining: true }),
    'the HTTP client of Upstash, as text': () => upstash.client({ responseEncoding: false }),
    memory: () => undefined,
  };

  describe.each(Object.entries(clients))('over %s', (_, clientOf) => {
    /** As many stores over one state as there are processes; in memory there is one. */
    const stores = (count: number): WebhookStore[] => {
      const memory = memoryStore();
      const client = clientOf();
      return Array.from({ length: count }, () => (client === undefined ? memory : redisStore(client)));
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

  test.each(Object.entries(clients).filter(([name]) => !/cluster|memory/.test(name)))(
    'a Redis that lost its scripts is given them again by %s',
    async (name, clientOf) => {
      const client = clientOf();
      if (client === undefined) expect.unreachable();
      const store = redisStore(client, { prefix: `${name}:` });
      expect(await store.claim('evt', 60_000)).toBe('new');
      await redis.ioredis.script('FLUSH');
      expect(await store.claim('evt', 60_000)).toBe('busy');
    },
  );

  test('another error of Redis is thrown, and the script is not sent again', async () => {
    const evaluate = vi.fn(async () => 'new');
    const evalSha = vi.fn(() => Promise.reject(new Error('READONLY You cannot write against a read only replica.')));
    const store = redisStore({ eval: evaluate, evalSha });
    await store.claim('evt', 1);
    await expect(store.claim('evt', 1)).rejects.toThrow('READONLY');
    expect([evaluate.mock.calls.length, evalSha.mock.calls.length]).toEqual([1, 1]);
  });
});

describe('a client', () => {
  const call = async () => 'new';
  const upstash = { eval: call, evalsha: call };
  // As @vercel/kv has it: the methods are made when they are asked for.
  const proxy: typeof upstash = new Proxy({} as typeof upstash, {
    get: (_, name) => (name === 'eval' || name === 'evalsha' ? call : undefined),
  });
  const shapes: Record<string, RedisClient> = {
    'node-redis': { eval: call, evalSha: call },
    ioredis: { eval: call, evalsha: call, defineCommand: () => {} },
    upstash,
    'a proxy': proxy,
  };

  test.each(Object.entries(shapes))('is known by its methods: %s', async (_, client) => {
    expect(await redisStore(client).claim('evt', 1)).toBe('new');
  });

  test.each([
    ['nothing', undefined, 'undefined'],
    ['null', null, 'null'],
    ['a URL', 'redis://localhost', '"redis://localhost"'],
    ['an object without scripts', { get: call, set: call }, 'an object'],
    ['the options of a client', { host: 'localhost', port: 6379 }, 'an object'],
    ['half a client', { eval: call }, 'an object'],
  ])('of no known shape is refused at once: %s', (_, client, shown) => {
    const message = `client must be a connected client of @upstash/redis, ioredis or redis (node-redis), not ${shown}.`;
    // @ts-expect-error what JavaScript callers pass
    expect(() => redisStore(client)).toThrow(expect.objectContaining({ name: 'GenError', message }));
    // @ts-expect-error what JavaScript callers pass
    expect(() => redisLimiter(client)).toThrow(message);
  });

  test('is asked with random numbers only when it is used: a Worker draws none while its module loads', async () => {
    const random = vi.spyOn(crypto, 'randomUUID');
    const store = redisStore(upstash);
    expect(random).not.toHaveBeenCalled();
    await store.claim('evt', 1);
    await store.release('evt');
    expect(random).toHaveBeenCalledOnce();
    redisLimiter(upstash);
    expect(random).toHaveBeenCalledOnce();
    random.mockRestore();
  });
});
