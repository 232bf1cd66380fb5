// Reads a call's response, and creates the error of an unusable one.
import { markPage } from '../errors/gen-error.js';
import { type APIError, ResponseError } from '../errors/index.js';
import { hasNoBody } from '../rules/failure-kind.js';
import { hasError, isMarkup, isPageBody, isRejectionBody } from '../rules/rejection.js';
import { bodyLength, readUpTo, withBody } from '../runtime/bytes.js';
import type { Deadline } from '../runtime/deadline.js';
import { scrubText } from '../runtime/scrub.js';
import { isFields, parseJson, requestIdOf, unwrap } from '../schemas/envelope.js';
import { tokensIn } from '../schemas/job.js';
import { type Attempt, type Call, detailsOf, type LayerResult, type ResponseInfo } from './call.js';
import { decodeError } from './decode-error.js';
import { connectionError, networkFailure } from './http.js';
import type { JsonRequest } from './transport.js';

/** Maximum size of a JSON response after decompression. */
const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;
/** Maximum bytes of a rejection to read for its message. */
const MAX_ERROR_BYTES = 64 * 1024;

interface ReadResponse {
  readonly response: Response;
  readonly text: string;
}

/** Reads the response to an attempt. Throws the APIError of a rejection. */
export async function readResponse<T>(call: Call<T>, attempt: Attempt, response: Response): Promise<LayerResult<T>> {
  const { kind, attemptNumber: attempts, idempotencyKey } = call;
  const meta = { requestId: scrubbedRequestId(response, attempt.secret), attempts, idempotencyKey };
  if (kind.type === 'json') {
    const { text, decoded } = await readJson(call, kind.request, attempt, response);
    return { ...meta, response, text, decoded };
  }
  if (kind.type === 'stream') {
    const guardedResponse = await readStream(attempt, response);
    return { ...meta, response: guardedResponse, decoded: { data: kind.read(guardedResponse) } };
  }
  const { text } = await readBody(attempt, response);
  attempt.deadline.end();
  if (call.toService && isMarkup(text, response.headers.get('content-type')))
    throw notJsonError(call, { response, text });
  if (call.toService && isRejectionBody(parseJson(text))) throw apiErrorOf(attempt, { response, text });
  const unreadResponse = withText(response, text);
  return { ...meta, response: unreadResponse, decoded: { data: kind.read(unreadResponse) } };
}

/** Returns the service's ID for the request, without the API key, which a service may echo. */
export function scrubbedRequestId({ headers }: Response, secret: string | undefined): string | undefined {
  const id = requestIdOf(headers);
  return id && scrubText(id, secret);
}

async function readJson<T>(call: Call<T>, request: JsonRequest<T>, attempt: Attempt, response: Response) {
  const { text, isComplete } = await readBody(attempt, response).catch((error: unknown) => {
    // An earlier attempt succeeded, but its response was lost.
    if (call.failures > 0 && response.status === request.statusWhenDone) return { text: '', isComplete: true };
    throw error;
  });
  attempt.deadline.end();
  const value = isComplete ? parseJson(text) : undefined;
  if (attempt.responseInfo) recordSize(attempt.responseInfo, text, value);
  if (isComplete && value === undefined && (text !== '' || request.creates))
    throw notJsonError(call, { response, text });
  if (isRejectionBody(value)) throw apiErrorOf(attempt, { response, text });
  try {
    if (!isComplete) throw responseTooLargeError(call, response);
    return { text, decoded: { data: request.decode(value, detailsOf(call)) } };
  } catch (failure) {
    if (hasError(value)) throw apiErrorOf(attempt, { response, text });
    // Don't throw yet, because the caller may want the response itself, and a retry would return the same one.
    return { text, decoded: { failure } };
  }
}

/** Returns the response with a timeout between two chunks. Throws the APIError of a rejection. */
async function readStream(attempt: Attempt, response: Response): Promise<Response> {
  const { call, deadline, secret } = attempt;
  if (!response.ok) await readBody(attempt, response);
  deadline.pause();
  const createError = (cause: unknown) => connectionError(cause, call, secret);
  if (response.body !== null) {
    return withBody(response, guardedBody(response.body, { deadline, idleMs: call.timeoutMs, createError }));
  }
  deadline.end();
  return response;
}

