// What each Redis client is asked, with the client in the test's hands: no Redis runs here.
import { EventEmitter } from 'node:events';
import { describe, expect, it, vi } from 'vitest';
import { redisStore } from '../../src/adapters/redis/index.js';
import { GenError } from '../../src/errors/index.js';

type Asked = unknown[];
const SHA1 = /^[\da-f]{40}$/;
const READ = ['v7', '1700000000000', '=a value', '-'];

/** A client of each kind that gives these replies in turn, the last one again and again; an Error is thrown. */
function clientOf(kind: 'ioredis' | 'node-redis' | 'upstash', ...replies: unknown[]) {
  const asked: Asked[] = [];
  const answer = async (...call: Asked) => {
    asked.push(call);
    const reply = replies.length > 1 ? replies.shift() : replies[0];
    if (reply instanceof Error) throw reply;
    return reply;
  };
  const run =
    (name: string) =>
    (script: string, ...rest: Asked) =>
      answer(name, SHA1.test(script) ? 'sha' : script.includes("redis.call('TIME')") ? 'swap' : script, ...rest);
  const client = {
    ioredis: { eval: run('eval'), evalsha: run('evalsha'), defineCommand() {} },
    'node-redis': { eval: run('eval'), evalSha: run('evalSha') },
    upstash: { eval: run('eval'), evalsha: run('evalsha') },
  }[kind];
  return { asked, client: client as never };
}
const GROUP = ['gen-client:{g}', 'gen-client:{g}:a', 'gen-client:{g}:b'];

describe.each([
  ['ioredis', 'evalsha', (keys: string[], values: string[]) => [keys.length, ...keys, ...values]],
  ['node-redis', 'evalSha', (keys: string[], values: string[]) => [{ keys, arguments: values }]],
  ['upstash', 'evalsha', (keys: string[], values: string[]) => [keys, values]],
] as const)('a store on %s', (kind, kept, given) => {
  it('sends its script once, and then its digest', async () => {
    const { asked, client } = clientOf(kind, READ, 1);
    const store = redisStore(client);
    const seen = await store.read('g', ['a', 'b']);
    expect({ ...seen, values: { ...seen.values } }).toEqual({
      version: 'v7',
      nowMs: 1_700_000_000_000,
      values: { a: 'a value' },
    });
    expect(await store.write('g', 'v7', { a: { value: 'x', ttlMs: 0.2 }, b: null })).toBe(true);
    expect(asked).toEqual([
      ['eval', 'swap', ...given(GROUP, ['read'])],
      [kept, 'sha', ...given(GROUP, ['v7', '1', 'x', '0', ''])],
    ]);
  });

  it.each([
    'NOSCRIPT No matching script.',
    'Command failed: NOSCRIPT No matching script.',
    'Command 1 [ evalsha ] failed: NOSCRIPT No matching script.',
  ])('sends its script again to a Redis that has lost it: %s', async (message) => {
    const { asked, client } = clientOf(kind, READ, new Error(message), 0);
    const store = redisStore(client);
    await store.read('g', []);
    expect(await store.write('g', 'v7', {})).toBe(false);
    expect(asked.map(([name]) => name)).toEqual(['eval', kept, 'eval']);
  });

  it('hands on any other failure of the digest', async () => {
    const failure = new Error('LOADING Redis is loading NOSCRIPT');
    const { asked, client } = clientOf(kind, READ, failure);
    const onError = vi.fn();
    const store = redisStore(client, { onError });
    await store.read('g', []);
    await expect(store.read('g', [])).rejects.toBe(failure);
    expect([asked.length, onError.mock.calls]).toEqual([2, [[failure]]]);
  });
});

