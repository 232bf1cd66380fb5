import { ConnectionError } from '../../errors/client-errors.js';
import { GenError } from '../../errors/gen-error.js';
import * as option from '../../rules/options.js';
import { callObserver } from '../../runtime/callbacks.js';
import { type Store, setupError } from '../../store/store.js';
import {
  isPubSubClient,
  openSubscriber,
  type PubSubClient,
  type RedisClient,
  redisScript,
  type Subscriber,
} from './redis-clients.js';

/** How {@link redisStore} uses Redis. */
export interface RedisStoreOptions {
  /** Put before every key and channel. @default 'gen-client:' */
  readonly prefix?: string | undefined;
  /**
   * Your name for the account of the service. All clients that use the store then count together, also with several keys,
   * as during a rotation. @default clients with the same base URL and key count together
   */
  readonly account?: string | undefined;
  /** Milliseconds after which a Redis that neither answers nor fails counts as unavailable. @default 2000 */
  readonly timeoutMs?: number | undefined;
  /** Called with each failure of Redis. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** A {@link Store} in Redis. */
export interface RedisStore extends Store {
  /** Ends the connection on which waits are notified, if there is one. The client that you passed stays open. */
  close(): Promise<void>;
}

const OPTIONS = option.optionsOf({
  prefix: option.text,
  account: option.text,
  timeoutMs: option.milliseconds,
  onError: option.callback,
});

/**
 * Keys: the group's version, then the keys that are read or changed. Values: the version, then for each key how long it
 * lives in milliseconds, 0 to delete it, and its value. `read` as version reads.
 */
const SWAP = `
local time = redis.call('TIME')
local version = redis.call('GET', KEYS[1]) or '0'
if ARGV[1] == 'read' then
  local reply = { 'v' .. version, string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)) }
  for at = 2, #KEYS do
    local value = redis.call('GET', KEYS[at])
    reply[at + 1] = value and '=' .. value or '-'
  end
  return reply
end
if ARGV[1] ~= 'v' .. version then return 0 end
local longest = math.max(60000, redis.call('PTTL', KEYS[1]))
for at = 2, #KEYS do
  local ttl = tonumber(ARGV[2 * at - 2])
  if ttl > 0 then redis.call('SET', KEYS[at], ARGV[2 * at - 1], 'PX', ttl) else redis.call('DEL', KEYS[at]) end
  longest = math.max(longest, ttl)
end
-- The time makes it unlike every version before the group was forgotten.
local stamp = math.max(time[1] * 1000000 + time[2], version + 1)
redis.call('SET', KEYS[1], string.format('%.0f', stamp), 'PX', longest)
return 1`;

/**
 * A {@link Store} in Redis 5 or later, for any number of processes and machines. Takes a connected client of
 * `ioredis`, `redis` (node-redis) or `@upstash/redis`, also of a cluster.
 *
 * With `ioredis` and `redis`, waits are notified across processes: from its first wait to its last, a process has one more
 * connection, made with `client.duplicate()`. Upstash's client works over HTTP, so waits poll. Throws a GenError for
 * another client and for an option that cannot be right.
 *
 * @example
 * const client = new GenClient({ store: redisStore(redis) });
 */
export function redisStore(redis: RedisClient, options: RedisStoreOptions = {}): RedisStore {
  option.checkOptions('redisStore', OPTIONS, options);
  const swap = redisScript(redis, SWAP);
  const { prefix = 'gen-client:', account, timeoutMs = 2_000, onError } = options;
  if (prefix.includes('{}')) throw new GenError('prefix must not contain "{}", which splits the keys of a cluster.');
  const failed = (error: unknown) => callObserver(() => onError?.(error));
  const ask = (keys: string[], values: readonly (string | number)[]) =>
    swap(keys, values).catch((error: unknown) => {
      failed(error);
      throw redisRefusal(error, prefix) ?? error;
    });
  const keysOf = (group: string, keys: readonly string[]) => {
    // One hash tag: a cluster keeps the keys of a group together.
    const start = `${prefix}{${group.replace(/[%{}]/g, encodeURIComponent)}}`;
    return [start, ...keys.map((key) => `${start}:${key}`)];
  };
  return {
    account,
    timeoutMs,
    async read(group, keys) {
      const reply: unknown = await ask(keysOf(group, keys), ['read']);
      const [version, nowMs, ...found] = Array.isArray(reply) ? reply.map(String) : [];
      if (version === undefined) throw new GenError('Redis did not answer as its script does.');
      const values: Record<string, string> = Object.create(null);
      for (const [at, key] of keys.entries()) if (found[at]?.startsWith('=')) values[key] = found[at].slice(1);
      return { version, nowMs: Number(nowMs), values };
    },
    async write(group, version, changes) {
      const values = Object.values(changes).flatMap((change) =>
        change === null ? ['0', ''] : [String(Math.max(1, Math.ceil(change.ttlMs))), change.value],
      );
      return Number(await ask(keysOf(group, Object.keys(changes)), [version, ...values])) === 1;
    },
    ...(isPubSubClient(redis) ? notifications(redis, { prefix, failed }) : { close: async () => {} }),
  };
}

function notifications(
  client: PubSubClient,
  { prefix, failed }: { readonly prefix: string; readonly failed: (error: unknown) => void },
) {
  const listeners = new Map<string, Set<(message: string) => void>>();
  let subscriber: Subscriber | undefined;
  const received = (channel: string, message: string) => {
    for (const listener of [...(listeners.get(channel) ?? [])]) callObserver(() => listener(message), failed);
  };
  const close = () => {
    listeners.clear();
    subscriber?.close();
    subscriber = undefined;
  };
  const stop = (channel: string, listener: (message: string) => void) => {
    const own = listeners.get(channel);
    if (!own?.delete(listener) || own.size > 0) return;
    listeners.delete(channel);
    if (listeners.size === 0) close();
    else subscriber?.unsubscribe(channel);
  };
  return {
    async publish(topic: string, message: string): Promise<void> {
      await client.publish(`${prefix}${topic}`, message).catch((error: unknown) => {
        failed(error);
        throw error;
      });
    },
    subscribe(topic: string, listener: (message: string) => void): () => void {
      const channel = `${prefix}${topic}`;
      // A function of its own, so that the same listener may be given twice.
      const own = (message: string) => listener(message);
      listeners.set(channel, (listeners.get(channel) ?? new Set()).add(own));
      subscriber ??= openSubscriber(client, { wanted: listeners, received, failed });
      subscriber.subscribe(channel);
      return () => stop(channel, own);
    },
    async close(): Promise<void> {
      close();
    },
  };
}

/** What Redis refuses for good, by the word that its answer begins with, and what to do. */
const FIXES: Readonly<Record<string, (prefix: string) => string>> = {
  NOPERM: (prefix) =>
    `Give its user the commands eval, evalsha, publish and subscribe, and the keys and channels ${prefix}*.`,
  WRONGPASS: () => 'Correct the user name and the password of the Redis client.',
  NOAUTH: () => 'Give the Redis client its password.',
  CROSSSLOT: () => 'Choose a prefix without braces.',
};

/** After a failover, the server that a client still reaches is a replica until it connects anew. */
const REPLICA = 'READONLY';

/** The error for what Redis refuses; undefined for a failure of another kind. Upstash puts words before the code. */
function redisRefusal(error: unknown, prefix: string): GenError | undefined {
  const message = error instanceof Error ? error.message : String(error);
  const [code = ''] = new RegExp(`\\b(${[...Object.keys(FIXES), REPLICA].join('|')})\\b`).exec(message) ?? [];
  const refused = `Redis refuses gen-client (${code})`;
  if (code === REPLICA) {
    const fix = 'a replica cannot be written to, so connect the Redis client to the primary';
    return new ConnectionError(`${refused}: ${fix}`, { cause: error });
  }
  const fix = FIXES[code]?.(prefix);
  return fix === undefined ? undefined : setupError(`${refused}. ${fix}`, error);
}
