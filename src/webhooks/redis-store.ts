import { type RedisClient, redisScript } from '../redis-client.js';
import type { WebhookClaim, WebhookStore } from './stores.js';

/** How a {@link redisStore} names its keys. */
export interface RedisStoreOptions {
  /** Put before each event id. @default 'gen-client:webhook:' */
  readonly prefix?: string | undefined;
}

const CLAIM = `
local held = redis.call('GET', KEYS[1])
if held == 'done' then return 'done' end
if held then return 'busy' end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 'new'`;

const COMPLETE = `return redis.call('SET', KEYS[1], 'done', 'PX', ARGV[1])`;

// Only one's own claim: after the lease it may be another process's.
const RELEASE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;

/**
 * A {@link WebhookStore} that any number of processes share through one Redis. Takes a connected client of `ioredis` or
 * `redis` (node-redis). Each event is one key, which Redis drops by itself.
 */
export function redisStore(
  client: RedisClient,
  { prefix = 'gen-client:webhook:' }: RedisStoreOptions = {},
): WebhookStore {
  const owner = `busy:${crypto.randomUUID()}`;
  const claim = redisScript(client, CLAIM);
  const complete = redisScript(client, COMPLETE);
  const release = redisScript(client, RELEASE);
  const keys = (id: string) => [prefix + id];
  return {
    claim: async (id, leaseMs) => String(await claim(keys(id), [owner, wholeMs(leaseMs)])) as WebhookClaim,
    async complete(id, ttlMs) {
      await complete(keys(id), [wholeMs(ttlMs)]);
    },
    async release(id) {
      await release(keys(id), [owner]);
    },
  };
}

/** Redis takes whole milliseconds, at least one. */
function wholeMs(ms: number): number {
  return Math.max(1, Math.ceil(ms));
}
