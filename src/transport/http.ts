// Only importer of ky, which sends every request: JSON, streams and bytes.
import ky from 'ky';
import { APIError, ConnectionError, GenError } from '../errors/index.js';
import { MAX_CAUSES } from '../rules/delivery.js';
import { hasNoBody, isRedirectFailure, isRedirection } from '../rules/failure-kind.js';
import { streamOf } from '../runtime/bytes.js';
import { reasonOf } from '../runtime/callbacks.js';
import { builtIn, isBrowser, isNode } from '../runtime/platform.js';
import { scrubber, scrubCause } from '../runtime/scrub.js';
import { VERSION } from '../runtime/version.js';
import { show } from '../schemas/show.js';
import { type Attempt, type Call, detailsOf, type Http } from './call.js';
import type { Config } from './config.js';
import type { TransferRequest } from './transport.js';

/** What may be on its way in the buffers below fetch when the last byte of a file has been handed over. */
const SOCKET_BUFFER_BYTES = 1024 * 1024;
/** A line slower than this counts as broken. */
const SLOWEST_BYTES_PER_MS = 100;

/** ky carries the request; everything else about a call is done by the layers. */
const KY_OPTIONS = { retry: 0, timeout: false, throwHttpErrors: false } as const;

export function createHttp({ headers }: Config): Http {
  return {
    headers: { ...(!isBrowser() && { 'user-agent': `gen-client/${VERSION}` }), ...headers },
    cache: takesNoStore() ? { cache: 'no-store' } : {},
    keepsBodies: isNode(),
  };
}

/** Caches such as Next.js' keep a GET unless told otherwise. */
function takesNoStore(): boolean {
  try {
    return Boolean(new Request('http://localhost', { cache: 'no-store' }));
  } catch {
    return false;
  }
}

interface SentRequest {
  /** Headers that the response depends on, such as a range. Only these are sent to another origin. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: BodyInit | undefined;
  /** `error` lets fetch fail for a redirect. @default 'manual' */
  readonly redirect?: 'error' | 'manual';
}

const ACCEPT_JSON = { accept: 'application/json' };
const SEND_JSON = { ...ACCEPT_JSON, 'content-type': 'application/json' };

/**
 * Sends the attempt, and follows redirects as far as they are allowed to lead. Where the runtime keeps a copy of a body that
 * could be redirected, a redirect of a file is an error: a file is never held in memory.
 */
export async function send(attempt: Attempt): Promise<Response> {
  const { call } = attempt;
  const sent = await requestOf(attempt);
  if (call.kind.type !== 'transfer' || !call.core.http.keepsBodies) return followRedirects(attempt, sent);
  try {
    return await followRedirects(attempt, { ...sent, redirect: 'error' });
  } catch (error) {
    if (!isRedirectFailure(error) || attempt.deadline.signal.aborted) throw error;
    throw refusedRedirect(call, 0, 'the bytes of a file go to no other address');
  }
}

/** What the attempt sends. A file is asked for again each time. */
function requestOf(attempt: Attempt): SentRequest | Promise<SentRequest> {
  const { kind, json } = attempt.call;
  if (kind.type === 'transfer') return transferFile(attempt, kind.request);
  if (kind.type === 'stream') return { headers: kind.request.headers?.() ?? {} };
  return json === undefined ? { headers: ACCEPT_JSON } : { headers: SEND_JSON, body: json };
}

/** One request through ky. Retries, deadlines and errors are the transport's own. */
function sendOnce(
  attempt: Attempt,
  /** Where a redirect has led; undefined for the call's own address. */
  redirected: string | undefined,
  { headers, body, redirect = 'manual' }: SentRequest,
): Promise<Response> {
  const { call, deadline } = attempt;
  const { http } = call.core;
  const custom = call.core.config.fetch;
  const init: RequestInit & { duplex?: 'half' } = {
    signal: deadline.signal,
    redirect,
    ...(call.method === 'GET' && http.cache),
    ...(body instanceof ReadableStream
      ? { body: custom && http.keepsBodies ? nodeStream(body) : body, duplex: 'half' }
      : body !== undefined && { body }),
  };
  // Looked up at each call, so that a fetch which is patched later is seen. A fetch of another library cannot read the
  // runtime's Request, so it is called as `fetch(url, init)`. Only `init` holds the body, which ky does not see.
  const fetch = async (request: unknown) => {
    const { url: address, method, headers: sent } = request as Request;
    const send = custom ?? globalThis.fetch;
    return webResponse(await send(address, { ...init, method, headers: sent }));
  };
  const options = { ...KY_OPTIONS, method: call.method, headers, fetch };
  const sent = redirected === undefined ? ky(call.target, { ...options, ...addressOf(call) }) : ky(redirected, options);
  return sent.catch(networkFailure);
}

