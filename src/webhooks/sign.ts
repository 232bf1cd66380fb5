import { GenError } from '../errors/gen-error.js';
import { systemClock } from '../runtime/clock.js';
import { isFields } from '../schemas/envelope.js';
import { mustBe } from '../schemas/show.js';
import { jobIdIn } from '../schemas/webhook-event.js';
import { CALLBACK, checkRules, type Rule, SECRET } from './handler.js';
import { secretsOf, signatureOf, WEBHOOK_HEADERS, type WebhookSecret } from './signature.js';

/** How to sign a webhook. */
export interface SignWebhookOptions {
  /** The signing secret. Several give one `v1` each, as during a rotation. A blank one is refused. */
  readonly secret: WebhookSecret;
  /** Unix seconds to sign with. @default the current time */
  readonly timestamp?: number | undefined;
  /** Gives the current time in milliseconds, for tests. @default Date.now */
  readonly now?: (() => number) | undefined;
}

/** A webhook as the service would send it: POST `body` with `headers`. */
export interface SignedWebhook {
  /** The exact text that is signed. */
  readonly body: string;
  /** `Content-Type` and the documented `X-Service-*` headers. */
  readonly headers: Record<string, string>;
}

const SIGN_RULES: Readonly<Record<keyof SignWebhookOptions, Rule>> = {
  secret: SECRET,
  timestamp: ['a whole number of unix seconds', Number.isInteger, true],
  now: CALLBACK,
};

/**
 * Signs an event as the service does, for tests of a receiver. An event given as a string is signed as it
 * stands, so that broken bodies can be tried, too. Throws a GenError for an option that cannot be right.
 *
 * @example
 * const { body, headers } = await signWebhook(event, { secret: 'whsec_test' });
 * const response = await handler(new Request('https://me.test/webhooks', { method: 'POST', body, headers }));
 */
export async function signWebhook(event: object | string, options: SignWebhookOptions): Promise<SignedWebhook> {
  checkRules('signWebhook', SIGN_RULES, options);
  if (typeof event !== 'string' && !isFields(event))
    throw new GenError(mustBe('event', 'an object or a string', event));
  const { secret, timestamp, now = systemClock.now } = options ?? {};
  const body = typeof event === 'string' ? event : textOf(event);
  const stamp = String(timestamp ?? Math.floor(now() / 1000));
  const digests = await Promise.all(secretsOf(secret).map((one) => signatureOf(one, stamp, body)));
  const signature = `t=${stamp}${digests.map((digest) => `,v1=${digest}`).join('')}`;
  const { id, type } = isFields(event) ? event : {};
  const values = [id, type, jobIdIn(event), stamp, signature];
  const headers: Record<string, string> = { 'Content-Type': 'application/json' };
  WEBHOOK_HEADERS.forEach((name, at) => {
    if (values[at] !== undefined) headers[name] = String(values[at]);
  });
  return { body, headers };
}

function textOf(event: object): string {
  try {
    return JSON.stringify(event);
  } catch (cause) {
    throw new GenError('signWebhook: the event cannot be written as JSON.', { cause });
  }
}
