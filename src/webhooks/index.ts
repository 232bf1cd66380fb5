export { WebhookVerificationError } from '../errors/webhook-error.js';
export type { EventJob, WebhookEvent } from '../schemas/webhook-event.js';
export type { Store } from '../store/store.js';
export type { WebhookContext, WebhookHandler } from './handler.js';
export { createWebhookHandler } from './handler.js';
export type { SignedWebhook } from './sign.js';
export { signWebhook } from './sign.js';
export type { ReceivedWebhook } from './verify.js';
export { verifyWebhook } from './verify.js';
