import { GenError } from './gen-error.js';

/** Why a webhook was refused. */
export type WebhookRefusal =
  | 'secret_missing'
  | 'body_unavailable'
  | 'body_parsed'
  | 'signature_missing'
  | 'signature_malformed'
  | 'timestamp_out_of_tolerance'
  | 'signature_mismatch'
  | 'event_malformed';

/** A webhook that could not be verified: do not act on it, answer 400 (spec: Events). */
export class WebhookVerificationError extends GenError {
  protected static override readonly family = 'GenError/WebhookVerificationError';
  /** Why, as one of a closed set. */
  readonly reason: WebhookRefusal;

  constructor(message: string, details: { readonly reason: WebhookRefusal; readonly cause?: unknown }) {
    super(message, details);
    this.reason = details.reason;
  }
}
