// The Redis clients that people use, as one: their scripts and subscriptions. None is imported: the caller passes a connected client.
import { GenError } from '../../errors/gen-error.js';
import { mustBe } from '../../schemas/show.js';

/** What is needed of a client of `ioredis`. */
export interface IoRedisClient {
  /** Runs a Lua script. */
  eval(script: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>;
  /** Runs a Lua script that Redis has kept, by its SHA-1. */
  evalsha(sha1: string, keyCount: number, ...keysAndArguments: string[]): Promise<unknown>;
  /** Not called. It tells an ioredis client from one of `@upstash/redis`, whose other methods have the same names. */
  defineCommand(name: string, definition: { readonly lua: string }): void;
}

/** What is needed of a client of `redis` (node-redis). */
export interface NodeRedisClient {
  /** Runs a Lua script. */
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
  /** Runs a Lua script that Redis has kept, by its SHA-1. */
  evalSha(sha1: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>;
}

/** What is needed of a client of `@upstash/redis`, which reaches Redis over HTTP. */
export interface UpstashRedisClient {
  /** Runs a Lua script. */
  eval(script: string, keys: string[], args: string[]): Promise<unknown>;
  /** Runs a Lua script that Redis has kept, by its SHA-1. */
  evalsha(sha1: string, keys: string[], args: string[]): Promise<unknown>;
}

/** A connected client of `ioredis`, `redis` (node-redis) or `@upstash/redis`, also of a cluster. */
export type RedisClient = IoRedisClient | NodeRedisClient | UpstashRedisClient;

/** A Lua script that Redis runs as one step. */
type RedisScript = (keys: string[], values: readonly (string | number)[]) => Promise<unknown>;

/**
 * Makes a script of `source`. It is on its way to Redis when the call returns, so that nothing asked of the client later
 * (the end of the connection, say) passes it. Redis keeps it after the first call, and is sent it again when it has lost
 * it. Throws a {@link GenError} for a client of no known shape.
 */
export function redisScript(client: RedisClient, source: string): RedisScript {
  const { run, runKept } = commandsOf(client);
  let sha: string | undefined;
  return async (keys, values) => {
    const args = values.map(String);
    if (sha === undefined) {
      const [reply, digest] = await Promise.all([run(source, keys, args), sha1Of(source)]);
      sha = digest;
      return reply;
    }
    try {
      return await runKept(sha, keys, args);
    } catch (error) {
      if (!isUnknownScript(error)) throw error;
      return run(source, keys, args);
    }
  };
}

type Command = (script: string, keys: string[], args: string[]) => Promise<unknown>;

function commandsOf(client: RedisClient): { readonly run: Command; readonly runKept: Command } {
  if (isNodeRedis(client))
    return {
      run: (script, keys, args) => client.eval(script, { keys, arguments: args }),
      runKept: (sha1, keys, args) => client.evalSha(sha1, { keys, arguments: args }),
    };
  if (isIoRedis(client))
    return {
      run: (script, keys, args) => client.eval(script, keys.length, ...keys, ...args),
      runKept: (sha1, keys, args) => client.evalsha(sha1, keys.length, ...keys, ...args),
    };
  if (isUpstash(client))
    return {
      run: (script, keys, args) => client.eval(script, keys, args),
      runKept: (sha1, keys, args) => client.evalsha(sha1, keys, args),
    };
  throw new GenError(mustBe('client', 'a connected client of @upstash/redis, ioredis or redis (node-redis)', client));
}

// By their methods and not by `in`: some clients are proxies that make a method when it is asked for.
const isNodeRedis = (client: RedisClient): client is NodeRedisClient => clientHas(client, 'evalSha');
const isIoRedis = (client: RedisClient): client is IoRedisClient => clientHas(client, 'evalsha', 'defineCommand');
const isUpstash = (client: RedisClient): client is UpstashRedisClient => clientHas(client, 'evalsha');

function clientHas(client: unknown, ...names: readonly string[]): boolean {
  return (
    typeof client === 'object' &&
    client !== null &&
    names.every((name) => typeof Reflect.get(client, name) === 'function')
  );
}

/** Upstash puts words before it when it gathers several commands into one request. */
function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && /^(Command (\d+ \[ evalsha \] )?failed: )?NOSCRIPT/i.test(error.message);
}

async function sha1Of(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-1', new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** A client that publishes, and from which a connection of its own can be made for subscribing. */
export interface PubSubClient {
  publish(channel: string, message: string): Promise<unknown>;
  duplicate(): unknown;
}

/** Whether the client can publish and subscribe: those over HTTP cannot. */
export function isPubSubClient(client: unknown): client is PubSubClient {
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
export function openSubscriber(client: PubSubClient, { wanted, received, failed }: SubscriberOptions) {
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
