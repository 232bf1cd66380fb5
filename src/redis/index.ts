export type { LaneLimit } from '../limits/lane-state.js';
export type { LaneSnapshot, LaneWait, RateLimiter } from '../limits/rate-limiter.js';
export type { IoRedisClient, NodeRedisClient, RedisClient, UpstashRedisClient } from '../redis-client.js';
export type { RedisStoreOptions, WebhookClaim, WebhookStore } from '../webhooks/stores.js';
export { redisStore } from '../webhooks/stores.js';
export type { RedisLimiter, RedisLimiterOptions } from './redis-limiter.js';
export { redisLimiter } from './redis-limiter.js';
