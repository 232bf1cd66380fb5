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
export type { MemoryStoreOptions, WebhookClaim, WebhookStore } from './event-store.js';
export { memoryStore } from './event-store.js';
export type { WebhookBody } from './raw-body.js';
export type { RedisStoreOptions } from './redis-store.js';
export { redisStore } from './redis-store.js';
export type { WebhookSecret } from './secrets.js';
export type { SignedWebhook, SignWebhookOptions } from './sign-webhook.js';
export { signWebhook } from './sign-webhook.js';
export type { ReceivedWebhook, VerifyWebhookOptions, WebhookHeaders } from './verify-webhook.js';
export { verifyWebhook } from './verify-webhook.js';
export type {
  WaitUntil,
  WebhookContext,
  WebhookHandler,
  WebhookHandlerOptions,
  WebhookListeners,
} from './webhook-handler.js';
export { createWebhookHandler } from './webhook-handler.js';
