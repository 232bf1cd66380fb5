// "Did the service refuse it?": only JSON speaks for the service. Anything else comes from a proxy on the way.
import { isFields, isText, parseJson } from '../schemas/envelope.js';

/** Whether a response of the API is a page, for example of a proxy, whose status says nothing about the request. */
export function isPageBody(text: string, contentType: string | null): boolean {
  if (/\b(html|xml)\b/i.test(contentType ?? '') && parseJson(text) === undefined) return true;
  if (text.trim() === '' || parseJson(text) !== undefined) return false;
  // JSON that was cut is still the service's.
  return text.trimStart().startsWith('<') || !/json/i.test(contentType ?? '');
}

/** Whether a body that came with a status of success is a refusal: it says so, or has an error in place of data. */
export function isRefusalBody(body: unknown): boolean {
  if (!isFields(body)) return false;
  return body.success === false || (hasError(body) && (body.data ?? null) === null && !isRecord(body));
}

/** Whether a body has an error, which explains why it has nothing that was asked for. */
export function hasError(body: unknown): boolean {
  return isFields(body) && (isFields(body.error) || isText(body.error));
}

/** A body without an envelope is the record itself, and may have a field of that name. */
function isRecord(body: object): boolean {
  return 'id' in body || 'job' in body;
}