/** What ky builds the URL of: the base URL, and the query beside that of the path. */
function addressOf({ prefix, query }: Call<unknown>) {
  return {
    ...(prefix !== undefined && { prefix }),
    ...(query.length > 0 && { searchParams: query.map((pair) => [...pair]) }),
  };
}

/** A stream as one of Node's, which every fetch for Node sends. node-fetch would send the name of the other kind as text. */
function nodeStream(stream: ReadableStream): BodyInit {
  const node = builtIn<{ readonly Readable: { fromWeb(stream: ReadableStream): BodyInit } }>('stream');
  return node?.Readable.fromWeb(stream) ?? stream;
}

/** The response of any fetch as one of the runtime's. The body of node-fetch's is a stream of Node's. */
function webResponse(response: Response): Response {
  const given: unknown = response;
  const isResponse = typeof given === 'object' && given !== null && 'status' in given && 'headers' in given;
  if (!isResponse) throw new BadFetch(`fetch must resolve with a Response, not ${show(given)}.`);
  const { body, status, statusText, headers } = response;
  if (body === null || body === undefined || 'getReader' in body) return response;
  return new Response(hasNoBody(status) ? null : streamOf(body), { status, statusText, headers: [...headers] });
}

/** The fetch of the options gave something that cannot be read. */
class BadFetch extends GenError {}

async function followRedirects(attempt: Attempt, first: SentRequest): Promise<Response> {
  const { call, secret } = attempt;
  let url: string | undefined;
  // Only the service itself gets the client's own headers, those of the call, and the key.
  const own = call.toService ? { ...call.core.http.headers, ...call.headers } : {};
  const headers: Record<string, string> = { ...own, ...first.headers };
  if (secret !== undefined) headers.authorization = `Bearer ${secret}`;
  if (call.idempotencyKey !== undefined) headers['idempotency-key'] = call.idempotencyKey;
  let sent: SentRequest = { ...first, headers };
  for (let redirects = 0; ; redirects++) {
    const response = await sendOnce(attempt, url, sent);
    if (!isRedirection(response)) return response;
    dropBody(response);
    const asked = url ?? call.url;
    const next = redirectTarget(response, call, asked);
    if (redirects >= MAX_REDIRECTS) {
      throw refusedRedirect(call, response.status, `it is the ${MAX_REDIRECTS + 1}th in a row`);
    }
    // Nothing of the client's is sent to another origin.
    if (new URL(next).origin !== new URL(asked).origin) sent = { headers: first.headers };
    url = next;
  }
}

/**
 * The file of one attempt, and time for it as long as it moves. When its last byte has been handed over, some of it is
 * still in the buffers below. A body that is handed over as a whole shows no movement: it gets time by its size.
 */
async function transferFile({ call, deadline }: Attempt, request: TransferRequest): Promise<SentRequest> {
  const { 'content-length': length, ...headers } = request.headers;
  const buffered = Math.min(Number(length ?? SOCKET_BUFFER_BYTES), SOCKET_BUFFER_BYTES);
  const restart = (bytes: number) => deadline.restart(call.timeoutMs + bytes / SLOWEST_BYTES_PER_MS);
  const body = await deadline.race(Promise.resolve(request.body(() => restart(buffered))));
  const size = bodySize(body);
  restart(size ?? buffered);
  // The runtime tells a length that it knows by itself. The Edge runtime would send the header twice.
  return { body, headers: size === undefined && length !== undefined ? request.headers : headers };
}

