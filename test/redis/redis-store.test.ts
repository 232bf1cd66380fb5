// Behavior of redisStore beyond the store contract. For the contract, see test/shared.
import { EventEmitter } from 'node:events';
import { pathToFileURL } from 'node:url';
import { Redis, type RedisOptions } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { RedisClient } from '../../src/adapters/redis/index.js';
import { redisStore } from '../../src/adapters/redis/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { PATIENCE_MS } from '../support/patience.js';
import { findTool } from '../support/real-tools.js';
import { errorOf } from '../support/rejection.js';
import { type RealRedis, startRedis, whyNoRedis } from './real-redis.js';

interface Connection {
  readonly client: RedisClient;
  end(): unknown;
}

const put = async (store: ReturnType<typeof redisStore>, group = 'group', value = '1', ttlMs = 90_000) =>
  store.write(group, (await store.read(group, [])).version, { key: { value, ttlMs } });

describe.skipIf(whyNoRedis())('redisStore', () => {
  let redis: RealRedis;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(async () => {
    await redis.close();
  });
  beforeEach(() => redis.ioredis.flushall());

  test("adds its prefix to every key, one hash tag to a group's keys, and a TTL to each", async () => {
    const store = redisStore(redis.ioredis, { prefix: 'mine:' });
    for (const group of ['plain', '}', '{}', 'a{b}c', '100%']) await put(store, group);
    const keys = await redis.ioredis.keys('*');
    expect(keys).toHaveLength(10);
    for (const key of keys) {
      expect(key).toMatch(/^mine:\{[^{}]+\}(:key)?$/);
      expect(await redis.ioredis.pttl(key)).toBeGreaterThan(80_000);
      expect(await redis.ioredis.pttl(key)).toBeLessThanOrEqual(90_000);
    }
  });

  test("retains a group's version as long as its longest-lived key", async () => {
    const store = redisStore(redis.ioredis);
    const both = { long: { value: '1', ttlMs: 500_000 }, short: { value: '2', ttlMs: 10 } };
    await store.write('group', (await store.read('group', [])).version, both);
    await put(store, 'group', '2', 10);
    expect(await redis.ioredis.pttl('gen-client:{group}')).toBeGreaterThan(400_000);
  });

  test('counts as unavailable while Redis is a replica, as in a failover', async () => {
    const sandbox = createSandbox();
    const logger = { error() {}, warn: vi.fn(), info() {}, debug() {} };
    const client = sandbox.client({ store: redisStore(redis.ioredis), logger });
    await redis.ioredis.replicaof('127.0.0.1', 1);
    try {
      // A create isn't sent until it is recorded, while other calls continue.
      const create = client.videos.create({ prompt: 'a fox' });
      await expect(create).rejects.toMatchObject({ name: 'ConnectionError', attempts: 0 });
      await expect(client.jobs.get('job_1')).rejects.toMatchObject({ status: 404 });
      await expect(put(redisStore(redis.ioredis))).rejects.toMatchObject({
        name: 'ConnectionError',
        message: expect.stringMatching(/^Redis rejected gen-client \(READONLY\): .* to the primary/),
      });
    } finally {
      await redis.ioredis.replicaof('NO', 'ONE');
    }
    expect(sandbox.jobs).toHaveLength(0);
    expect(String(logger.warn.mock.calls)).toMatch(/to the primary/);
  });

  describe('its notifications', () => {
    const connections = async () => {
      const list = String(await redis.ioredis.client('LIST'));
      return list.split('\n').filter((line) => /sub=[1-9]/.test(line)).length;
    };
    const openNodeRedis = (module: 'redis-4' | 'redis-5') => async () => {
      const { default: redisModule } = await import(pathToFileURL(findTool(module) ?? '').href);
      const client = redisModule.createClient({ url: `redis://127.0.0.1:${redis.port}` });
      client.on('error', () => {});
      await client.connect();
      return { client, end: () => client.disconnect() };
    };
    const openIoredis = (options: Pick<RedisOptions, 'enableOfflineQueue' | 'lazyConnect'> = {}) => {
      const client = new Redis({ port: redis.port, host: '127.0.0.1', ...options });
      return { client, end: () => client.disconnect() };
    };
    const pubsub: Record<string, () => Connection | Promise<Connection>> = {
      ...(findTool('redis-4') && { 'node-redis 4': openNodeRedis('redis-4') }),
      ...(findTool('redis-5') && { 'node-redis 5': openNodeRedis('redis-5') }),
      ioredis: () => openIoredis(),
      'ioredis without an offline queue': () => openIoredis({ enableOfflineQueue: false }),
      'ioredis that connects on its first command': () => openIoredis({ lazyConnect: true }),
      'node-redis': () => ({ client: redis.nodeRedis, end: () => {} }),
    };

    test.each(Object.entries(pubsub))(
      'reach every listener through %s, and leave no connection open',
      async (_, open) => {
        const { client, end } = await open();
        const onError = vi.fn();
        const [store, other] = [redisStore(client, { onError }), redisStore(redis.ioredis)];
        const messages: string[] = [];
        const stops = ['a', 'a', 'b'].map((topic) =>
          store.subscribe?.(topic, (message) => messages.push(`${topic} ${message}`)),
        );
        for (const topic of ['a', 'b'])
          await vi.waitFor(async () => {
            await other.publish?.(topic, 'ready');
            expect(messages).toContain(`${topic} ready`);
          }, PATIENCE_MS);
        await other.publish?.('a', '{"text":"ünï"}');
        await expect.poll(() => messages.filter((text) => text === 'a {"text":"ünï"}')).toHaveLength(2);
        expect(await connections()).toBe(1);
        for (const stop of stops) stop?.();
        await expect.poll(connections).toBe(0);
        expect(onError).not.toHaveBeenCalled();
        store.subscribe?.('a', () => {});
        await expect.poll(connections).toBe(1);
        await store.close();
        await expect.poll(connections).toBe(0);
        end();
      },
    );

    test.each(['ioredis', 'node-redis'])('arrive once each after a broken connection, through %s', async (kind) => {
      const { client, end } = (await pubsub[kind]?.()) ?? expect.unreachable();
      const store = redisStore(client);
      const messages: string[] = [];
      store.subscribe?.('a', (message) => messages.push(message));
      for (let breaks = 0; breaks < 3; breaks++) {
        await expect.poll(connections).toBe(1);
        await redis.ioredis.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
        await vi.waitFor(async () => {
          await redis.ioredis.publish('gen-client:a', `${breaks}`);
          expect(messages).toContain(`${breaks}`);
        }, PATIENCE_MS);
      }
      await redis.ioredis.publish('gen-client:a', 'one');
      await redis.ioredis.publish('gen-client:a', 'end');
      await expect.poll(() => messages).toContain('end');
      expect(messages.slice(messages.indexOf('one'))).toEqual(['one', 'end']);
      await store.close();
      end();
    });
  });

  test('tolerates a listener that throws', async () => {
    const onError = vi.fn();
    const store = redisStore(redis.ioredis, { onError });
    const messages = vi.fn();
    store.subscribe?.('a', () => {
      throw new Error('broken');
    });
    store.subscribe?.('a', messages);
    await vi.waitFor(async () => {
      await store.publish?.('a', 'x');
      expect(messages).toHaveBeenCalled();
    }, PATIENCE_MS);
    await store.close();
  });
});

