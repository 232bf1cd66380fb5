import { type RedisClient, redisScript } from '../redis-client.js';
import { CALLBACK, checkOptions, type Rule, TEXT, wholeAboveZero } from './options.js';

/** What a claim found: nobody had the event, somebody works on it, or it was handled. */
export type WebhookClaim = 'new' | 'busy' | 'done';

/** Remembers which events were handled, so that each is handled once (spec: Events, delivery rule 6). */
export interface WebhookStore {
  /**
   * Takes the event for `leaseMs` milliseconds, atomically: of any number of claims at once, one gets `new`. After the
   * lease an event that was neither completed nor released can be claimed again, because whoever held it has crashed.
   */
  claim(id: string, leaseMs: number): Promise<WebhookClaim>;
  /** Notes that the event was handled: for `ttlMs` milliseconds every claim gets `done`. */
  complete(id: string, ttlMs: number): Promise<void>;
  /** Notes that the event was not handled: the next claim gets `new`. */
  release(id: string): Promise<void>;
}

/** How much a {@link memoryStore} remembers. */
export interface MemoryStoreOptions {
  /** Handled events that are remembered at most, and claims that are held at most. The oldest go first. @default 10_000 */
  readonly maxEntries?: number | undefined;
  /** Gives the current time in milliseconds, for tests. @default Date.now */
  readonly now?: (() => number) | undefined;
}

const MEMORY_RULES: Readonly<Record<keyof MemoryStoreOptions, Rule>> = {
  maxEntries: wholeAboveZero('a whole number above 0'),
  now: CALLBACK,
};

/**
 * A {@link WebhookStore} in the memory of this process, for a receiver that is one process. A restart loses it. Throws a
 * GenError for an option that cannot be right.
 */
export function memoryStore(options: MemoryStoreOptions = {}): WebhookStore {
  checkOptions('memoryStore', MEMORY_RULES, options);
  const { maxEntries = 10_000, now = Date.now } = options;
  const held = new Map<string, number>();
  const handled = new Map<string, number>();
  const isLive = (until: number | undefined) => until !== undefined && until > now();
  const keep = (entries: Map<string, number>, id: string, until: number) => {
    entries.delete(id);
    entries.set(id, until);
    for (const oldest of entries.keys()) {
      if (entries.size <= maxEntries) break;
      entries.delete(oldest);
    }
  };
  return {
    async claim(id, leaseMs) {
      if (isLive(handled.get(id))) return 'done';
      if (isLive(held.get(id))) return 'busy';
      keep(held, id, now() + leaseMs);
      return 'new';
    },
    async complete(id, ttlMs) {
      held.delete(id);
      keep(handled, id, now() + ttlMs);
    },
    async release(id) {
      held.delete(id);
    },
  };
}

/** How a {@link redisStore} names its keys. */
export interface RedisStoreOptions {
  /** Put before each event id. @default 'gen-client:webhook:' */
  readonly prefix?: string | undefined;
}

const REDIS_RULES: Readonly<Record<keyof RedisStoreOptions, Rule>> = { prefix: TEXT };

const CLAIM = `
local held = redis.call('GET', KEYS[1])
if held == 'done' then return 'done' end
if held then return 'busy' end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 'new'`;

const COMPLETE = `return redis.call('SET', KEYS[1], 'done', 'PX', ARGV[1])`;

// Only a claim of one's own: after the lease it may be another process's.
const RELEASE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;

/**
 * A {@link WebhookStore} that any number of processes share through one Redis. Takes a connected client of `ioredis`,
 * `redis` (node-redis) or `@upstash/redis`. Each event is one key, which Redis drops by itself. Throws a GenError for
 * another client and for an option that cannot be right.
 */
export function redisStore(client: RedisClient, options: RedisStoreOptions = {}): WebhookStore {
  checkOptions('redisStore', REDIS_RULES, options);
  const { prefix = 'gen-client:webhook:' } = options;
  let drawn: string | undefined;
  // Drawn with the first claim, because a Worker draws no random numbers while its module loads.
  const owner = () => (drawn ??= `busy:${crypto.randomUUID()}`);
  const claim = redisScript(client, CLAIM);
  const complete = redisScript(client, COMPLETE);
  const release = redisScript(client, RELEASE);
  const keys = (id: string) => [prefix + id];
  return {
    claim: async (id, leaseMs) => String(await claim(keys(id), [owner(), wholeMs(leaseMs)])) as WebhookClaim,
    async complete(id, ttlMs) {
      await complete(keys(id), [wholeMs(ttlMs)]);
    },
    async release(id) {
      await release(keys(id), [owner()]);
    },
  };
}

/** Redis takes whole milliseconds, at least one. */
function wholeMs(ms: number): number {
  return Math.max(1, Math.ceil(ms));
}
