export type { SharedChanges, SharedStore, SharedValues } from '../shared/shared-store.js';
export type { IoRedisClient, NodeRedisClient, RedisClient, UpstashRedisClient } from './redis-clients.js';
export type { RedisShared, RedisSharedOptions } from './redis-shared.js';
export { redisShared } from './redis-shared.js';
