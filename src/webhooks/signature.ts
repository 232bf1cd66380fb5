import { verificationError } from '../errors/webhook-error.js';
import { hexOf, readUpTo } from '../runtime/bytes.js';
import { shortTimer } from '../runtime/clock.js';

/** Headers of a webhook. */
export const WEBHOOK_HEADERS = [
  'X-Service-Event-Id',
  'X-Service-Event-Type',
  'X-Service-Job-Id',
  'X-Service-Timestamp',
  'X-Service-Signature',
] as const;

/** A signing secret, or several during a rotation. May be undefined, so that a missing variable fails at run time. */
export type WebhookSecret = string | readonly string[] | undefined;

/** Returns the secrets as a list. Throws a WebhookVerificationError if one is missing or blank. */
export function secretsOf(secret: WebhookSecret): readonly string[] {
  const secrets = [secret ?? []].flat();
  const isMissing = !secrets.length || secrets.some((item: unknown) => typeof item !== 'string' || !item.trim());
  if (isMissing || secrets.length > 8)
    throw verificationError(
      isMissing ? 'secret_missing' : 'options_invalid',
      isMissing
        ? 'secret is missing or blank. Pass { secret }, for example process.env.GEN_WEBHOOK_SECRET.'
        : 'secret has more than 8 entries. Pass the current secret and the next one.',
    );
  return secrets;
}

/** Returns the hex HMAC-SHA256 of `<timestamp>.<body>`. `timestamp` is the header's exact text. */
export function signatureOf(secret: string, timestamp: string, body: RawBody): string | Promise<string> {
  const hmac = builtInHmac(secret);
  return hmac ? hmac.update(`${timestamp}.`).update(body).digest('hex') : webSignatureOf(secret, timestamp, body);
}

/** Returns the runtime's built-in HMAC, if available without an import. It is ten times faster than WebCrypto. */
function builtInHmac(secret: string) {
  try {
    return globalThis.process.getBuiltinModule('node:crypto').createHmac('sha256', secret);
  } catch {
    // `process` is missing, or this is the Edge runtime, whose functions throw.
    return undefined;
  }
}

async function webSignatureOf(secret: string, timestamp: string, body: RawBody): Promise<string> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', await bytesOf(secret), algorithm, false, ['sign']);
  return hexOf(await crypto.subtle.sign('HMAC', key, await bytesOf(`${timestamp}.`, body)));
}

/** Returns true if two digests are equal. Compares them in constant time. */
export function sameDigest(left: string, right: string): boolean {
  let difference = left.length ^ right.length;
  for (let index = 0; index < left.length; index++) difference |= left.charCodeAt(index) ^ right.charCodeAt(index);
  return difference === 0;
}

/** Body of a webhook: the bytes as received, or their text. */
export type WebhookBody = string | Uint8Array | ArrayBuffer;

/** Signed bytes, or their text. */
export type RawBody = string | Uint8Array;

/** Timeout for reading the body. Without it, an attacker could keep connections open. */
const BODY_TIMEOUT_MS = 10_000;

/** Reads the signed bytes, up to `maxBytes` and {@link BODY_TIMEOUT_MS}. */
export async function readBody(request: Request, maxBytes: number): Promise<RawBody> {
  if (request.bodyUsed) throw bodyUnavailable(NO_BYTES);
  const { bytes, end } = await readUpTo(request.body, maxBytes, (fire) => shortTimer(BODY_TIMEOUT_MS, fire)).catch(
    (cause) => {
      throw bodyUnavailable(`could not be read: ${cause}`, cause);
    },
  );
  if (end === 'timeout') throw bodyUnavailable('took over ten seconds');
  if (end === 'too_large')
    throw verificationError('body_too_large', `The body is larger than ${maxBytes} bytes (maxBodyBytes).`);
  return bytes;
}

/** Returns the joined parts, with strings as UTF-8. Uses a Blob to keep this entry point small. */
async function bytesOf(...parts: RawBody[]): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await new Blob(parts as BlobPart[]).arrayBuffer());
}

/** Returns the signed bytes, copied because servers reuse their buffers. Throws for a parsed body. */
export async function rawBody({
  body,
  isBase64Encoded,
}: {
  body?: unknown;
  isBase64Encoded?: unknown;
}): Promise<RawBody> {
  if (typeof body === 'string') return isBase64Encoded === true ? decodeBase64(body) : body;
  // Also matches buffers from another realm.
  if (ArrayBuffer.isView(body) || {}.toString.call(body) === '[object ArrayBuffer]') return bytesOf(body as Uint8Array);
  if (body == null) throw bodyUnavailable(NO_BYTES);
  throw verificationError(
    'body_parsed',
    "The body was parsed, but its raw bytes are signed. Use express.raw({ type: '*/*' }), request.rawBody (Nest), file.buffer, a Fastify buffer parser, bodyParser: false (Next.js pages), event.body (Lambda), or request.text().",
  );
}

function decodeBase64(body: string): RawBody {
  try {
    return Uint8Array.from(atob(body), (char) => char.charCodeAt(0));
  } catch (cause) {
    throw bodyUnavailable('is not base64, although isBase64Encoded is true', cause);
  }
}

const NO_BYTES = 'is missing, or was already read: verify first';

/** Creates the error for a body that can't be verified. `problem` completes "The body …". */
function bodyUnavailable(problem: string, cause?: unknown): Error {
  return verificationError('body_unavailable', `The body ${problem}.`, cause);
}