/** Creates a client like Upstash's that returns the replies in order, or throws them if they are errors. */
function fakeClient(...replies: unknown[]): RedisClient {
  const call = async () => {
    const reply = replies.shift();
    if (reply instanceof Error) throw reply;
    return reply;
  };
  return { eval: call, evalsha: call };
}

test.each([
  ['NOPERM no', /NOPERM.*Allow its user the commands eval, .*, and the keys and channels app:\*\.$/],
  ["ERR The user executing the script can't run this command or subcommand", /Allow its user the commands/],
  ['ERR ACL failure in script: User app has no permissions to run', /Allow its user the commands/],
  ['WRONGPASS no', /Correct the user name and the password/],
  ['Command failed: NOAUTH no', /Pass the password to the Redis client/],
  ['CROSSSLOT no', /Pass a prefix without braces/],
])('redisStore states the fix if Redis rejects with "%s"', async (reply, message) => {
  const cause = new Error(reply);
  const onError = vi.fn();
  const error = await errorOf(put(redisStore(fakeClient(cause), { prefix: 'app:', onError })));
  expect(error).toMatchObject({ message: expect.stringMatching(message), recovery: 'fix_setup', cause });
  expect(onError.mock.calls).toEqual([[cause]]);
});

test('redisStore rejects with any other error unchanged, and reports an unexpected reply', async () => {
  const failure = new Error('LOADING Redis is loading NOSCRIPT');
  await expect(put(redisStore(fakeClient(failure)))).rejects.toBe(failure);
  await expect(put(redisStore(fakeClient(null)))).rejects.toThrow(
    'redisStore: the client returned an unexpected reply. Pass a client that does not transform replies.',
  );
});

test('redisStore retries a rejected subscription with the next connection', async () => {
  const subscribe = vi.fn(async (_channel: string) => {});
  subscribe.mockRejectedValueOnce(new Error('no'));
  const connection = Object.assign(new EventEmitter(), {
    connect: async () => {},
    subscribe,
    unsubscribe: async () => {},
    disconnect: async () => {},
  });
  const onError = vi.fn();
  const client = { ...fakeClient(), publish: async () => 0, duplicate: () => connection };
  redisStore(client, { prefix: 'app:', onError }).subscribe?.('jobs', () => {});
  await vi.waitFor(() => expect(onError).toHaveBeenCalledWith(new Error('no')));
  connection.emit('ready');
  expect(subscribe.mock.calls.map(([channel]) => channel)).toEqual(['app:jobs', 'app:jobs']);
});

describe('a client', () => {
  const reply = async () => ['v0', '5'];
  const upstash = { eval: reply, evalsha: reply };
  // Like @vercel/kv, which creates methods on access.
  const proxy: typeof upstash = new Proxy({} as typeof upstash, {
    get: (_, name) => (name === 'eval' || name === 'evalsha' ? reply : undefined),
  });
  const clients: Record<string, RedisClient> = {
    'node-redis': { eval: reply, evalSha: reply },
    ioredis: { eval: reply, evalsha: reply, defineCommand: () => {} },
    Upstash: upstash,
    'a proxy': proxy,
  };

  test.each(Object.entries(clients))('is recognized by its methods: %s', async (_, client) => {
    expect(await redisStore(client).read('group', [])).toMatchObject({ version: 'v0', nowMs: 5 });
  });

  test.each([
    ['undefined', undefined, 'undefined'],
    ['null', null, 'null'],
    ['a URL', 'redis://localhost', 'a string'],
    ['an object without scripts', { get: reply, set: reply }, 'an object'],
    ["a client's options", { host: 'localhost', port: 6379 }, 'an object'],
    ['an incomplete client', { eval: reply }, 'an object'],
  ])('of an unknown type is rejected immediately: %s', (_, client, description) => {
    const message = `client must be a connected client of @upstash/redis, ioredis, or redis (node-redis), not ${description}.`;
    // @ts-expect-error: JavaScript callers can pass anything.
    expect(() => redisStore(client)).toThrow(expect.objectContaining({ name: 'GenError', message }));
  });
});
