import { refusal } from '../errors/webhook-error.js';
import { type EventJob, flawOfEvent, signedJobIn, type WebhookEvent } from '../schemas/webhook-event.js';
import {
  type RawBody,
  rawBody,
  readBody,
  sameDigest,
  secretsOf,
  signatureOf,
  type WebhookBody,
  type WebhookSecret,
} from './signature.js';

/** The headers of a webhook: a web `Headers`, a plain object or Node's, in any case. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/** A webhook as received. */
export interface ReceivedWebhook {
  /** The raw body, before any parsing. */
  readonly body: WebhookBody;
  /** All headers, or at least `X-Service-Signature`. */
  readonly headers: WebhookHeaders;
}

/** How to verify a webhook. */
export interface VerifyWebhookOptions {
  /** The signing secret from the console's Webhooks tab, or up to 8 of them during a rotation. A blank one is refused. */
  readonly secret: WebhookSecret;
  /** Seconds. A stamp this far away or further, in the past or the future, is refused. @default 300 */
  readonly toleranceSeconds?: number | undefined;
  /** Bytes. Of a `Request`, no more are read, and a larger body is refused. @default 1_048_576 */
  readonly maxBodyBytes?: number | undefined;
  /** Gives the current time in milliseconds, for tests. @default Date.now */
  readonly now?: (() => number) | undefined;
}

const SIGNATURE_HEADER = 'x-service-signature';

/**
 * In lower case with sorted parts, which puts `t` first: one stamp of digits, and up to 16 signatures, one of them at
 * least `v1`. Those of other schemes are passed over.
 */
const SIGNATURE = /^t=(0|[1-9]\d{0,11})(?:,v1=[\da-f]{64}|,v(?!1=)\d{1,3}=[\w+/=-]{1,256}){1,16}$/;

/**
 * Verifies a webhook and gives its event. It checks the header and the age of its stamp, then reads the
 * body and compares the signature of its raw bytes in constant time. Takes a web `Request`, or body and headers. Throws
 * a WebhookVerificationError whose `reason` says why the webhook was refused.
 */
export async function verifyWebhook(
  received: Request | ReceivedWebhook,
  options: VerifyWebhookOptions,
): Promise<WebhookEvent> {
  const { secret, toleranceSeconds = 300, maxBodyBytes = 1_048_576, now = Date.now, ...others } = options ?? {};
  const [unknown] = Object.keys(others);
  if (unknown)
    throw refusal(
      'options_invalid',
      `verifyWebhook has no option "${unknown}". Use secret, toleranceSeconds, maxBodyBytes, now.`,
    );
  const secrets = secretsOf(secret);
  const { timestamp, signatures } = signatureIn(received?.headers);
  checkAge(now() / 1000 - Number(timestamp), toleranceSeconds);
  const body = await ('arrayBuffer' in received ? readBody(received, maxBodyBytes) : rawBody(received.body));
  for (const secret of secrets) {
    const expected = `v1=${await signatureOf(secret, timestamp, body)}`;
    if (signatures.some((signature) => sameDigest(signature, expected)))
      return eventIn(body, `t=${timestamp},${expected}`);
  }
  throw refusal(
    'signature_mismatch',
    'The signature does not match. Check the secret, its white space, and that the body is unchanged.',
  );
}

/** Splits the signature header, or says what is wrong with it. */
function signatureIn(headers: WebhookHeaders): { timestamp: string; signatures: string[] } {
  const header = signatureHeader(headers);
  if (header == null)
    throw refusal(
      'signature_missing',
      'The X-Service-Signature header is missing. Pass a Request, or { body, headers }.',
    );
  // One part more than the longest header has, so that a longer one is refused without more work.
  const parts = header.toLowerCase().split(',', 18);
  const signatures = parts.map((part) => part.trim()).sort();
  const [, timestamp] = SIGNATURE.exec(signatures.join()) ?? [];
  if (!timestamp || !signatures.some((signature) => signature.startsWith('v1=')))
    throw refusal('signature_malformed', 'X-Service-Signature must have the form t=<unix_seconds>,v1=<hex_digest>.');
  return { timestamp, signatures };
}

function signatureHeader(headers: WebhookHeaders): string | null | undefined {
  if (isHeaders(headers)) return headers.get(SIGNATURE_HEADER);
  const [, given] = Object.entries(headers ?? {}).find(([name]) => name.toLowerCase() === SIGNATURE_HEADER) ?? [];
  // Joined as the web joins repeated headers.
  return typeof given === 'object' ? given.join() : given;
}

function isHeaders(headers: WebhookHeaders): headers is Headers {
  return typeof headers?.get === 'function';
}

function checkAge(age: number, toleranceSeconds: number): void {
  if (!(toleranceSeconds > 0 && toleranceSeconds < Infinity))
    throw refusal('options_invalid', 'toleranceSeconds must be above 0.');
  // Written so that a clock gone wrong (NaN) refuses.
  if (Math.abs(age) < toleranceSeconds) return;
  const far = `${Math.abs(Math.round(age))} s ${age < 0 ? 'in the future' : 'ago'}`;
  throw refusal('timestamp_out_of_tolerance', `The webhook was signed ${far}. The limit is ${toleranceSeconds} s.`);
}

function eventIn(body: RawBody, signature: string): WebhookEvent {
  let event: unknown;
  try {
    event = parsedEvent(body);
  } catch (cause) {
    throw refusal('event_malformed', 'The signature is valid, but the body is not JSON.', cause);
  }
  const flaw = flawOfEvent(event);
  if (flaw) throw refusal('event_malformed', `The signature is valid, but \`${flaw}\` is missing or not a string.`);
  return markVerified(event as WebhookEvent, body, signature);
}

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

interface VerifiedMark extends Pick<VerifiedWebhook, 'body' | 'signature'> {
  /** The event that was marked. A copy of it has another identity, so the mark does not hold for the copy. */
  readonly of: object;
}

/**
 * Marks an event as verified. The mark cannot be copied to another object, and it contains the signed bytes, so a change of
 * the event changes nothing about what was verified.
 */
export function markVerified(event: WebhookEvent, body: RawBody, signature: string): WebhookEvent {
  return Object.defineProperty(event, VERIFIED, { value: Object.freeze<VerifiedMark>({ body, signature, of: event }) });
}

/** The webhook behind an event that `verifyWebhook` gave; undefined for any other object, such as a copy of one. */
export function verifiedWebhook(event: unknown): VerifiedWebhook | undefined {
  if (typeof event !== 'object' || event === null || !(VERIFIED in event)) return undefined;
  const mark = event[VERIFIED] as Partial<VerifiedMark> | undefined;
  if (mark?.of !== event || mark.body === undefined || mark.signature === undefined) return undefined;
  const { body, signature } = mark;
  return { body, signature, job: signedJobIn(parsedEvent(body)) };
}

/** Without a byte order mark, which TextDecoder drops and JSON.parse does not take. */
function parsedEvent(body: RawBody): unknown {
  return JSON.parse(typeof body === 'string' ? body.replace(/^\uFEFF/, '') : new TextDecoder().decode(body));
}