describe('a store in Redis', () => {
  it('puts its prefix before a group, whose braces and percent signs are encoded, and has its time', async () => {
    const { asked, client } = clientOf('upstash', READ);
    const store = redisStore(client, { prefix: 'app:', timeoutMs: 50 });
    await store.read('a{b}%', ['k']);
    expect(asked[0]?.[2]).toEqual(['app:{a%7Bb%7D%25}', 'app:{a%7Bb%7D%25}:k']);
    expect([store.timeoutMs, redisStore(client).timeoutMs]).toEqual([50, 2_000]);
    await expect(store.close()).resolves.toBeUndefined();
  });

  it('does not take another answer for its own', async () => {
    const { client } = clientOf('upstash', null);
    await expect(redisStore(client).read('g', [])).rejects.toThrow(
      new GenError('Redis did not answer as its script does.'),
    );
  });

  it.each([
    [
      'NOPERM no',
      'NOPERM). Give its user the commands eval, evalsha, time, get, set, del, pttl, publish, subscribe and unsubscribe, and the keys and channels app:*.',
    ],
    [
      "ERR The user executing the script can't run this command or subcommand script: 1f, on @user_script:2.",
      'NOPERM). Give its user the commands eval, evalsha, time, get, set, del, pttl, publish, subscribe and unsubscribe, and the keys and channels app:*.',
    ],
    [
      "ERR ACL failure in script: User app has no permissions to run the 'time' command script: 1f, on @user_script:2.",
      'NOPERM). Give its user the commands eval, evalsha, time, get, set, del, pttl, publish, subscribe and unsubscribe, and the keys and channels app:*.',
    ],
    ['WRONGPASS no', 'WRONGPASS). Correct the user name and the password of the Redis client.'],
    ['Command failed: NOAUTH no', 'NOAUTH). Give the Redis client its password.'],
    ['CROSSSLOT no', 'CROSSSLOT). Choose a prefix without braces.'],
  ])('that refuses with "%s" says what to set up', async (message, fix) => {
    const cause = new Error(message);
    const onError = vi.fn();
    const store = redisStore(clientOf('upstash', cause).client, { prefix: 'app:', onError });
    await expect(store.read('g', [])).rejects.toMatchObject({
      message: `Redis refuses gen-client (${fix}`,
      recovery: 'fix_setup',
      cause,
    });
    expect(onError.mock.calls).toEqual([[cause]]);
  });

  it.each([undefined, null, 'redis://localhost', {}, { eval() {} }, { evalsha: true }])(
    'is refused for the client %j',
    (client) => {
      expect(() => redisStore(client as never)).toThrow(GenError);
      expect(() => redisStore(client as never)).toThrow(
        /^client must be a connected client of @upstash\/redis, ioredis or redis \(node-redis\), not /,
      );
    },
  );

  it('is refused with a prefix that splits a cluster', () => {
    expect(() => redisStore(clientOf('upstash').client, { prefix: 'a{}b' })).toThrow(
      new GenError('prefix must not contain "{}", which splits the keys of a cluster.'),
    );
  });
});

