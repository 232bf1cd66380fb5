// Sends every request through ky: JSON, streams, and bytes. No other module imports ky.

import ky from 'ky';
import { APIError, ConnectionError, GenError } from '../errors/index.js';
import { MAX_CAUSES } from '../rules/delivery.js';
import { hasNoBody, isRedirectFailure, isRedirection } from '../rules/failure-kind.js';
import { streamOf } from '../runtime/bytes.js';
import { reasonOf } from '../runtime/callbacks.js';
import { builtIn, isBrowser, isNode } from '../runtime/platform.js';
import { scrubber, scrubCause } from '../runtime/scrub.js';
import { VERSION } from '../runtime/version.js';
import { isObject } from '../schemas/envelope.js';
import { formatValue } from '../schemas/format-value.js';
import { type Attempt, type Call, detailsOf, type Http } from './call.js';
import type { Config } from './config.js';
import type { TransferRequest } from './transport.js';

/** Bytes that the socket may still buffer after fetch has read a file's last byte. */
const SOCKET_BUFFER_BYTES = 1024 * 1024;
/** A slower connection counts as broken. */
const MIN_BYTES_PER_MS = 100;

/** The layers handle retries, timeouts, and errors instead, because those must also cover reading the body. */
const KY_OPTIONS = { retry: 0, timeout: false, throwHttpErrors: false } as const;

export function createHttp({ headers }: Config): Http {
  return {
    headers: { ...(!isBrowser() && { 'user-agent': `gen-client/${VERSION}` }), ...headers },
    cache: supportsNoStore() ? { cache: 'no-store' } : {},
    buffersBodies: isNode(),
  };
}

/** Returns true if fetch supports `no-store`. Without it, frameworks such as Next.js cache GETs. */
function supportsNoStore(): boolean {
  try {
    return Boolean(new Request('http://localhost', { cache: 'no-store' }));
  } catch {
    return false;
  }
}

interface OutgoingRequest {
  /** The request's own headers, such as `range`. Another origin receives only these. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: BodyInit | undefined;
  /** `error` makes fetch fail on a redirect. @default 'manual' */
  readonly redirect?: 'error' | 'manual';
}

const ACCEPT_JSON = { accept: 'application/json' };
const SEND_JSON = { ...ACCEPT_JSON, 'content-type': 'application/json' };

/**
 * Sends the attempt and follows allowed redirects. If the runtime buffers each body that could be redirected, a redirected
 * upload is an error, because files must not be buffered in memory.
 */
export async function send(attempt: Attempt): Promise<Response> {
  const { call } = attempt;
  const request = await requestOf(attempt);
  if (call.kind.type !== 'transfer' || !call.core.http.buffersBodies) return followRedirects(attempt, request);
  try {
    return await followRedirects(attempt, { ...request, redirect: 'error' });
  } catch (error) {
    if (!isRedirectFailure(error) || attempt.deadline.signal.aborted) throw error;
    throw redirectError(call, 0, 'files are sent only to their original URL');
  }
}

/** Returns the attempt's request. Reopens a file for each attempt. */
function requestOf(attempt: Attempt): OutgoingRequest | Promise<OutgoingRequest> {
  const { kind, json } = attempt.call;
  if (kind.type === 'transfer') return uploadRequest(attempt, kind.request);
  if (kind.type === 'stream') return { headers: kind.request.headers?.() ?? {} };
  return json === undefined ? { headers: ACCEPT_JSON } : { headers: SEND_JSON, body: json };
}

/** Sends one request through ky. */
function sendOnce(
  attempt: Attempt,
  /** URL of a redirect. Undefined for the call's own URL. */
  redirectUrl: string | undefined,
  { headers, body, redirect = 'manual' }: OutgoingRequest,
): Promise<Response> {
  const { call, deadline } = attempt;
  const { http } = call.core;
  const customFetch = call.core.config.fetch;
  const init: RequestInit & { duplex?: 'half' } = {
    signal: deadline.signal,
    redirect,
    ...(call.method === 'GET' && http.cache),
    ...(body instanceof ReadableStream
      ? { body: customFetch && http.buffersBodies ? nodeStream(body) : body, duplex: 'half' }
      : body !== undefined && { body }),
  };
  // Look up fetch for each request, in case it is patched later. Another library's fetch can't read the runtime's Request, so
  // call it as `fetch(url, init)`. Only `init` contains the body, because ky would copy it.
  const fetch = async (request: unknown) => {
    const { url, method, headers: sentHeaders } = request as Request;
    const currentFetch = customFetch ?? globalThis.fetch;
    return webResponse(await currentFetch(url, { ...init, method, headers: sentHeaders }));
  };
  const options = { ...KY_OPTIONS, method: call.method, headers, fetch };
  const response =
    redirectUrl === undefined ? ky(call.target, { ...options, ...addressOf(call) }) : ky(redirectUrl, options);
  return response.catch(networkFailure);
}

