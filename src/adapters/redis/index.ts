export type { SharedChanges, SharedStore, SharedValues } from '../../store/store.js';
export type { IoRedisClient, NodeRedisClient, RedisClient, UpstashRedisClient } from './redis-clients.js';
export type { RedisShared, RedisSharedOptions } from './redis-shared.js';
export { redisShared } from './redis-shared.js';
