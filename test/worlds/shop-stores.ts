// A shop's stores: a file, its own two functions, and Redis.
import { join } from 'node:path';
import { fileStore } from '../../src/adapters/node/index.js';
import { redisStore } from '../../src/adapters/redis/index.js';
import type { RealRedis } from '../redis/real-redis.js';
import { customStore } from '../support/custom-store.js';
import type { ShopStore } from './shop.js';

/** The user's two functions, on a database that survives crashes. */
export function openCustomStore(): ShopStore {
  return { store: customStore(), reopen: async () => {} };
}

/** A file that each process reopens. */
export function openFileStore(folder: string, name: string): ShopStore {
  const store = fileStore(join(folder, name));
  return { store, reopen: () => store.close() };
}

/** Redis, with a prefix per shop. */
export function openRedisStore({ ioredis }: RealRedis, prefix: string): ShopStore {
  return { store: redisStore(ioredis, { prefix }), reopen: async () => {} };
}
