import { type Details, GenError } from './gen-error.js';

/**
 * Why a webhook was refused. `secret_missing`, `options_invalid`, `body_unavailable` and `body_parsed` are the receiver's
 * own mistakes (answer 500, so that the service sends again); the others are the sender's (answer 400).
 */
export type WebhookRefusal =
  /** No signing secret was given, or a blank one. */
  | 'secret_missing'
  /** An option cannot be right: too many secrets, a tolerance that is no positive number of seconds. */
  | 'options_invalid'
  /** There is no body to read: used up before, cut off, or never handed over. */
  | 'body_unavailable'
  /** The body was parsed before it arrived, so the bytes that were signed are gone. */
  | 'body_parsed'
  /** The body is larger than the receiver takes (answer 413). */
  | 'body_too_large'
  /** The request carries no `X-Service-Signature`. */
  | 'signature_missing'
  /** The signature header is not `t=<unix_seconds>,v1=<hex_digest>`. */
  | 'signature_malformed'
  /** Signed too long ago, or in the future. */
  | 'timestamp_out_of_tolerance'
  /** No digest fits the body under the given secrets. */
  | 'signature_mismatch'
  /** Rightly signed, but not an event. */
  | 'event_malformed';

/** The receiver's own mistakes among the reasons. */
const OWN_MISTAKES: readonly WebhookRefusal[] = [
  'secret_missing',
  'options_invalid',
  'body_unavailable',
  'body_parsed',
];

/** A webhook that could not be verified: do not act on it. */
export class WebhookVerificationError extends GenError {
  protected static override get family() {
    return 'GenError/WebhookVerificationError';
  }

  /** Why, as one of a closed set. */
  declare readonly reason: WebhookRefusal;

  constructor(message: string, details: Details<WebhookVerificationError, 'reason'>) {
    super(message, { ...details, recovery: OWN_MISTAKES.includes(details.reason) ? 'fix_setup' : 'none' });
  }
}

/** The error for a webhook that is refused. */
export function refusal(reason: WebhookRefusal, message: string, cause?: unknown): WebhookVerificationError {
  return new WebhookVerificationError(message, { reason, cause });
}
