import { type WebhookRefusal, WebhookVerificationError } from '../errors/webhook-error.js';

/** The error for a webhook that is refused. */
export function refusal(reason: WebhookRefusal, message: string, cause?: unknown): WebhookVerificationError {
  return new WebhookVerificationError(message, { reason, cause });
}
