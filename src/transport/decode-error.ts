import { JOB_ERRORS, REQUEST_ERRORS, type Recovery, rowOf } from '../errors/codes.js';
import { markPage } from '../errors/gen-error.js';
import { type APIError, documentedStatus } from '../errors/index.js';
import { errorTypeOf, storageErrorTypeOf } from '../rules/failure-kind.js';
import { isMarkup, isPageBody } from '../rules/rejection.js';
import { readRetryAfter, readSeconds } from '../rules/retry-after.js';
import { scrubHeaders, scrubText, scrubValue } from '../runtime/scrub.js';
import { type Fields, isFields, parseJson, requestIdOf } from '../schemas/envelope.js';

export interface RejectedResponse {
  readonly status: number;
  readonly statusText: string;
  readonly headers: Headers;
  readonly text: string;
}

export interface RejectedCall {
  readonly method: string;
  readonly url: string;
  readonly idempotencyKey: string | undefined;
  readonly attempts: number;
  /** If true, the service rejects this call with JSON, so an HTML page must come from a proxy. */
  readonly expectsJson: boolean;
  /** The API key, which is removed from the entire error, because a service may echo it. */
  readonly secret: string | undefined;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** False if the call went to object storage. @default true */
  readonly toService?: boolean;
}

const REQUEST_ERROR_TYPES: Readonly<Record<string, readonly [status: number, recovery: Recovery]>> = REQUEST_ERRORS;
const JOB_RECOVERY: Readonly<Record<string, Recovery>> = JOB_ERRORS;
const MAX_PLAIN_MESSAGE = 300;

/**
 * Creates the error for a rejection. Finds its code, message, and other fields anywhere in the envelope. Removes the API key
 * afterward, so that a key that is part of a documented code doesn't change the code.
 */
export function decodeError(rejection: RejectedResponse, call: RejectedCall): APIError {
  const { text } = rejection;
  const clean = (value: string | undefined) => (value === undefined ? undefined : scrubText(value, call.secret));
  const headers = scrubHeaders(rejection.headers, call.secret);
  const body = parseJson(text) ?? storageError(text);
  const objects = errorObjectsIn(body);
  const anyCode = findCode(objects);
  // An undocumented code that contains the API key is an echo of the key.
  const code = anyCode && (isDocumented(anyCode) || clean(anyCode) === anyCode) ? anyCode : undefined;
  const documentedError = code === undefined ? undefined : rowOf(REQUEST_ERROR_TYPES, code);
  const { status } = rejection;
  const isStorage = call.toService === false;
  const [Class, recovery] = isStorage ? storageErrorTypeOf(status) : errorTypeOf(documentedStatus({ status, code }));
  const codeRecovery =
    code === undefined || isStorage ? undefined : (documentedError?.[1] ?? rowOf(JOB_RECOVERY, code));
  const { method, url, idempotencyKey, attempts } = call;
  const isPage = call.expectsJson && isPageBody(text, headers.get('content-type'));
  const serviceMessage = findMessage(objects);
  const explanation = isPage ? pageMessage(rejection, call, serviceMessage) : serviceMessage;
  const message = clean(explanation ?? plainMessage(rejection, call, body === undefined ? text : '')) ?? '';
  const topUpUrl = clean(firstField(objects, ['top_up_url'], asText));
  const error = new Class(message, {
    status,
    code: code ?? `http_${status}`,
    recovery: isPage ? 'retry_later' : (codeRecovery ?? recovery),
    method,
    url,
    idempotencyKey,
    attempts,
    headers,
    data: scrubValue(dataOf(body, text), (value) => scrubText(value, call.secret)),
    requestId: requestIdOf(headers) ?? clean(firstField(objects, ['request_id', 'requestId'], asText)),
    retryAfterMs: readRetryAfter(headers, call.now) ?? firstField(objects, ['retry_after', 'retryAfter'], readSeconds),
    ...(topUpUrl !== undefined && { topUpUrl }),
  });
  if (isPage) markPage(error);
  return error;
}

