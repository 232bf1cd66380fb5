import { flawOfEvent, type WebhookEvent } from '../schemas/webhook-event.js';
import { bodyOf, rawBody, type WebhookBody } from './body.js';
import { refusal } from './refusal.js';
import { secretsOf, type WebhookSecret } from './secrets.js';
import { type RawBody, sameDigest, signatureOf, WEBHOOK_HEADERS } from './signature.js';

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
  /** The signing secret from the console's Webhooks tab; several (8 at most) during a rotation. Blank is refused. */
  readonly secret: WebhookSecret;
  /** Seconds: a stamp this far away or further, past or future, is refused. @default 300 (spec: Limits) */
  readonly toleranceSeconds?: number | undefined;
  /** The current time in milliseconds, for tests. @default the system's */
  readonly now?: (() => number) | undefined;
}

// `t` first, digits only, once. Up to 16 signatures: `v1`, or schemes to come, which are passed over.
const SIGNATURE = /^t=(0|[1-9]\d{0,11})((?:,v1=[\da-f]{64}|,v(?!1=)\d{1,3}=[\w+/=-]{1,256}){1,16})$/;

/**
 * Verifies a webhook and gives its event (spec: Events). Checked are the signature over the raw bytes, in constant time,
 * and the age of its stamp. Takes a web `Request`, or its body and headers. Throws a {@link WebhookVerificationError}
 * whose `reason` says why it was refused.
 */
export async function verifyWebhook(
  received: Request | ReceivedWebhook,
  options: VerifyWebhookOptions,
): Promise<WebhookEvent> {
  const secrets = secretsOf(options?.secret);
  const { timestamp, digests } = signatureIn(received.headers);
  checkAge(timestamp, options);
  const body = 'arrayBuffer' in received ? await bodyOf(received) : rawBody(received.body);
  for (const secret of secrets) {
    const expected = await signatureOf(secret, timestamp, body);
    if (digests.filter((digest) => sameDigest(digest, expected)).length) return eventIn(body);
  }
  const hint = secrets.some((secret) => secret !== secret.trim()) ? ' A secret is padded with white space.' : '';
  throw refusal(
    'signature_mismatch',
    `The signature does not fit. Is it the right secret, and the body byte for byte as it came?${hint}`,
  );
}

/** Splits the signature header, or says what is wrong with it. */
function signatureIn(headers: WebhookHeaders): { timestamp: string; digests: string[] } {
  const header = headerIn(headers, 'X-Service-Signature');
  if (header === undefined) {
    const came = WEBHOOK_HEADERS.filter((name) => headerIn(headers, name) !== undefined).join(', ');
    throw refusal('signature_missing', `X-Service-Signature is missing; of its kind came: ${came || 'none'}.`);
  }
  const [, timestamp, schemes = ''] = SIGNATURE.exec(header) ?? [];
  const digests = schemes
    .split(',v1=')
    .slice(1)
    .map((digest) => digest.slice(0, 64));
  if (!timestamp || !digests.length)
    throw refusal('signature_malformed', 'X-Service-Signature is not t=<unix_seconds>,v1=<hex_digest>.');
  return { timestamp, digests };
}

function headerIn(headers: WebhookHeaders, name: string): string | undefined {
  if (isHeaders(headers)) return headers.get(name) ?? undefined;
  const lower = name.toLowerCase();
  const given = headers?.[lower] ?? headers?.[Object.keys(headers).find((key) => key.toLowerCase() === lower) ?? lower];
  // Joined as the web joins repeated headers, which no signature survives.
  return typeof given === 'object' ? given.join(', ') : given;
}

function isHeaders(headers: WebhookHeaders): headers is Headers {
  return typeof headers?.get === 'function';
}

function checkAge(timestamp: string, { toleranceSeconds = 300, now = Date.now }: VerifyWebhookOptions): void {
  if (!(toleranceSeconds > 0 && toleranceSeconds < Infinity))
    throw refusal('options_invalid', '`toleranceSeconds` must be a positive number of seconds.');
  const age = now() / 1000 - Number(timestamp);
  // Written so that a clock gone wrong (NaN) refuses.
  if (Math.abs(age) < toleranceSeconds) return;
  const far = `${Math.abs(Math.round(age))} s ${age < 0 ? 'in the future' : 'ago'}`;
  throw refusal(
    'timestamp_out_of_tolerance',
    `Signed ${far}; the limit is ${toleranceSeconds} s. Is this clock right, or is it a replay?`,
  );
}

function eventIn(body: RawBody): WebhookEvent {
  let event: unknown;
  try {
    event = JSON.parse(typeof body === 'string' ? body : new TextDecoder().decode(body));
  } catch (cause) {
    throw refusal('event_malformed', 'Rightly signed, but not JSON.', cause);
  }
  const flaw = flawOfEvent(event);
  if (flaw) throw refusal('event_malformed', `Rightly signed, but \`${flaw}\` is no text.`);
  return event as WebhookEvent;
}
