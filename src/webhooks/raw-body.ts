import { WebhookVerificationError } from '../errors/webhook-error.js';
import type { RawBody } from './signature.js';

/** What may be handed over as a webhook's body: the bytes as received, or the text they were read as. */
export type WebhookBody = string | Uint8Array | ArrayBuffer;

/** The exact bytes that were signed; throws a {@link WebhookVerificationError} that says what became of them. */
export async function rawBodyOf(input: Request | { readonly body: unknown }): Promise<RawBody> {
  if (!('arrayBuffer' in input)) return givenBody(input.body);
  if (input.bodyUsed) throw unavailable('was read before: verify first, or keep its text and pass { body, headers }');
  try {
    return new Uint8Array(await input.arrayBuffer());
  } catch (cause) {
    throw unavailable('could not be read to its end', cause);
  }
}

function givenBody(body: unknown): RawBody {
  if (typeof body === 'string') return body;
  if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
  if (isBuffer(body)) return new Uint8Array(body);
  if (body === undefined || body === null) throw unavailable('is missing: pass the raw bytes as { body, headers }');
  if (Symbol.asyncIterator in Object(body)) throw unavailable('is a stream: read it whole and pass its bytes');
  throw new WebhookVerificationError(
    'The body was parsed before it arrived, but the raw bytes are signed. Take those: express.raw({ type: "*/*" }) in Express, a buffer parser in Fastify, request.text() elsewhere.',
    { reason: 'body_parsed' },
  );
}

/** Holds for a buffer of another realm too. */
function isBuffer(body: unknown): body is ArrayBuffer {
  return Object.prototype.toString.call(body) === '[object ArrayBuffer]';
}

function unavailable(what: string, cause?: unknown): WebhookVerificationError {
  return new WebhookVerificationError(`The body ${what}.`, { reason: 'body_unavailable', cause });
}
