// The permissions of a Redis user. The error for missing permissions lists all that are required.
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { type RedisClient, redisStore } from '../../src/adapters/redis/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { isSetupError } from '../../src/store/store.js';
import { PATIENCE_MS } from '../support/patience.js';
import { errorOf } from '../support/rejection.js';
import { type RealRedis, startRedis, whyNoRedis } from './real-redis.js';

/** Permissions that both clients need to connect. */
const CONNECT = ['+ping', '+info', '+hello', '+client'];

describe.skipIf(whyNoRedis())('a Redis user', () => {
  let redis: RealRedis;
  const disconnects: (() => unknown)[] = [];
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterEach(() => {
    for (const disconnect of disconnects.splice(0)) disconnect();
  });
  afterAll(() => redis.close());

  /** Connects a client as a user with these permissions. */
  async function connect(kind: string, permissions: readonly string[]): Promise<RedisClient> {
    await redis.ioredis.call('ACL', 'SETUSER', 'app', 'reset', 'on', '>pass', ...CONNECT, ...permissions);
    if (kind === 'ioredis') {
      const client = new Redis({ port: redis.port, host: '127.0.0.1', username: 'app', password: 'pass' });
      client.on('error', () => {});
      disconnects.push(() => client.disconnect());
      return client;
    }
    const client = createClient({ url: `redis://app:pass@127.0.0.1:${redis.port}` });
    client.on('error', () => {});
    disconnects.push(() => client.destroy());
    await client.connect();
    return client;
  }

  const rejectionOf = async (client: RedisClient) => {
    const error = await errorOf(redisStore(client).read('group', []));
    expect(isSetupError(error)).toBe(true);
    return error as Error;
  };

  test.each(['ioredis', 'node-redis'])(
    'with only the permissions in the error message can use the entire store with %s',
    async (kind) => {
      const { message } = await rejectionOf(await connect(kind, ['+get', '~*']));
      const [, commands = '', keys = ''] = /commands (.*), and the keys and channels (\S+)\.$/.exec(message) ?? [];
      const permissions = commands.split(/, (?:and )?/).map((command) => `+${command}`);
      const client = await connect(kind, [...permissions, `~${keys}`, `&${keys}`]);
      const onError = vi.fn();
      const store = redisStore(client, { onError });
      const listener = vi.fn();
      const stop = store.subscribe?.('topic', listener);
      await vi.waitFor(async () => {
        await store.publish?.('topic', 'hello');
        expect(listener).toHaveBeenCalledWith('hello');
      }, PATIENCE_MS);
      const write = async (changes: Parameters<typeof store.write>[2]) =>
        store.write('group', (await store.read('group', [])).version, changes);
      const value = { value: '1', ttlMs: 90_000 };
      expect(await write({ one: value })).toBe(true);
      expect(await write({ one: value, two: value })).toBe(true);
      expect(await write({ one: null })).toBe(true);
      const sandbox = createSandbox();
      await sandbox.client({ store }).videos.create({ prompt: 'a fox at dawn' });
      stop?.();
      await store.close();
      expect(onError).not.toHaveBeenCalled();
      expect(sandbox.jobs).toHaveLength(1);
    },
  );

  test.each(['ioredis', 'node-redis'])(
    "without permission for one of the script's commands causes an error that lists the commands with %s",
    async (kind) => {
      const { message } = await rejectionOf(await connect(kind, ['+eval', '+evalsha', '~*']));
      expect(message).toContain(
        'Allow its user the commands eval, evalsha, time, get, set, del, pttl, publish, subscribe',
      );
    },
  );

  test('without access to the keys causes an error that lists the keys', async () => {
    const { message } = await rejectionOf(await connect('ioredis', ['+@all', '~other:*']));
    expect(message).toContain('gen-client:*');
  });

  test('without permission to publish causes a setup error', async () => {
    const client = await connect('ioredis', ['+@all', '-publish', '~*', '&*']);
    await expect(redisStore(client).publish?.('topic', 'hello')).rejects.toSatisfy(isSetupError);
  });
});

test('a node-redis client that was never connected causes a setup error', async () => {
  const sandbox = createSandbox();
  const store = redisStore(createClient({ url: 'redis://127.0.0.1:6379' }));
  const created = sandbox.client({ store }).videos.create({ prompt: 'a fox at dawn' });
  await expect(created).rejects.toMatchObject({
    message: expect.stringContaining(
      'redisStore: the client is not connected. Await its connect() before the first call.',
    ),
    recovery: 'fix_setup',
  });
  expect(sandbox.requests).toHaveLength(0);
});
