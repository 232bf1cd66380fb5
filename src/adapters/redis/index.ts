export type { Store } from '../../store/store.js';
export type { RedisClient, RedisStore } from './redis-store.js';
export { redisStore } from './redis-store.js';
