import { refusal } from './refusal.js';
import type { RawBody } from './signature.js';

/** What may be handed over as a webhook's body: the bytes as received, or the text they were read as. */
export type WebhookBody = string | Uint8Array | ArrayBuffer;

/** The exact bytes that were signed, of a web request; throws a `WebhookVerificationError` that says what became of them. */
export async function bodyOf(request: Request): Promise<RawBody> {
  if (request.bodyUsed) throw unavailable('was read before: verify first, or keep its text and pass { body, headers }');
  try {
    return new Uint8Array(await request.arrayBuffer());
  } catch (cause) {
    throw unavailable('could not be read to its end', cause);
  }
}

/** The exact bytes that were signed, as handed over; throws a `WebhookVerificationError` for what are not the bytes any more. */
export function rawBody(body: unknown): RawBody {
  if (typeof body === 'string') return body;
  if (body instanceof Uint8Array) return body;
  if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
  if (isBuffer(body)) return new Uint8Array(body);
  if (body === undefined || body === null) throw unavailable('is missing: pass the raw bytes as { body, headers }');
  if (Symbol.asyncIterator in Object(body)) throw unavailable('is a stream: read it whole and pass its bytes');
  throw refusal(
    'body_parsed',
    'The body was parsed, but its raw bytes are signed. Take express.raw({ type: "*/*" }), a Fastify buffer parser, request.text().',
  );
}

/** Holds for a buffer of another realm too. */
function isBuffer(body: unknown): body is ArrayBuffer {
  return Object.prototype.toString.call(body) === '[object ArrayBuffer]';
}

/** There is no body to verify. `what` completes "The body …". */
export function unavailable(what: string, cause?: unknown): Error {
  return refusal('body_unavailable', `The body ${what}.`, cause);
}
