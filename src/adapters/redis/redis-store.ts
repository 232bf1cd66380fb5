import { ConnectionError } from '../../errors/client-errors.js';
import { GenError } from '../../errors/gen-error.js';
import { clientStore } from '../../ledger/client-ledger.js';
import * as option from '../../rules/options.js';
import { callObserver } from '../../runtime/callbacks.js';
import { invalidValueMessage } from '../../schemas/format-value.js';
import { type Store, setupError } from '../../store/store.js';

/** Options for {@link redisStore}. */
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
  /** Closes the notification connection. Your own client stays open. */
  close(): Promise<void>;
}

const OPTIONS = option.optionsOf({
  prefix: option.text,
  timeoutMs: option.milliseconds,
  onError: option.callback,
});

/**
 * A script that reads keys, or changes them if the version matches. Keys: the group's version, then the keys to read or
 * change. Arguments: `read`, or the version and, for each key, its lifetime in milliseconds (0 to delete it) and its
 * value.
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
-- Based on the time, so that an expired group never repeats a version.
version = string.format('%.0f', math.max(time[1] * 1000000 + time[2], version + 1))
redis.call('SET', KEYS[1], version, 'PX', longest)
return 1`;

/**
 * Creates a {@link Store} in Redis 5 or later, for any number of processes and machines. Accepts a connected client of
 * `ioredis`, `redis` (node-redis), or `@upstash/redis`, including cluster clients. Throws a GenError for an unknown
 * client or an invalid option.
 *
 * @example
 * const client = new GenClient({ store: redisStore(redis) });
 */
export function redisStore(redis: RedisClient, options: RedisStoreOptions = {}): RedisStore {
  option.checkOptions('redisStore', OPTIONS, options);
  const script = redisScript(redis, SWAP);
  const { prefix = 'gen-client:', timeoutMs = 2_000, onError } = options;
  if (prefix.includes('{}'))
    throw new GenError(
      'redisStore: prefix must not contain "{}", which splits the keys of a cluster. Pass another prefix.',
    );
  const report = (error: unknown) => callObserver(() => onError?.(error));
  const runScript = (keys: string[], values: string[]) =>
    script(keys, values).catch((error: unknown) => {
      report(error);
      throw redisMisconfiguration(error, prefix) ?? error;
    });
  const keysOf = (group: string, keys: readonly string[]) => {
    // A shared hash tag, so that a cluster stores a group's keys on one node.
    const start = `${prefix}{${group.replace(/[%{}]/g, encodeURIComponent)}}`;
    return [start, ...keys.map((key) => `${start}:${key}`)];
  };
  return clientStore({
    timeoutMs,
    async read(group, keys) {
      const reply: unknown = await runScript(keysOf(group, keys), ['read']);
      const [version, nowMs, ...replies] = Array.isArray(reply) ? reply.map(String) : [];
      if (version === undefined)
        throw new GenError(
          'redisStore: the client returned an unexpected reply. Pass a client that does not transform replies.',
        );
      const values: Record<string, string> = Object.create(null);
      for (const [at, key] of keys.entries()) if (replies[at]?.startsWith('=')) values[key] = replies[at].slice(1);
      return { version, nowMs: Number(nowMs), values };
    },
    async write(group, version, changes) {
      const values = Object.values(changes).flatMap((change) =>
        change === null ? ['0', ''] : [String(Math.max(1, Math.ceil(change.ttlMs))), change.value],
      );
      return Number(await runScript(keysOf(group, Object.keys(changes)), [version, ...values])) === 1;
    },
    ...(isPubSubClient(redis) ? openNotifications(redis, { prefix, report }) : { close: async () => {} }),
  });
}

function openNotifications(
  client: PubSubClient,
  { prefix, report }: { readonly prefix: string; readonly report: (error: unknown) => void },
) {
  const listeners = new Map<string, Set<(message: string) => void>>();
  let subscriber: ReturnType<typeof openSubscriber> | undefined;
  const deliver = (channel: string, message: string) => {
    for (const listener of [...(listeners.get(channel) ?? [])]) callObserver(() => listener(message), report);
  };
  const close = async () => {
    listeners.clear();
    subscriber?.close();
    subscriber = undefined;
  };
  return {
    publish: async (topic: string, message: string) => {
      await client.publish(`${prefix}${topic}`, message).catch((error: unknown) => {
        report(error);
        throw redisMisconfiguration(error, prefix) ?? error;
      });
    },
    subscribe(topic: string, listener: (message: string) => void): () => void {
      const channel = `${prefix}${topic}`;
      const subscribed = listeners.get(channel) ?? new Set();
      listeners.set(channel, subscribed);
      // Wrap the listener, so that it is called twice if it subscribes twice.
      const wrapped = (message: string) => listener(message);
      subscribed.add(wrapped);
      subscriber ??= openSubscriber(client, { channels: listeners, deliver, report });
      subscriber.subscribe(channel);
      return () => {
        if (!subscribed.delete(wrapped) || subscribed.size > 0 || listeners.get(channel) !== subscribed) return;
        listeners.delete(channel);
        if (listeners.size === 0) void close();
        else subscriber?.unsubscribe(channel);
      };
    },
    close,
  };
}