/** Reads the entire body within the attempt's timeout. Throws the APIError of a rejection. */
async function readBody(attempt: Attempt, response: Response) {
  const { call, deadline } = attempt;
  const reading = deadline.race(readText(response, response.ok ? MAX_RESPONSE_BYTES : MAX_ERROR_BYTES));
  if (response.ok) return reading.catch(networkFailure);
  // The status alone proves the rejection, so an incomplete body isn't retried.
  const { text } = await reading.catch((error: unknown) => {
    if (call.signal?.aborted) throw error;
    return { text: '' };
  });
  throw apiErrorOf(attempt, { response, text });
}

function apiErrorOf({ call, secret }: Attempt, { response, text }: ReadResponse): APIError {
  const { status, statusText, headers } = response;
  const now = call.core.config.clock.wall.now();
  const expectsJson = call.kind.type === 'json' || (call.kind.type === 'transfer' && call.toService);
  return decodeError(
    { status, statusText, headers, text },
    { ...detailsOf(call), expectsJson, toService: call.toService, secret, now },
  );
}

function notJsonError(call: Call<unknown>, { response, text }: ReadResponse): ResponseError {
  const type = response.headers.get('content-type') ?? 'no content type';
  const body = text === '' ? 'an empty body' : `a body that is not JSON (${type}, ${text.length} characters)`;
  const message = `${call.method} ${call.url}: the service responded ${response.status} with ${body}`;
  const error = new ResponseError(message, detailsOf(call));
  if (isPageBody(text, response.headers.get('content-type'))) markPage(error);
  return error;
}

function responseTooLargeError(call: Call<unknown>, response: Response): ResponseError {
  const message = `${call.method} ${call.url}: the ${response.status} response is larger than ${MAX_RESPONSE_BYTES} bytes`;
  return new ResponseError(message, detailsOf(call));
}

function recordSize(responseInfo: ResponseInfo, text: string, value: unknown): void {
  responseInfo.receivedBytes = new TextEncoder().encode(text).length;
  const data = unwrap(value);
  if (isFields(data)) responseInfo.quotedTokens = tokensIn(data.quoted_token_cost);
}

/** Reads up to `maxBytes` of the body as text, after decompression. `isComplete` is true if that is the entire body. */
async function readText(response: Response, maxBytes: number) {
  const { headers, body } = response;
  // The runtime never reads more than the Content-Length.
  const isSmall = (bodyLength(headers) ?? Number.POSITIVE_INFINITY) <= maxBytes;
  if (body === null || isSmall) return { text: await response.text(), isComplete: true };
  const { bytes, end } = await readUpTo(body, maxBytes);
  return { text: new TextDecoder().decode(bytes), isComplete: end === 'complete' };
}

/** Returns a copy of the response with an unread body. */
export function withText(response: Response, text: string): Response {
  return withBody(response, hasNoBody(response.status) ? null : text);
}

interface StreamOptions {
  readonly deadline: Deadline;
  readonly idleMs: number;
  /** Creates the error for a connection that breaks off. */
  readonly createError: (cause: unknown) => Error;
}

/**
 * Returns a guarded body: each read may take `idleMs`, and an abort ends it immediately. Removes the abort listener when
 * the body ends, fails, or is canceled.
 */
function guardedBody(
  source: ReadableStream<Uint8Array<ArrayBuffer>>,
  { deadline, idleMs, createError }: StreamOptions,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const reader = source.getReader();
  const finish = (cancel: boolean, reason?: unknown) => {
    deadline.end();
    if (cancel) reader.cancel(reason).catch(() => {});
  };
  const guarded: UnderlyingDefaultSource<Uint8Array<ArrayBuffer>> = {
    // Listen for aborts between reads, too.
    start(controller) {
      const abort = () => {
        controller.error(deadline.signal.reason);
        finish(true, deadline.signal.reason);
      };
      deadline.signal.addEventListener('abort', abort, { once: true });
    },
    async pull(controller) {
      try {
        deadline.restart(idleMs);
        const { done, value } = await deadline.race(reader.read());
        deadline.pause();
        if (!done) return controller.enqueue(value);
        finish(false);
        controller.close();
      } catch (error) {
        if (deadline.signal.aborted) return;
        finish(true, error);
        controller.error(createError(error));
      }
    },
    cancel: (reason) => finish(true, reason),
  };
  return new ReadableStream<Uint8Array<ArrayBuffer>>(guarded, { highWaterMark: 0 });
}
