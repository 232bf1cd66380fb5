import { GenError } from '../errors/gen-error.js';
import * as option from '../rules/options.js';
import { systemClock } from '../runtime/clock.js';
import { isFields } from '../schemas/envelope.js';
import { invalidValueMessage } from '../schemas/format-value.js';
import { jobIdIn } from '../schemas/webhook-event.js';
import { secretsOf, signatureOf, WEBHOOK_HEADERS, type WebhookSecret } from './signature.js';

/** Options for `signWebhook`. */
export interface SignWebhookOptions {
  /** Signing secret. Several secrets create several `v1` digests, as during a rotation. Throws for a blank secret. */
  readonly secret: WebhookSecret;
  /** Timestamp in Unix seconds. @default the current time */
  readonly timestamp?: number | undefined;
  /** Returns the current time in milliseconds, for tests. @default Date.now */
  readonly now?: (() => number) | undefined;
}

/** A signed webhook: POST `body` with `headers`. */
export interface SignedWebhook {
  /** Exact signed text. */
  readonly body: string;
  /** `Content-Type` and the documented `X-Service-*` headers. */
  readonly headers: Record<string, string>;
}

const SIGN_OPTIONS = option.optionsOf({
  secret: option.anything,
  timestamp: option.must('a whole number of Unix seconds', Number.isInteger),
  now: option.callback,
});

/**
 * Signs an event as the service does, to test a receiver. A string is signed unchanged, so that you can test invalid bodies.
 * Throws a GenError for an invalid option.
 *
 * @example
 * const { body, headers } = await signWebhook(event, { secret: 'whsec_test' });
 * const response = await handler(new Request('https://me.test/webhooks', { method: 'POST', body, headers }));
 */
export async function signWebhook(event: object | string, options: SignWebhookOptions): Promise<SignedWebhook> {
  option.checkOptions('signWebhook', SIGN_OPTIONS, options);
  if (typeof event !== 'string' && !isFields(event))
    throw new GenError(invalidValueMessage('event', 'an object or a string', event));
  const { secret, timestamp, now = systemClock.now } = options ?? {};
  const body = typeof event === 'string' ? event : serializeEvent(event);
  const stamp = String(timestamp ?? Math.floor(now() / 1000));
  const digests = await Promise.all(secretsOf(secret).map((key) => signatureOf(key, stamp, body)));
  const signature = `t=${stamp}${digests.map((digest) => `,v1=${digest}`).join('')}`;
  const { id, type } = isFields(event) ? event : {};
  const values = [id, type, jobIdIn(event), stamp, signature];
  const headers: Record<string, string> = { 'Content-Type': 'application/json' };
  WEBHOOK_HEADERS.forEach((name, index) => {
    if (values[index] !== undefined) headers[name] = String(values[index]);
  });
  return { body, headers };
}

function serializeEvent(event: object): string {
  try {
    return JSON.stringify(event);
  } catch (cause) {
    throw new GenError('signWebhook: the event cannot be serialized as JSON. Pass plain values.', { cause });
  }
}
