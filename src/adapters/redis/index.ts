export type { Store, StoreChanges, StoredValues } from '../../store/store.js';
export type { IoRedisClient, NodeRedisClient, RedisClient, UpstashRedisClient } from './redis-clients.js';
export type { RedisStore, RedisStoreOptions } from './redis-store.js';
export { redisStore } from './redis-store.js';