describe.each(['ioredis', 'node-redis', 'a cluster of node-redis', 'node-redis 4'])(
  'the notifications of %s',
  (kind) => {
    const isIoRedis = kind === 'ioredis';
    const setup = () => {
      const asked: Asked[] = [];
      const failures: unknown[] = [];
      let refuse: Error | undefined;
      const heard = new Map<string, (message: string, channel: string) => void>();
      const note = async (...call: Asked) => {
        asked.push(call);
        if (refuse) throw refuse;
      };
      const connection = Object.assign(new EventEmitter(), {
        status: 'wait',
        isReady: kind === 'a cluster of node-redis' ? undefined : false,
        async connect() {
          await note('connect');
          Object.assign(connection, { status: 'ready', ...(kind !== 'a cluster of node-redis' && { isReady: true }) });
        },
        subscribe(channel: string, listener?: (message: string, channel: string) => void) {
          if (listener) heard.set(channel, listener);
          return note('subscribe', channel);
        },
        unsubscribe: (channel: string) => note('unsubscribe', channel),
        disconnect: () => note('disconnect'),
        ...(!isIoRedis && kind !== 'node-redis 4' && { destroy: () => note('destroy') }),
      });
      const client = {
        ...(clientOf(isIoRedis ? 'ioredis' : 'node-redis', READ).client as object),
        publish: (...message: string[]) => note('publish', ...message),
        duplicate() {
          asked.push(['duplicate']);
          return connection;
        },
      };
      const store = redisStore(client as never, { prefix: 'app:', onError: (error) => failures.push(error) });
      const tell = (channel: string, message: string) =>
        isIoRedis ? connection.emit('message', channel, message) : heard.get(channel)?.(message, channel);
      return { asked, failures, connection, store, tell, refuse: (error?: Error) => (refuse = error) };
    };
    const turn = () => new Promise((resolve) => setImmediate(resolve));
    const END = isIoRedis || kind === 'node-redis 4' ? 'disconnect' : 'destroy';

    it('come on a connection of their own, from the first listener to the last', async () => {
      const { asked, store, tell, failures } = setup();
      const [one, two] = [vi.fn(), vi.fn()];
      const leave = [store.subscribe?.('jobs', one), store.subscribe?.('jobs', one), store.subscribe?.('other', two)];
      await turn();
      expect(asked).toEqual([['duplicate'], ['connect'], ['subscribe', 'app:jobs'], ['subscribe', 'app:other']]);
      tell('app:jobs', 'done');
      tell('app:nobody', 'x');
      expect([one.mock.calls, two.mock.calls]).toEqual([[['done'], ['done']], []]);
      leave[0]?.();
      leave[0]?.();
      tell('app:jobs', 'again');
      expect(one).toHaveBeenCalledTimes(3);
      leave[2]?.();
      expect(asked.slice(4)).toEqual([['unsubscribe', 'app:other']]);
      leave[1]?.();
      expect(asked.slice(5)).toEqual([[END]]);
      await store.publish?.('jobs', 'hello');
      expect(asked.at(-1)).toEqual(['publish', 'app:jobs', 'hello']);
      expect(failures).toEqual([]);
    });

    it('are subscribed again after a break, and a refused subscription with the next connection', async () => {
      const { asked, failures, connection, store, refuse } = setup();
      store.subscribe?.('jobs', () => {});
      await turn();
      connection.emit('ready');
      expect(asked.filter(([name]) => name === 'subscribe')).toHaveLength(1);
      connection.emit(isIoRedis ? 'close' : 'reconnecting');
      refuse(new Error('no'));
      connection.emit('ready');
      await turn();
      expect(failures).toEqual([new Error('no')]);
      refuse();
      connection.emit('ready');
      expect(asked.filter(([name]) => name === 'subscribe')).toHaveLength(3);
      const broken = new Error('broken');
      connection.emit('error', broken);
      expect(failures).toEqual([new Error('no'), broken]);
    });

    it('report a failed publish, and nothing once they are closed', async () => {
      const { asked, failures, connection, store, refuse } = setup();
      store.subscribe?.('jobs', () => {});
      await turn();
      refuse(new Error('no'));
      await expect(store.publish?.('jobs', 'x')).rejects.toThrow('no');
      expect(failures).toHaveLength(1);
      await store.close();
      connection.emit('error', new Error('late'));
      connection.emit('ready');
      await turn();
      expect(failures).toHaveLength(1);
      expect(asked.filter(([name]) => name === END)).toHaveLength(2);
    });

    it('report a listener that throws, and call the others', async () => {
      const { failures, store, tell } = setup();
      const other = vi.fn();
      const failure = new Error('of the listener');
      store.subscribe?.('jobs', () => {
        throw failure;
      });
      store.subscribe?.('jobs', other);
      await turn();
      tell('app:jobs', 'done');
      await turn();
      expect(other).toHaveBeenCalledOnce();
      expect(failures).toHaveLength(1);
    });
  },
);

it('there are no notifications over HTTP', () => {
  const store = redisStore(clientOf('upstash').client);
  expect([store.publish, store.subscribe]).toEqual([undefined, undefined]);
});
