export type { WebhookRefusal } from '../errors/webhook-error.js';
export { WebhookVerificationError } from '../errors/webhook-error.js';
export type {
  CompletedEventJob,
  EventJob,
  JobBlockedEvent,
  JobCanceledEvent,
  JobCompletedEvent,
  JobFailedEvent,
  UnknownEventType,
  UnknownWebhookEvent,
  WebhookEvent,
  WebhookEventOf,
  WebhookEventType,
} from '../schemas/webhook-event.js';
export type { Store, StoreChanges, StoredValues } from '../store/store.js';
export type {
  WaitUntil,
  WebhookClient,
  WebhookContext,
  WebhookHandler,
  WebhookHandlerOptions,
  WebhookListeners,
} from './handler.js';
export { createWebhookHandler } from './handler.js';
export type { SignedWebhook, SignWebhookOptions } from './sign.js';
export { signWebhook } from './sign.js';
export type { WebhookBody, WebhookSecret } from './signature.js';
export type { ReceivedWebhook, VerifyWebhookOptions, WebhookHeaders } from './verify.js';
export { verifyWebhook } from './verify.js';
