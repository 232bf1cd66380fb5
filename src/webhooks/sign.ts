import { secretsOf, type WebhookSecret } from './secrets.js';
import { signatureOf, WEBHOOK_HEADERS } from './signature.js';

/** How to sign a webhook. */
export interface SignWebhookOptions {
  /** The signing secret; several give one `v1` each, as during a rotation. Blank is refused. */
  readonly secret: WebhookSecret;
  /** Unix seconds to sign with. @default the current time */
  readonly timestamp?: number | undefined;
  /** The current time in milliseconds, for tests. @default the system's */
  readonly now?: (() => number) | undefined;
}

/** A webhook as the service would send it: POST `body` with `headers`. */
export interface SignedWebhook {
  /** The exact text that is signed. */
  readonly body: string;
  /** `Content-Type` and the documented `X-Service-*` headers. */
  readonly headers: Record<string, string>;
}

/**
 * Signs an event as the service does (spec: Events), for tests of a receiver. An event given as a string is signed as it
 * stands, so that broken bodies can be tried too.
 */
export async function signWebhook(event: object | string, options: SignWebhookOptions): Promise<SignedWebhook> {
  const body = typeof event === 'string' ? event : JSON.stringify(event);
  const timestamp = String(options.timestamp ?? Math.floor((options.now ?? Date.now)() / 1000));
  const digests = await Promise.all(secretsOf(options.secret).map((secret) => signatureOf(secret, timestamp, body)));
  const signature = `t=${timestamp}${digests.map((digest) => `,v1=${digest}`).join('')}`;
  const { id, type, data } = Object(typeof event === 'string' ? undefined : event);
  const values = [id, type, data?.job?.id, timestamp, signature];
  const headers: Record<string, string> = { 'Content-Type': 'application/json' };
  WEBHOOK_HEADERS.forEach((name, at) => {
    if (values[at] !== undefined) headers[name] = String(values[at]);
  });
  return { body, headers };
}