function bodySize(body: BodyInit): number | undefined {
  if (body instanceof Blob) return body.size;
  return body instanceof ArrayBuffer || ArrayBuffer.isView(body) ? body.byteLength : undefined;
}

export function dropBody(response: Response): void {
  if (!response.bodyUsed) response.body?.cancel().catch(() => {});
}

/** Something that fetch or a body threw, in whichever words of a runtime. */
class NetworkFailure extends Error {}

/** Marks what a promise was rejected with as the network's: a TypeError of fetch is not a mistake in the program. */
export function networkFailure(thrown: unknown): never {
  if (thrown instanceof BadFetch) throw thrown;
  // ky wraps what fetch threw. The wrapper says nothing more than its cause.
  const isWrapper = thrown instanceof Error && thrown.name === 'NetworkError' && thrown.cause !== undefined;
  throw new NetworkFailure('', { cause: isWrapper ? thrown.cause : thrown });
}

/** What an attempt has failed with: a failure of the network as a ConnectionError, or as the end of its deadline. */
export function asFailure(error: unknown, { call, deadline, secret }: Omit<Attempt, 'responseInfo'>): unknown {
  if (!(error instanceof NetworkFailure)) return error;
  return deadline.signal.aborted ? deadline.signal.reason : connectionError(error.cause, call, secret);
}

export function connectionError(thrown: unknown, call: Call<unknown>, secret: string | undefined): ConnectionError {
  const scrub = scrubber(secret, call.target, String(new URLSearchParams(call.query.map((pair) => [...pair]))));
  const cause = scrubCause(thrown, scrub);
  const why = cause instanceof Error ? innermostMessage(cause) : reasonOf(cause);
  const message = `${call.method} ${call.url}: the connection failed before the response was complete (${scrub(why)})`;
  return new ConnectionError(message, { ...detailsOf(call), cause });
}

/** The message that says most: Node's "fetch failed" hides the reason in its cause. */
function innermostMessage(error: Error, depth = 0): string {
  const { cause, message, name } = error;
  // Node tries several addresses, and each failed for a reason of its own.
  if (error instanceof AggregateError && error.errors.length > 0 && depth < MAX_CAUSES) {
    const messages = error.errors.map((it) => (it instanceof Error ? innermostMessage(it, depth + 1) : reasonOf(it)));
    return [...new Set(messages)].join('; ');
  }
  return cause instanceof Error && depth < MAX_CAUSES ? innermostMessage(cause, depth + 1) : message || name;
}

const MAX_REDIRECTS = 5;

/** Where a redirect of `asked` leads. Throws the APIError of one that is not followed. */
function redirectTarget({ status, type, headers }: Response, call: Call<unknown>, asked: string): string {
  if (type === 'opaqueredirect') throw refusedRedirect(call, status, 'a browser does not say where it leads');
  const location = headers.get('location') ?? '';
  if (!URL.canParse(location, asked)) throw refusedRedirect(call, status, 'its location is not a URL');
  const [from, to] = [new URL(asked), new URL(location, asked)];
  if (to.username + to.password !== '')
    throw refusedRedirect(call, status, 'its location holds a user name or a password');
  const unencrypted = from.protocol === 'https:' && to.protocol === 'http:';
  // Only a file may come from another origin, which is asked without the key.
  const stays = from.origin === to.origin || call.kind.type === 'stream';
  if (!stays || unencrypted || !/^https?:$/.test(to.protocol) || !/^(GET|HEAD)$/.test(call.method)) {
    throw refusedRedirect(call, status, `it leads to ${to.origin}${unencrypted ? ' without encryption' : ''}`);
  }
  return to.href;
}

/** The error of a redirect that is not followed; `why` says where it leads, as far as that is known. */
function refusedRedirect(call: Call<unknown>, status: number, why: string): APIError {
  const advice = call.toService
    ? 'Set baseUrl to the address that it leads to, so that the API key is sent nowhere else.'
    : 'The storage must accept the bytes at the URL that the service returned.';
  const message = `${call.method} ${call.url}: the redirect is not followed, because ${why}. ${advice}`;
  const refused = { status, code: `http_${status}`, recovery: 'change_request' } as const;
  return new APIError(message, { ...detailsOf(call), ...refused });
}
