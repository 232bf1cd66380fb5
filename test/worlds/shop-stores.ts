// The stores of a shop: a file, two functions of its own, and Redis.
import { join } from 'node:path';
import { fileStore } from '../../src/adapters/node/index.js';
import { redisStore } from '../../src/adapters/redis/index.js';
import type { RealRedis } from '../redis/real-redis.js';
import { ownStore } from '../support/own-store.js';
import type { ShopStore } from './shop.js';

/** Two functions of the user, on a database that no process takes with it. */
export function inOwn(): ShopStore {
  return { store: ownStore(), reopen: async () => {} };
}

/** A file, which the next process opens anew. */
export function inFile(folder: string, name: string): ShopStore {
  const store = fileStore(join(folder, name));
  return { store, reopen: () => store.close() };
}

/** A Redis, in which each shop has a prefix of its own. */
export function inRedis({ ioredis }: RealRedis, prefix: string): ShopStore {
  return { store: redisStore(ioredis, { prefix }), reopen: async () => {} };
}
