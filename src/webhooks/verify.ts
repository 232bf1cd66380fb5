import { verificationError } from '../errors/webhook-error.js';
import { isObject } from '../schemas/envelope.js';
import { type EventJob, invalidFieldOfEvent, signedJobIn, type WebhookEvent } from '../schemas/webhook-event.js';
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

/** Headers of a webhook: a web `Headers`, a plain object, or Node's. Names are case-insensitive. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | null | undefined>>;

/** A webhook as received: `{ body, headers }`, or an API Gateway event. */
export interface ReceivedWebhook {
  /** Raw body, before any parsing. Optional only to match API Gateway events: a missing body throws. */
  readonly body?: WebhookBody | null | undefined;
  /** All headers, or at least `X-Service-Signature`. */
  readonly headers: WebhookHeaders;
  /** If true, decodes `body` from base64 first. API Gateway sets it. @default false */
  readonly isBase64Encoded?: boolean | undefined;
}

/** Options for {@link verifyWebhook}. */
export interface VerifyWebhookOptions {
  /** Signing secret from the console's Webhooks tab, or up to 8 secrets during a rotation. Throws for a blank secret. */
  readonly secret: WebhookSecret;
  /** Rejects a timestamp this many seconds or more in the past or the future. @default 300 */
  readonly toleranceSeconds?: number | undefined;
  /** Maximum body size in bytes. A larger body is rejected before the rest of it is read. @default 1_048_576 */
  readonly maxBodyBytes?: number | undefined;
  /** Returns the current time in milliseconds, for tests. @default Date.now */
  readonly now?: (() => number) | undefined;
}

const SIGNATURE_HEADER = 'x-service-signature';

/** Maximum parts of the signature header: a timestamp and 16 signatures. Longer headers are rejected immediately. */
const MAX_PARTS = 17;
const MAX_HEADER_LENGTH = 4_096;

/**
 * Verifies a webhook and returns its event. Accepts a web `Request`, `{ body, headers }`, or an API Gateway event.
 * Throws a WebhookVerificationError with the `reason` if the webhook is invalid.
 *
 * @example
 * const event = await verifyWebhook(request, { secret: process.env.GEN_WEBHOOK_SECRET });
 */
export async function verifyWebhook(
  received: Request | ReceivedWebhook,
  options: VerifyWebhookOptions,
): Promise<WebhookEvent> {
  const { secret, toleranceSeconds = 300, maxBodyBytes = 1_048_576, now = Date.now, ...unknownOptions } = options ?? {};
  if (typeof options === 'string')
    throw verificationError(
      'options_invalid',
      'verifyWebhook: options must be an object, not a string. Pass { secret }.',
    );
  const [unknownOption] = Object.keys(unknownOptions);
  if (unknownOption)
    throw verificationError(
      'options_invalid',
      `verifyWebhook has no option "${unknownOption}". Use secret, toleranceSeconds, maxBodyBytes, now.`,
    );
  const secrets = secretsOf(secret);
  const { timestamp, signatures } = signatureIn(received?.headers);
  checkAge(now() / 1000 - Number(timestamp), toleranceSeconds);
  const body = await ('arrayBuffer' in received ? readBody(received, maxBodyBytes) : rawBody(received));
  for (const secret of secrets) {
    const expected = `v1=${await signatureOf(secret, timestamp, body)}`;
    if (signatures.some((signature) => sameDigest(signature, expected)))
      return eventIn(body, `t=${timestamp},${expected}`);
  }
  throw verificationError(
    'signature_mismatch',
    'The signature does not match. Check the secret and its white space, and pass the body unchanged.',
  );
}