/** Returns the parts from which ky builds the URL. */
function addressOf({ prefix, query }: Call<unknown>) {
  return {
    ...(prefix !== undefined && { prefix }),
    ...(query.length > 0 && { searchParams: query.map((pair) => [...pair]) }),
  };
}

/** Converts a stream to a Node.js stream, which every fetch for Node.js can send. node-fetch would send a web stream as text. */
function nodeStream(stream: ReadableStream): BodyInit {
  const node = builtIn<{ readonly Readable: { fromWeb(stream: ReadableStream): BodyInit } }>('stream');
  return node?.Readable.fromWeb(stream) ?? stream;
}

/** Converts the response of any fetch to the runtime's. With node-fetch, its body is a Node.js stream. */
function webResponse(response: Response): Response {
  const value: unknown = response;
  const isResponse = isObject(value) && 'status' in value && 'headers' in value;
  if (!isResponse) throw new InvalidFetchResult(`fetch must resolve with a Response, not ${formatValue(value)}.`);
  const { body, status, statusText, headers } = response;
  if (body === null || body === undefined || 'getReader' in body) return response;
  return new Response(hasNoBody(status) ? null : streamOf(body), { status, statusText, headers: [...headers] });
}

/** Thrown if the custom fetch resolves with something other than a Response. */
class InvalidFetchResult extends GenError {}

async function followRedirects(attempt: Attempt, firstRequest: OutgoingRequest): Promise<Response> {
  const { call, secret } = attempt;
  let url: string | undefined;
  // Only the service receives the client's headers, the call's headers, and the API key.
  const serviceHeaders = call.toService ? { ...call.core.http.headers, ...call.headers } : {};
  const headers: Record<string, string> = { ...serviceHeaders, ...firstRequest.headers };
  if (secret !== undefined) headers.authorization = `Bearer ${secret}`;
  if (call.idempotencyKey !== undefined) headers['idempotency-key'] = call.idempotencyKey;
  let request: OutgoingRequest = { ...firstRequest, headers };
  for (let redirects = 0; ; redirects++) {
    const response = await sendOnce(attempt, url, request);
    if (!isRedirection(response)) return response;
    dropBody(response);
    const requestedUrl = url ?? call.url;
    const nextUrl = redirectTarget(response, call, requestedUrl);
    if (redirects >= MAX_REDIRECTS) {
      throw redirectError(call, response.status, `it is the ${MAX_REDIRECTS + 1}th in a row`);
    }
    // Another origin gets only the request's own headers: no API key and no custom headers.
    if (new URL(nextUrl).origin !== new URL(requestedUrl).origin) request = { headers: firstRequest.headers };
    url = nextUrl;
  }
}

/**
 * Returns the request that uploads a file. The timeout restarts as bytes are sent. After the last byte, it covers bytes that
 * are still buffered. A body in one piece reports no progress, so its timeout depends on its size.
 */
async function uploadRequest({ call, deadline }: Attempt, request: TransferRequest): Promise<OutgoingRequest> {
  const { 'content-length': length, ...headers } = request.headers;
  const bufferedBytes = Math.min(Number(length ?? SOCKET_BUFFER_BYTES), SOCKET_BUFFER_BYTES);
  const restart = (bytes: number) => deadline.restart(call.timeoutMs + bytes / MIN_BYTES_PER_MS);
  const body = await deadline.race(Promise.resolve(request.body(() => restart(bufferedBytes))));
  const size = bodySize(body);
  restart(size ?? bufferedBytes);
  // The runtime sets the length of a body in one piece. On the Edge runtime, the header would be sent twice.
  return { body, headers: size === undefined && length !== undefined ? request.headers : headers };
}

