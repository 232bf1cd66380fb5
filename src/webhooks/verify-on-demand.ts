import type { WebhookEvent } from '../schemas/webhook-event.js';
import type { ReceivedWebhook, VerifyWebhookOptions } from './verify-webhook.js';

/**
 * Verifies a webhook by its signature and gives its event (spec: Verification steps). Throws a WebhookVerificationError whose
 * `reason` says why it was refused. Loaded with the first webhook, so that a client which receives none does not carry it;
 * `gen-client/webhooks` has it at once.
 */
export async function verifyWebhook(
  received: Request | ReceivedWebhook,
  options: VerifyWebhookOptions,
): Promise<WebhookEvent> {
  const verifier = await import('./verify-webhook.js');
  return verifier.verifyWebhook(received, options);
}
