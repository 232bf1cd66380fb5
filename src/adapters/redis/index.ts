export type { Store } from '../../store/store.js';
export type { RedisClient } from './redis-clients.js';
export type { RedisStore } from './redis-store.js';
export { redisStore } from './redis-store.js';
