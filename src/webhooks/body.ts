import { refusal } from '../errors/webhook-error.js';

/** What may be passed as the body of a webhook: the bytes as received, or the text they were decoded to. */
export type WebhookBody = string | Uint8Array | ArrayBuffer;

/** The bytes that were signed, or their text. */
export type RawBody = string | Uint8Array;

/** Reads the exact bytes that were signed, and stops as soon as they are more than `maxBytes`. */
export async function readBody(request: Request, maxBytes: number): Promise<RawBody> {
  if (request.bodyUsed) throw bodyUnavailable(NO_BYTES);
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of request.body ?? []) {
      chunks.push(chunk);
      size += chunk.length;
      // Written so that a bound which is no number refuses.
      if (!(size <= maxBytes)) break;
    }
  } catch (cause) {
    throw bodyUnavailable(`could not be read: ${cause}`, cause);
  }
  if (size <= maxBytes) return bytesOf(...chunks);
  throw refusal('body_too_large', `The body is larger than ${maxBytes} bytes (maxBodyBytes).`);
}

/** The parts as one piece of bytes, texts as UTF-8. A Blob joins both in one line, which the size of this door asks for. */
export async function bytesOf(...parts: RawBody[]): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await new Blob(parts as BlobPart[]).arrayBuffer());
}

/** The bytes that were signed, of a body as a caller has it. Throws an error that names the fix. */
export function rawBody(body: unknown): RawBody {
  if (typeof body === 'string') return body;
  // All that takes bytes here takes any view of them.
  if (ArrayBuffer.isView(body)) return body as Uint8Array;
  if (isBuffer(body)) return new Uint8Array(body);
  if (body == null || (typeof body === 'object' && Symbol.asyncIterator in body)) throw bodyUnavailable(NO_BYTES);
  throw refusal(
    'body_parsed',
    "The body was parsed, but its raw bytes are signed. Use express.raw({ type: '*/*' }), request.rawBody (Nest), file.buffer, a Fastify buffer parser or request.text().",
  );
}

/** Whether it is an ArrayBuffer, of any realm. */
function isBuffer(body: unknown): body is ArrayBuffer {
  return Object.prototype.toString.call(body) === '[object ArrayBuffer]';
}

const NO_BYTES = 'is missing, or was read before: verify first, or pass { body, headers } with its bytes';

/** There is no body to verify. `what` completes "The body …". */
function bodyUnavailable(what: string, cause?: unknown): Error {
  return refusal('body_unavailable', `The body ${what}.`, cause);
}