/** Returns the body's `data`, or the entire body. A body that isn't JSON is returned as text, unless it's markup or empty. */
function dataOf(body: unknown, text: string): unknown {
  if (body === undefined) return isMarkup(text) || text === '' ? undefined : text;
  return (isFields(body) ? body.data : undefined) ?? body;
}

/** Returns the fields of an XML error of object storage, for example for an expired signed URL. */
function storageError(text: string): Fields | undefined {
  const field = (name: string) => new RegExp(`<${name}>([^<]*)`).exec(text)?.[1];
  const code = field('Code');
  return code === undefined ? undefined : { code, message: field('Message') };
}

/** Returns the objects of an envelope that may contain the error's fields, most specific first. */
function errorObjectsIn(body: unknown): readonly Fields[] {
  const root = Array.isArray(body) ? body[0] : body;
  if (typeof root === 'string') return [{ error: root }];
  if (!isFields(root)) return [];
  const { error, data, errors, detail } = root;
  const firstEntry = Array.isArray(errors) ? errors[0] : errors;
  const dataError = isFields(data) ? data.error : undefined;
  const details = Array.isArray(detail) ? detail[0] : detail;
  const firstError = typeof firstEntry === 'string' ? { error: firstEntry } : firstEntry;
  return [error, isFields(error) ? error.data : undefined, root, dataError, data, firstError, details].filter(isFields);
}

/** Returns the first documented code, otherwise the first value that looks like a code. */
function findCode(objects: readonly Fields[]): string | undefined {
  const names = ['code', 'error', 'errorCode', 'error_code', 'type', 'detail', 'message'];
  const documentedCode = firstField(objects, names, (value) =>
    typeof value === 'string' && isDocumented(value) ? value : undefined,
  );
  return documentedCode ?? firstField(objects, names.slice(0, 4), asCode) ?? firstField(objects, ['detail'], asCode);
}

function isDocumented(code: string): boolean {
  return Boolean(rowOf(REQUEST_ERROR_TYPES, code) ?? rowOf(JOB_RECOVERY, code));
}

function findMessage(objects: readonly Fields[]): string | undefined {
  const names = ['message', 'errorMessage', 'error_message', 'msg', 'error_description', 'detail', 'error', 'title'];
  const asProse = (value: unknown) => (asCode(value) === undefined ? asText(value) : undefined);
  return firstField(objects, names, asProse) ?? firstField(objects, names.slice(0, 3), asText);
}

function plainMessage(rejection: RejectedResponse, call: RejectedCall, text: string): string {
  const excerpt = isMarkup(text) ? '' : text.trim().slice(0, MAX_PLAIN_MESSAGE);
  return `${call.method} ${call.url} failed with ${statusLine(rejection)}${excerpt ? `: ${excerpt}` : '.'}`;
}

function pageMessage(rejection: RejectedResponse, { method, url }: RejectedCall, message: string | undefined): string {
  const { text } = rejection;
  const title = isMarkup(text) ? /<title[^>]{0,100}>([^<]{0,200})/i.exec(text)?.[1] : text;
  const excerpt = (message ?? title ?? '').trim().slice(0, MAX_PLAIN_MESSAGE);
  const page = statusLine(rejection) + (excerpt && `, "${excerpt}"`);
  return `${method} ${url}: received a web page instead of the service's response (${page}). A proxy may have sent it. Try again later, and check baseUrl.`;
}

function statusLine({ status, statusText }: RejectedResponse): string {
  return `${status} ${statusText}`.trim();
}

function firstField<T>(
  objects: readonly Fields[],
  names: readonly string[],
  read: (value: unknown) => T | undefined,
): T | undefined {
  for (const object of objects) {
    for (const name of names) {
      const result = read(object[name]);
      if (result !== undefined) return result;
    }
  }
  return undefined;
}

function asText(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined;
}

function asCode(value: unknown): string | undefined {
  return typeof value === 'string' && /^[a-z][\w.-]{0,79}$/i.test(value) ? value : undefined;
}
