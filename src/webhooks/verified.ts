import { type EventJob, signedJobIn, type WebhookEvent } from '../schemas/webhook-event.js';
import type { RawBody } from './body.js';

/** A webhook that was verified, as it was received and as its signed bytes say. */
export interface VerifiedWebhook {
  /** The raw body. */
  readonly body: RawBody;
  /** The header `X-Service-Signature`. */
  readonly signature: string;
  /** The job of the event, as it was signed; undefined for an event without one. */
  readonly job: Readonly<EventJob> | undefined;
}

/** Marks the events of every copy of the package in the process. */
const VERIFIED = Symbol.for('gen-client.verified-webhook');

/** A webhook as it was received. */
type ReceivedBytes = Pick<VerifiedWebhook, 'body' | 'signature'>;

interface VerifiedMark extends ReceivedBytes {
  /** The event that was marked. A copy of it has another identity, so the mark does not hold for the copy. */
  readonly of: object;
}

/**
 * Marks an event as verified. The mark cannot be copied to another object, and it contains the signed bytes, so a change of
 * the event changes nothing about what was verified.
 */
export function markVerified(event: WebhookEvent, webhook: ReceivedBytes): WebhookEvent {
  const mark: VerifiedMark = Object.freeze({ ...webhook, of: event });
  return Object.defineProperty(event, VERIFIED, { value: mark });
}

/** The webhook behind an event that `verifyWebhook` gave; undefined for any other object, such as a copy of one. */
export function verifiedWebhook(event: unknown): VerifiedWebhook | undefined {
  if (typeof event !== 'object' || event === null || !(VERIFIED in event)) return undefined;
  const mark = event[VERIFIED] as Partial<VerifiedMark> | undefined;
  if (mark?.of !== event || mark.body === undefined || mark.signature === undefined) return undefined;
  const { body, signature } = mark;
  return { body, signature, job: signedJobIn(parsedEvent(body)) };
}

/** The event in verified bytes. They are JSON: `verifyWebhook` has read them. */
function parsedEvent(body: RawBody): unknown {
  return JSON.parse(typeof body === 'string' ? body.replace(/^\uFEFF/, '') : new TextDecoder().decode(body));
}
