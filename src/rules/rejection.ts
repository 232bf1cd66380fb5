// Determines if the service rejected a request. The service returns only JSON. Anything else comes from a proxy.
import { isFields, isText, parseJson } from '../schemas/envelope.js';

/** Returns true if the response is a page, for example from a proxy. Its status says nothing about the request. */
export function isPageBody(text: string, contentType: string | null): boolean {
  if (isMarkup(text, contentType)) return true;
  if (text.trim() === '' || parseJson(text) !== undefined) return false;
  // Truncated JSON still comes from the service.
  return !/json/i.test(contentType ?? '');
}

/** Returns true if the body is HTML or XML. For a PUT, only these are pages, because its response isn't documented. */
export function isMarkup(text: string, contentType: string | null = null): boolean {
  if (parseJson(text) !== undefined) return false;
  return /\b(html|xml)\b/i.test(contentType ?? '') || text.trimStart().startsWith('<');
}

/** Returns true if a body with a success status is a rejection: `success` is false, or it has an error but no data. */
export function isRejectionBody(body: unknown): boolean {
  if (!isFields(body)) return false;
  return body.success === false || (hasError(body) && (body.data ?? null) === null && !isRecord(body));
}

/** Returns true if the body contains an error. */
export function hasError(body: unknown): boolean {
  return isFields(body) && (isFields(body.error) || isText(body.error));
}

/** Returns true if the body is a record without an envelope. A record may have an `error` field. */
function isRecord(body: object): boolean {
  return 'id' in body || 'job' in body;
}