/** Errors that a retry can't fix: the code, a pattern for the message, and the fix. */
const SETUP_ERRORS: readonly { readonly code: string; readonly message: RegExp; fix(prefix: string): string }[] = [
  {
    code: 'NOPERM',
    // A command that is denied inside a script has no error code.
    message: /\bNOPERM\b|user executing the script can't |ACL failure in script/,
    fix: (prefix) =>
      `Allow its user the commands eval, evalsha, time, get, set, del, pttl, publish, subscribe, and unsubscribe, and the keys and channels ${prefix}*.`,
  },
  {
    code: 'WRONGPASS',
    message: /\bWRONGPASS\b/,
    fix: () => 'Correct the user name and the password of the Redis client.',
  },
  { code: 'NOAUTH', message: /\bNOAUTH\b/, fix: () => 'Pass the password to the Redis client.' },
  { code: 'CROSSSLOT', message: /\bCROSSSLOT\b/, fix: () => 'Pass a prefix without braces.' },
];

/** Error message of node-redis if its client was never connected or was closed. After a lost connection, it reconnects. */
const NOT_CONNECTED = /^The client is closed$/;

/** Returns the error for a misconfiguration, or undefined for an outage. Upstash adds text before the code. */
function redisMisconfiguration(error: unknown, prefix: string): GenError | undefined {
  const message = error instanceof Error ? error.message : String(error);
  if (NOT_CONNECTED.test(message)) {
    return setupError('redisStore: the client is not connected. Await its connect() before the first call.', error);
  }
  // After a failover, a client may still be connected to a replica.
  if (/\bREADONLY\b/.test(message)) {
    const fix = 'a replica is read-only, so connect the Redis client to the primary';
    return new ConnectionError(`Redis rejected gen-client (READONLY): ${fix}`, { cause: error });
  }
  const match = SETUP_ERRORS.find((setup) => setup.message.test(message));
  return match && setupError(`Redis rejected gen-client (${match.code}). ${match.fix(prefix)}`, error);
}

// The common interface of the Redis clients: scripts and subscriptions. No client package is imported.

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
 * Returns a function that runs the Lua script, which Redis executes atomically. It's sent before the function returns,
 * so that a later `quit` can't overtake it. Throws a GenError for an unknown client.
 */
function redisScript(client: RedisClient, source: string): (keys: string[], args: string[]) => Promise<unknown> {
  if (isNodeRedis(client)) return async (keys, args) => client.eval(source, { keys, arguments: args });
  if (isIoRedis(client)) return async (keys, args) => client.eval(source, keys.length, ...keys, ...args);
  if (isUpstash(client)) return async (keys, args) => client.eval(source, keys, args);
  throw new GenError(
    invalidValueMessage('client', 'a connected client of @upstash/redis, ioredis, or redis (node-redis)', client),
  );
}

// Checks the methods' types, because some clients are proxies that create any method on access.
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

/** A client that can publish, and that can open a second connection for subscriptions. */
interface PubSubClient {
  publish(channel: string, message: string): Promise<unknown>;
  duplicate(): unknown;
}

/** Returns true if the client can publish and subscribe. Clients over HTTP can't. */
function isPubSubClient(client: unknown): client is PubSubClient {
  return clientHas(client, 'publish', 'duplicate');
}

/** The methods of a connection that both clients have. */
interface PubSubConnection {
  /** Only in ioredis. */
  readonly status?: string;
  on(event: string, listener: (...values: never[]) => void): unknown;
  connect(): Promise<unknown>;
  /** Only node-redis accepts a listener. */
  subscribe(channel: string, listener?: (message: string, channel: string) => void): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  /** Only in node-redis 5 and later. */
  destroy?(): unknown;
  disconnect(): unknown;
}

interface SubscriberOptions {
  readonly channels: ReadonlyMap<string, unknown>;
  readonly deliver: (channel: string, message: string) => void;
  readonly report: (error: unknown) => void;
}

/**
 * Opens a second connection, because a subscribed one can't run other commands. Subscribes to all channels
 * whenever the connection is ready, including after a reconnect. Never throws.
 */
function openSubscriber(client: PubSubClient, { channels, deliver, report }: SubscriberOptions) {
  const connection = client.duplicate() as PubSubConnection;
  const isIoRedis = clientHas(client, 'defineCommand');
  let state: 'opening' | 'ready' | 'closed' = 'opening';
  const onError = (error: unknown) => {
    if (state !== 'closed') report(error);
  };
  // One function for all channels, because node-redis calls a channel's listeners again after a reconnect.
  const listener = isIoRedis ? undefined : (message: string, channel: string) => deliver(channel, message);
  const subscribe = (channel: string) => {
    if (state !== 'ready') return;
    (listener ? connection.subscribe(channel, listener) : connection.subscribe(channel)).catch(onError);
  };
  const end = async () => (listener && connection.destroy ? connection.destroy() : connection.disconnect());
  const close = () => {
    state = 'closed';
    // Fails if it was never connected.
    end().catch(() => {});
  };
  const onReady = () => {
    if (state === 'closed') return close();
    state = 'ready';
    for (const channel of channels.keys()) subscribe(channel);
  };
  connection.on('error', onError);
  connection.on('ready', onReady);
  if (isIoRedis) connection.on('message', deliver);
  // ioredis connects automatically, unless it's lazy.
  if (listener || connection.status === 'wait') connection.connect().then(onReady, onError);
  return {
    subscribe,
    unsubscribe(channel: string) {
      if (state === 'ready') connection.unsubscribe(channel).catch(onError);
    },
    close,
  };
}