/** Parses the signature header. Ignores other schemes, because the service may add one before receivers support it. */
function signatureIn(headers: WebhookHeaders): { timestamp: string; signatures: string[] } {
  const header = signatureHeader(headers);
  if (header == null)
    throw verificationError(
      'signature_missing',
      'The X-Service-Signature header is missing. Pass a Request, or { body, headers }.',
    );
  const isTooLong = header.length > MAX_HEADER_LENGTH || header.split(',', MAX_PARTS + 1).length > MAX_PARTS;
  const parts = isTooLong
    ? []
    : header
        .toLowerCase()
        .split(',')
        .map((part) => part.trim());
  const signatures = parts.filter((part) => /^v1=[\da-f]{64}$/.test(part));
  // With two timestamps, it's unknown which one was signed.
  const [stamp = '', otherStamp] = parts.filter((part) => part.startsWith('t='));
  const [, timestamp] = /^t=(0|[1-9]\d{0,11})$/.exec(stamp) ?? [];
  if (!timestamp || otherStamp || !signatures.length)
    throw verificationError(
      'signature_malformed',
      'X-Service-Signature must have the form t=<unix_seconds>,v1=<hex_digest>.',
    );
  return { timestamp, signatures };
}

function signatureHeader(headers: WebhookHeaders): string | null | undefined {
  if (isHeaders(headers)) return headers.get(SIGNATURE_HEADER);
  const [, value] = Object.entries(headers ?? {}).find(([name]) => name.toLowerCase() === SIGNATURE_HEADER) ?? [];
  // `Headers` joins repeated headers in the same way.
  return typeof value === 'object' ? value?.join() : value;
}

function isHeaders(headers: WebhookHeaders): headers is Headers {
  return typeof headers?.get === 'function';
}

function checkAge(age: number, toleranceSeconds: number): void {
  if (!(toleranceSeconds > 0 && toleranceSeconds < Infinity))
    throw verificationError('options_invalid', 'toleranceSeconds must be above 0.');
  // Written so that NaN fails the check.
  if (Math.abs(age) < toleranceSeconds) return;
  const distance = `${Math.abs(Math.round(age))} s ${age < 0 ? 'in the future' : 'ago'}`;
  throw verificationError(
    'timestamp_out_of_tolerance',
    `The webhook was signed ${distance}. toleranceSeconds is ${toleranceSeconds}.`,
  );
}

function eventIn(body: RawBody, signature: string): WebhookEvent {
  let event: unknown;
  try {
    event = parseEvent(body);
  } catch (cause) {
    throw verificationError('event_malformed', 'The signature is valid, but the body is not JSON.', cause);
  }
  const invalidField = invalidFieldOfEvent(event);
  if (invalidField)
    throw verificationError(
      'event_malformed',
      `The signature is valid, but \`${invalidField}\` is missing or not a string.`,
    );
  return markVerified(event as WebhookEvent, body, signature);
}

/** A verified webhook, and the job in its signed bytes. */
export interface VerifiedWebhook {
  /** Raw body. */
  readonly body: RawBody;
  /** `X-Service-Signature` header. */
  readonly signature: string;
  /** The job in the signed event, or undefined if the event has none. */
  readonly job: Readonly<EventJob> | undefined;
}

/** The property that marks a verified event. Shared by copies of the package. */
const VERIFIED = Symbol.for('gen-client.verified-webhook');

interface VerifiedMark extends Pick<VerifiedWebhook, 'body' | 'signature'> {
  /** The marked event. The mark is invalid on any other object. */
  readonly event: object;
}

/** Marks an event as verified. The mark contains the signed bytes, so later changes to the event have no effect on the mark. */
export function markVerified(event: WebhookEvent, body: RawBody, signature: string): WebhookEvent {
  return Object.defineProperty(event, VERIFIED, { value: Object.freeze<VerifiedMark>({ body, signature, event }) });
}

/** Returns the webhook of an event from `verifyWebhook`, or undefined for any other object, including a copy. */
export function verifiedWebhook(event: unknown): VerifiedWebhook | undefined {
  if (!isObject(event) || !(VERIFIED in event)) return undefined;
  const mark = event[VERIFIED] as Partial<VerifiedMark> | undefined;
  if (mark?.event !== event || mark.body === undefined || mark.signature === undefined) return undefined;
  const { body, signature } = mark;
  return { body, signature, job: signedJobIn(parseEvent(body)) };
}

/** Parses the body without a byte order mark, which JSON.parse rejects and TextDecoder drops. */
function parseEvent(body: RawBody): unknown {
  return JSON.parse(typeof body === 'string' ? body.replace(/^\uFEFF/, '') : new TextDecoder().decode(body));
}
