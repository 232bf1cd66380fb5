import { ConnectionError } from '../../errors/client-errors.js';
import { GenError } from '../../errors/gen-error.js';
import { clientStore } from '../../ledger/client-ledger.js';
import * as option from '../../rules/options.js';
import { callObserver } from '../../runtime/callbacks.js';
import { mustBe } from '../../schemas/show.js';
import { type Store, setupError } from '../../store/store.js';

/** Options of {@link redisStore}. */
export interface RedisStoreOptions {
  /** Prefix of every key and channel. @default 'gen-client:' */
  readonly prefix?: string | undefined;
  /** Milliseconds to wait for a response before Redis counts as unavailable. @default 2000 */
  readonly timeoutMs?: number | undefined;
  /** Called for each Redis error. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** A {@link Store} in Redis. */
export interface RedisStore extends Store {
  /** Closes the connection for notifications, if there is one. Your own client stays open. */
  close(): Promise<void>;
}

const OPTIONS = option.optionsOf({
  prefix: option.text,
  timeoutMs: option.milliseconds,
  onError: option.callback,
});

/**
 * Keys: the group's own, then the keys that are read or changed. Values: the version, then for each key how long it lives in
 * milliseconds, 0 to delete it, and its value. `read` as version reads. A group with one value is one key, which has the stamp,
 * the end of the value, the length of its name, its name and the value. The version then names it, so that a write can give the
 * key to which the value moves when the group gets a second one.
 */
const SWAP = `
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local state = redis.call('GET', KEYS[1]) or '0 0 0 '
local stamp, ends, length, rest = string.match(state, '^(%d+) (%d+) (%d+) (.*)$')
local isOne = stamp ~= nil
stamp = stamp or state
local version, only, value = 'v' .. stamp, nil, nil
if isOne and tonumber(ends) > nowMs then
  only, value = string.sub(rest, 1, length), string.sub(rest, length + 1)
  version = version .. ':' .. only
end
local function nameOf(at) return string.sub(KEYS[at], #KEYS[1] + 2) end
if ARGV[1] == 'read' then
  local reply = { version, string.format('%.0f', nowMs) }
  for at = 2, #KEYS do
    local found = nil
    if not isOne then found = redis.call('GET', KEYS[at]) elseif nameOf(at) == only then found = value end
    reply[at + 1] = found and '=' .. found or '-'
  end
  return reply
end
if ARGV[1] ~= version then return 0 end
local last = (#ARGV - 1) / 2 + 1
local sets, set = 0, nil
for at = 2, last do
  if tonumber(ARGV[2 * at - 2]) > 0 then sets, set = sets + 1, at end
  if nameOf(at) == only then only = nil end
end
-- The time makes it unlike every version before the group was forgotten.
stamp = string.format('%.0f', math.max(time[1] * 1000000 + time[2], stamp + 1))
local longest = 60000
if only then longest = math.max(longest, ends - nowMs) end
if isOne and sets + (only and 1 or 0) <= 1 then
  local text = stamp .. ' 0 0 '
  if only then text = stamp .. ' ' .. ends .. ' ' .. length .. ' ' .. rest end
  if set then
    local ttl, name = tonumber(ARGV[2 * set - 2]), nameOf(set)
    longest = math.max(longest, ttl)
    text = stamp .. ' ' .. string.format('%.0f', nowMs + ttl) .. ' ' .. #name .. ' ' .. name .. ARGV[2 * set - 1]
  end
  redis.call('SET', KEYS[1], text, 'PX', longest)
  return 1
end
if only then redis.call('SET', KEYS[last + 1], value, 'PX', ends - nowMs) end
longest = math.max(longest, redis.call('PTTL', KEYS[1]))
for at = 2, last do
  local ttl = tonumber(ARGV[2 * at - 2])
  if ttl > 0 then redis.call('SET', KEYS[at], ARGV[2 * at - 1], 'PX', ttl) else redis.call('DEL', KEYS[at]) end
  longest = math.max(longest, ttl)
end
redis.call('SET', KEYS[1], stamp, 'PX', longest)
return 1`;

/**
 * Creates a {@link Store} in Redis 5 or later, for any number of processes and machines. Accepts a connected client of
 * `ioredis`, `redis` (node-redis), or `@upstash/redis`, including cluster clients.
 *
 * With `ioredis` and `redis`, waits are notified across processes over a second connection (`client.duplicate()`), which is
 * open only while a wait is in flight. With Upstash, waits poll. Throws a GenError for an unknown client or an invalid option.
 *
 * @example
 * const client = new GenClient({ store: redisStore(redis) });
 */
export function redisStore(redis: RedisClient, options: RedisStoreOptions = {}): RedisStore {
  option.checkOptions('redisStore', OPTIONS, options);
  const swap = redisScript(redis, SWAP);
  const { prefix = 'gen-client:', timeoutMs = 2_000, onError } = options;
  if (prefix.includes('{}')) throw new GenError('prefix must not contain "{}", which splits the keys of a cluster.');
  const failed = (error: unknown) => callObserver(() => onError?.(error));
  const ask = (keys: string[], values: string[]) =>
    swap(keys, values).catch((error: unknown) => {
      failed(error);
      throw redisRefusal(error, prefix) ?? error;
    });
  const keysOf = (group: string, keys: readonly string[]) => {
    // One hash tag: a cluster keeps the keys of a group together.
    const start = `${prefix}{${group.replace(/[%{}]/g, encodeURIComponent)}}`;
    return [start, ...keys.map((key) => `${start}:${key}`)];
  };
  return clientStore({
    timeoutMs,
    async read(group, keys) {
      const reply: unknown = await ask(keysOf(group, keys), ['read']);
      const [version, nowMs, ...found] = Array.isArray(reply) ? reply.map(String) : [];
      if (version === undefined)
        throw new GenError('Redis returned an unexpected response to the script of redisStore.');
      const values: Record<string, string> = Object.create(null);
      for (const [at, key] of keys.entries()) if (found[at]?.startsWith('=')) values[key] = found[at].slice(1);
      return { version, nowMs: Number(nowMs), values };
    },
    async write(group, version, changes) {
      const values = Object.values(changes).flatMap((change) =>
        change === null ? ['0', ''] : [String(Math.max(1, Math.ceil(change.ttlMs))), change.value],
      );
      const [, only] = /^v\d+:(.*)$/s.exec(version) ?? [];
      const keys = only === undefined ? Object.keys(changes) : [...Object.keys(changes), only];
      return Number(await ask(keysOf(group, keys), [version, ...values])) === 1;
    },
    ...(isPubSubClient(redis) ? notifications(redis, { prefix, failed }) : { close: async () => {} }),
  });
}

function notifications(
  client: PubSubClient,
  { prefix, failed }: { readonly prefix: string; readonly failed: (error: unknown) => void },
) {
  const listeners = new Map<string, Set<(message: string) => void>>();
  let subscriber: ReturnType<typeof openSubscriber> | undefined;
  const received = (channel: string, message: string) => {
    for (const listener of [...(listeners.get(channel) ?? [])]) callObserver(() => listener(message), failed);
  };
  const close = async () => {
    listeners.clear();
    subscriber?.close();
    subscriber = undefined;
  };
  return {
    publish: async (topic: string, message: string) => {
      await client.publish(`${prefix}${topic}`, message).catch((error: unknown) => {
        failed(error);
        throw redisRefusal(error, prefix) ?? error;
      });
    },
    subscribe(topic: string, listener: (message: string) => void): () => void {
      const channel = `${prefix}${topic}`;
      const own = listeners.get(channel) ?? new Set();
      listeners.set(channel, own);
      // A function of its own, so that the same listener may be given twice.
      const heard = (message: string) => listener(message);
      own.add(heard);
      subscriber ??= openSubscriber(client, { wanted: listeners, received, failed });
      subscriber.subscribe(channel);
      return () => {
        if (!own.delete(heard) || own.size > 0 || listeners.get(channel) !== own) return;
        listeners.delete(channel);
        if (listeners.size === 0) void close();
        else subscriber?.unsubscribe(channel);
      };
    },
    close,
  };
}

/** What Redis refuses for good: the code of it, how Redis or the client says it, and what to do. */
const REFUSALS: readonly { readonly code: string; readonly said: RegExp; fix(prefix: string): string }[] = [
  {
    code: 'NOPERM',
    // A command that is denied inside a script has no code of its own.
    said: /\bNOPERM\b|user executing the script can't |ACL failure in script/,
    fix: (prefix) =>
      `Allow its user the commands eval, evalsha, time, get, set, del, pttl, publish, subscribe and unsubscribe, and the keys and channels ${prefix}*.`,
  },
  {
    code: 'WRONGPASS',
    said: /\bWRONGPASS\b/,
    fix: () => 'Correct the user name and the password of the Redis client.',
  },
  { code: 'NOAUTH', said: /\bNOAUTH\b/, fix: () => 'Pass the password to the Redis client.' },
  { code: 'CROSSSLOT', said: /\bCROSSSLOT\b/, fix: () => 'Choose a prefix without braces.' },
];

/** What node-redis says of a client on which nobody has called `connect`, or that was closed. Away, it reconnects by itself. */
const NOT_CONNECTED = /^The client is closed$/;

/** The error for what can never work; undefined for an outage. Upstash puts words before the code. */
function redisRefusal(error: unknown, prefix: string): GenError | undefined {
  const message = error instanceof Error ? error.message : String(error);
  if (NOT_CONNECTED.test(message)) {
    return setupError('The client of redisStore is not connected: await its connect() before the first call.', error);
  }
  // After a failover, the server that a client still reaches is a replica until it connects anew.
  if (/\bREADONLY\b/.test(message)) {
    const fix = 'a replica is read-only, so connect the Redis client to the primary';
    return new ConnectionError(`Redis rejected gen-client (READONLY): ${fix}`, { cause: error });
  }
  const refusal = REFUSALS.find(({ said }) => said.test(message));
  return refusal && setupError(`Redis rejected gen-client (${refusal.code}). ${refusal.fix(prefix)}`, error);
}

// The Redis clients that people use, as one: their scripts and subscriptions. None is imported.

/** The methods of an `ioredis` client that the store uses. */
export interface IoRedisClient {
  /** Runs a Lua script. */
  eval(script: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>;
  /** Never called. Distinguishes `ioredis` from `@upstash/redis`. */
  defineCommand(name: string, definition: { readonly lua: string }): void;
}

/** The methods of a `redis` (node-redis) client that the store uses. */
export interface NodeRedisClient {
  /** Runs a Lua script. */
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  /** Never called. Identifies node-redis. */
  evalSha(sha1: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
}

/** The methods of an `@upstash/redis` client that the store uses. */
export interface UpstashRedisClient {
  /** Runs a Lua script. */
  eval(script: string, keys: string[], args: string[]): Promise<unknown>;
  /** Never called. Identifies `@upstash/redis`. */
  evalsha(sha1: string, keys: string[], args: string[]): Promise<unknown>;
}

/** A connected client of `ioredis`, `redis` (node-redis), or `@upstash/redis`, including cluster clients. */
export type RedisClient = IoRedisClient | NodeRedisClient | UpstashRedisClient;

/**
 * Makes a Lua script, which Redis runs as one step, of `source`. It is on its way to Redis when the call returns, so that
 * nothing asked of the client later (the end of the connection, say) passes it. Throws a {@link GenError} for a client of no
 * known shape.
 */
function redisScript(client: RedisClient, source: string): (keys: string[], args: string[]) => Promise<unknown> {
  if (isNodeRedis(client)) return async (keys, args) => client.eval(source, { keys, arguments: args });
  if (isIoRedis(client)) return async (keys, args) => client.eval(source, keys.length, ...keys, ...args);
  if (isUpstash(client)) return async (keys, args) => client.eval(source, keys, args);
  throw new GenError(mustBe('client', 'a connected client of @upstash/redis, ioredis or redis (node-redis)', client));
}

// By their methods and not by `in`: some clients are proxies that make a method when it is asked for.
const isNodeRedis = (client: RedisClient): client is NodeRedisClient => clientHas(client, 'evalSha');
const isIoRedis = (client: RedisClient): client is IoRedisClient => clientHas(client, 'eval', 'defineCommand');
const isUpstash = (client: RedisClient): client is UpstashRedisClient => clientHas(client, 'eval', 'evalsha');

function clientHas(client: unknown, ...names: readonly string[]): boolean {
  return (
    typeof client === 'object' &&
    client !== null &&
    names.every((name) => typeof Reflect.get(client, name) === 'function')
  );
}

/** A client that publishes, and from which a connection of its own can be made for subscribing. */
interface PubSubClient {
  publish(channel: string, message: string): Promise<unknown>;
  duplicate(): unknown;
}

/** Whether the client can publish and subscribe: those over HTTP cannot. */
function isPubSubClient(client: unknown): client is PubSubClient {
  return clientHas(client, 'publish', 'duplicate');
}

/** What is used of a connection of both clients. */
interface PubSubConnection {
  /** Of ioredis. */
  readonly status?: string;
  on(event: string, listener: (...values: never[]) => void): unknown;
  connect(): Promise<unknown>;
  /** node-redis alone takes a listener. */
  subscribe(channel: string, listener?: (message: string, channel: string) => void): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  /** Of node-redis, where it is version 5 or later. */
  destroy?(): unknown;
  disconnect(): unknown;
}

interface SubscriberOptions {
  readonly wanted: ReadonlyMap<string, unknown>;
  readonly received: (channel: string, message: string) => void;
  readonly failed: (error: unknown) => void;
}

/**
 * Opens one more connection: one that subscribes can do nothing else. Whenever it is ready, also after a break, it subscribes
 * to all channels that are wanted. Nothing here throws.
 */
function openSubscriber(client: PubSubClient, { wanted, received, failed }: SubscriberOptions) {
  const connection = client.duplicate() as PubSubConnection;
  const isIoRedis = clientHas(client, 'defineCommand');
  let state: 'opening' | 'ready' | 'closed' = 'opening';
  const report = (error: unknown) => {
    if (state !== 'closed') failed(error);
  };
  // One function for all: node-redis calls each that it was given, and keeps them over a break.
  const heard = isIoRedis ? undefined : (message: string, channel: string) => received(channel, message);
  const subscribe = (channel: string) => {
    if (state !== 'ready') return;
    (heard ? connection.subscribe(channel, heard) : connection.subscribe(channel)).catch(report);
  };
  const end = async () => (heard && connection.destroy ? connection.destroy() : connection.disconnect());
  const close = () => {
    state = 'closed';
    // Where it was not connected, there is nothing to end.
    end().catch(() => {});
  };
  const ready = () => {
    if (state === 'closed') return close();
    state = 'ready';
    for (const channel of wanted.keys()) subscribe(channel);
  };
  connection.on('error', report);
  connection.on('ready', ready);
  if (isIoRedis) connection.on('message', received);
  // ioredis connects by itself, unless it is lazy.
  if (heard || connection.status === 'wait') connection.connect().then(ready, report);
  return {
    subscribe,
    unsubscribe(channel: string) {
      if (state === 'ready') connection.unsubscribe(channel).catch(report);
    },
    close,
  };
}