function bodySize(body: BodyInit): number | undefined {
  if (body instanceof Blob) return body.size;
  return body instanceof ArrayBuffer || ArrayBuffer.isView(body) ? body.byteLength : undefined;
}

export function dropBody(response: Response): void {
  if (!response.bodyUsed) response.body?.cancel().catch(() => {});
}

/** Wraps an error from fetch or from reading a body. */
class NetworkFailure extends Error {}

/** Rethrows an error as a network failure, because fetch's TypeError isn't a bug in the program. */
export function networkFailure(thrown: unknown): never {
  if (thrown instanceof InvalidFetchResult) throw thrown;
  // Unwrap ky's error, which adds nothing to its cause.
  const isWrapper = thrown instanceof Error && thrown.name === 'NetworkError' && thrown.cause !== undefined;
  throw new NetworkFailure('', { cause: isWrapper ? thrown.cause : thrown });
}

/** Converts a network failure to a ConnectionError, or to the timeout or abort that caused it. Returns other errors unchanged. */
export function attemptError(error: unknown, { call, deadline, secret }: Omit<Attempt, 'responseInfo'>): unknown {
  if (!(error instanceof NetworkFailure)) return error;
  return deadline.signal.aborted ? deadline.signal.reason : connectionError(error.cause, call, secret);
}

export function connectionError(thrown: unknown, call: Call<unknown>, secret: string | undefined): ConnectionError {
  const scrub = scrubber(secret, call.target, String(new URLSearchParams(call.query.map((pair) => [...pair]))));
  const cause = scrubCause(thrown, scrub);
  const reason = cause instanceof Error ? innermostMessage(cause) : reasonOf(cause);
  const message = `${call.method} ${call.url}: the connection failed before the response was complete (${scrub(reason)})`;
  return new ConnectionError(message, { ...detailsOf(call), cause });
}

/** Returns the most specific message. Node's "fetch failed" has the reason in its cause. */
function innermostMessage(error: Error, depth = 0): string {
  const { cause, message, name } = error;
  // Node.js tries several addresses, and each can fail for a different reason.
  if (error instanceof AggregateError && error.errors.length > 0 && depth < MAX_CAUSES) {
    const messages = error.errors.map((inner) =>
      inner instanceof Error ? innermostMessage(inner, depth + 1) : reasonOf(inner),
    );
    return [...new Set(messages)].join('; ');
  }
  return cause instanceof Error && depth < MAX_CAUSES ? innermostMessage(cause, depth + 1) : message || name;
}

const MAX_REDIRECTS = 5;

/** Returns the target of a redirect from `requestedUrl`. Throws an APIError if it must not be followed. */
function redirectTarget({ status, type, headers }: Response, call: Call<unknown>, requestedUrl: string): string {
  if (type === 'opaqueredirect') throw redirectError(call, status, 'browsers hide its location');
  const location = headers.get('location') ?? '';
  if (!URL.canParse(location, requestedUrl)) throw redirectError(call, status, 'its location is not a URL');
  const [source, target] = [new URL(requestedUrl), new URL(location, requestedUrl)];
  if (target.username + target.password !== '')
    throw redirectError(call, status, 'its location contains a user name or a password');
  const losesEncryption = source.protocol === 'https:' && target.protocol === 'http:';
  // Only a file may come from another origin, without the API key.
  const isAllowedOrigin = source.origin === target.origin || call.kind.type === 'stream';
  if (!isAllowedOrigin || losesEncryption || !/^https?:$/.test(target.protocol) || !/^(GET|HEAD)$/.test(call.method)) {
    throw redirectError(call, status, `it leads to ${target.origin}${losesEncryption ? ' without encryption' : ''}`);
  }
  return target.href;
}

/** Creates the error for a redirect that isn't followed. */
function redirectError(call: Call<unknown>, status: number, reason: string): APIError {
  const advice = call.toService
    ? 'Set baseUrl to its location, so that the API key is sent only there.'
    : 'The storage must accept the bytes at the URL that the service returned.';
  const message = `${call.method} ${call.url}: the redirect is not followed, because ${reason}. ${advice}`;
  const details = { status, code: `http_${status}`, recovery: 'change_request' } as const;
  return new APIError(message, { ...detailsOf(call), ...details });
}
