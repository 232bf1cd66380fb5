import { bodyOf, unavailable } from './body.js';
import { refusal } from './refusal.js';
import type { RawBody } from './signature.js';

/** Reads a request's body and stops as soon as it is larger than `maxBytes`, whatever its Content-Length says. */
export async function readCapped(request: Request, maxBytes: number): Promise<RawBody> {
  if (request.bodyUsed || !request.body) return bodyOf(request);
  if (Number(request.headers.get('content-length')) > maxBytes) throw tooLarge(maxBytes);
  const chunks: Uint8Array[] = [];
  const size = await collect(request.body, chunks, maxBytes);
  if (size > maxBytes) throw tooLarge(maxBytes);
  const body = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    body.set(chunk, at);
    at += chunk.length;
  }
  return body;
}

async function collect(stream: ReadableStream<Uint8Array>, chunks: Uint8Array[], maxBytes: number): Promise<number> {
  let size = 0;
  try {
    const reader = stream.getReader();
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      size += next.value.length;
      if (size > maxBytes) {
        // Not awaited: the sender may take its time to notice.
        reader.cancel().catch(() => {});
        break;
      }
      chunks.push(next.value);
    }
  } catch (cause) {
    throw unavailable('could not be read to its end', cause);
  }
  return size;
}

function tooLarge(maxBytes: number): Error {
  return refusal('body_too_large', `The body is larger than \`maxBodyBytes\` (${maxBytes}).`);
}
