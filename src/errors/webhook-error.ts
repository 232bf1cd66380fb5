import { type Details, GenError } from './gen-error.js';

/**
 * Reason for rejecting a webhook. `secret_missing`, `options_invalid`, `body_unavailable`, and `body_parsed` are the
 * receiver's own mistakes: respond 500, so that the service may send the event again. For the others, respond 400.
 */
export type WebhookErrorReason =
  /** The signing secret is missing or blank. */
  | 'secret_missing'
  /** An option is invalid, for example more than 8 secrets. */
  | 'options_invalid'
  /** The body is missing, truncated, or already read. */
  | 'body_unavailable'
  /** The body was parsed, so its raw bytes are lost. */
  | 'body_parsed'
  /** The body is larger than `maxBodyBytes`. Respond 413. */
  | 'body_too_large'
  /** The request has no `X-Service-Signature` header. */
  | 'signature_missing'
  /** The signature header has no `t=<unix_seconds>` or no `v1=<hex_digest>`. */
  | 'signature_malformed'
  /** The timestamp is too old or in the future. */
  | 'timestamp_out_of_tolerance'
  /** No digest matches the body and the secrets. */
  | 'signature_mismatch'
  /** The signature is valid, but the body is not an event. */
  | 'event_malformed';

const OWN_MISTAKES: readonly WebhookErrorReason[] = [
  'secret_missing',
  'options_invalid',
  'body_unavailable',
  'body_parsed',
];

/** Thrown for a webhook that can't be verified. Don't act on its content. */
export class WebhookVerificationError extends GenError {
  protected static override get family() {
    return 'GenError/WebhookVerificationError';
  }

  /** Reason for the rejection. */
  declare readonly reason: WebhookErrorReason;

  constructor(message: string, details: Details<WebhookVerificationError, 'reason'>) {
    super(message, { ...details, recovery: OWN_MISTAKES.includes(details.reason) ? 'fix_setup' : 'none' });
  }
}

export function verificationError(
  reason: WebhookErrorReason,
  message: string,
  cause?: unknown,
): WebhookVerificationError {
  return new WebhookVerificationError(message, { reason, cause });
}
