import type { WebhookEvent } from '../schemas/webhook-event.js';
import type { ReceivedWebhook, VerifyWebhookOptions } from './verify-webhook.js';

/**
 * Verifies a webhook and gives its event (spec: Verification steps). Loaded with the first webhook, so that a client
 * which receives none does not carry it; `gen-client/webhooks` has it at once. Throws a WebhookVerificationError with
 * its `reason`.
 */
export async function verifyWebhook(
  received: Request | ReceivedWebhook,
  options: VerifyWebhookOptions,
): Promise<WebhookEvent> {
  const verifier = await import('./verify-webhook.js');
  return verifier.verifyWebhook(received, options);
}
