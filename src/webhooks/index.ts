export type { WebhookRefusal } from '../errors/webhook-error.js';
export { WebhookVerificationError } from '../errors/webhook-error.js';
export type { IoRedisClient, NodeRedisClient, RedisClient } from '../redis-client.js';
export type {
  JobBlockedEvent,
  JobCanceledEvent,
  JobCompletedEvent,
  JobFailedEvent,
  UnknownWebhookEvent,
  WebhookEvent,
  WebhookEventOf,
  WebhookEventType,
} from '../schemas/webhook-event.js';
export type { WebhookBody } from './body.js';
export type {
  WaitUntil,
  WebhookContext,
  WebhookHandler,
  WebhookHandlerOptions,
  WebhookListeners,
} from './handler.js';
export { createWebhookHandler } from './handler.js';
export type { RedisStoreOptions } from './redis-store.js';
export { redisStore } from './redis-store.js';
export type { WebhookSecret } from './secrets.js';
export type { SignedWebhook, SignWebhookOptions } from './sign.js';
export { signWebhook } from './sign.js';
export type { MemoryStoreOptions, WebhookClaim, WebhookStore } from './stores.js';
export { memoryStore } from './stores.js';
export type { ReceivedWebhook, VerifyWebhookOptions, WebhookHeaders } from './verify.js';
export { verifyWebhook } from './verify.js';
