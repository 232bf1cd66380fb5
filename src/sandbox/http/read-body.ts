import { Refusal } from '../service/refusal.js';
import { MAX_BODY_BYTES } from '../world/choices.js';

/**
 * The body of a POST, read once: routes get it as text, because a copy of the request would cost more than its answer. Gives a
 * refusal for a body that is too large, which is not read to its end.
 */
export async function readBody(request: Request): Promise<string | Refusal> {
  if (request.method !== 'POST') return '';
  const length = request.headers.get('content-length');
  if (Number(length) > MAX_BODY_BYTES) return tooLarge();
  // A server that knows the length reads the text without making a stream of it.
  if (length !== null) return request.text();
  if (request.body === null) return '';
  const decoder = new TextDecoder();
  const reader = request.body.getReader();
  let text = '';
  let size = 0;
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    size += read.value.length;
    if (size > MAX_BODY_BYTES) {
      reader.cancel().catch(() => {});
      return tooLarge();
    }
    text += decoder.decode(read.value, { stream: true });
  }
  return text + decoder.decode();
}

function tooLarge(): Refusal {
  return new Refusal('request_too_large', `The body is larger than ${MAX_BODY_BYTES} bytes. Send files as uploads.`);
}
