// Only importer of ky, which carries every request: JSON, streams and bytes.
import ky, { type KyInstance, type Options } from 'ky';
import { type Config, isBrowser, isNode } from '../config.js';
import { VERSION } from '../version.js';
import { type Attempt, dropBody, networkFailure } from './exchange.js';
import { isRedirectFailure, type RedirectSource, redirectRefusal, redirectTarget } from './redirect.js';
import type { TransferRequest } from './transport.js';

/** What may be on its way in the buffers below fetch when the last byte of a file has been handed over. */
const SOCKET_BUFFER_BYTES = 1024 * 1024;
/** A line slower than this counts as broken. */
const SLOWEST_BYTES_PER_MS = 100;

/** The client's ky instances. */
export interface Http {
  /** The service: paths below the base URL, with the client's headers. */
  readonly service: () => KyInstance;
  /** Any other origin: nothing of the client's is sent there. */
  readonly elsewhere: KyInstance;
  /** Whether fetch takes `cache: 'no-store'`. */
  readonly takesNoStore: boolean;
}

/** Makes the ky instances of one client. */
export function createHttp(config: Config): Http {
  // Looked up at each call, so that a fetch which is patched later (by msw, say) is seen.
  const send: typeof fetch = (...request) => (config.fetch ?? globalThis.fetch)(...request);
  // Retries, deadlines and errors are the transport's own.
  const plain: Options = { retry: 0, timeout: false, throwHttpErrors: false, redirect: 'manual', fetch: send };
  let service: KyInstance | undefined;
  return {
    service: () => {
      service ??= ky.create({ ...plain, prefix: config.baseUrl(), headers: serviceHeaders(config) });
      return service;
    },
    elsewhere: ky.create(plain),
    takesNoStore: takesNoStore(),
  };
}

function serviceHeaders(config: Config): Record<string, string> {
  return { ...(!isBrowser() && { 'user-agent': `gen-client/${VERSION}` }), ...config.headers };
}

/** One request as ky takes it, and how far redirects may lead. */
export interface Sent extends Omit<Options, 'headers'> {
  /** Below the base URL, or absolute. */
  readonly path: string;
  /** Headers that the answer depends on, such as a range. Only these are sent to another origin. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Whether another origin may be asked, without the key: only for a stream. */
  readonly leaves?: boolean;
}

/** Sends the attempt, and follows redirects as far as they are allowed to lead. */
export async function follow(http: Http, attempt: Attempt, { path, leaves = false, ...sent }: Sent): Promise<Response> {
  const { call, deadline } = attempt;
  const { method } = call;
  const { signal } = deadline;
  let send = call.toService ? http.service() : http.elsewhere;
  let options: Options = {
    ...sent,
    method,
    signal,
    headers: { ...call.headers, ...sent.headers, ...ownHeaders(attempt) },
  };
  let target: string | URL = path.startsWith('/') ? path : new URL(path);
  let url = call.url;
  for (let redirects = 0; ; redirects++) {
    const response: Response = await send(target, options).catch(asNetworkFailure);
    const next = redirectTarget(response, { ...sourceOf(attempt), url, redirects, leaves });
    if (next === undefined) return response;
    dropBody(response);
    if (next instanceof Error) throw next;
    target = new URL(next);
    if (target.origin !== new URL(url).origin) {
      send = http.elsewhere;
      options = { method, signal, headers: sent.headers ?? {} };
    }
    url = next;
  }
}

function sourceOf({ call, number: attempts }: Attempt): RedirectSource {
  const { method, url, idempotencyKey, toService } = call;
  return { method, url, attempts, idempotencyKey, toService, redirects: 0, leaves: false };
}

function ownHeaders({ call, secret }: Attempt): Record<string, string> {
  return {
    ...(secret !== undefined && { authorization: `Bearer ${secret}` }),
    ...(call.idempotencyKey !== undefined && { 'idempotency-key': call.idempotencyKey }),
  };
}

/**
 * Sends a request with a body. Node keeps a copy of a body that could be redirected, so there a redirect is an error, and
 * only a body that can be had again is sent a second time to see where it leads.
 */
export async function sendBody(http: Http, attempt: Attempt, request: () => Sent | Promise<Sent>): Promise<Response> {
  if (!isNode()) return follow(http, attempt, await request());
  try {
    return await follow(http, attempt, { ...(await request()), redirect: 'error' });
  } catch (error) {
    if (!isRedirectFailure(error) || attempt.deadline.signal.aborted) throw error;
    if (attempt.call.repeatable) return follow(http, attempt, await request());
    throw redirectRefusal(0, sourceOf(attempt), 'a stream cannot be sent twice to see where it leads');
  }
}

/**
 * The file of one attempt, and time for it as long as it moves. When its last byte has been handed over, some of it is
 * still in the buffers below. A body that is handed over as a whole shows no movement: it gets time by its size.
 */
export async function fileOf({ call, deadline }: Attempt, request: TransferRequest): Promise<Sent> {
  const { 'content-length': length, ...headers } = request.headers;
  const buffered = Math.min(Number(length ?? SOCKET_BUFFER_BYTES), SOCKET_BUFFER_BYTES);
  const restart = (bytes: number) => deadline.restart(call.timeoutMs + bytes / SLOWEST_BYTES_PER_MS);
  const body = await deadline.race(Promise.resolve(request.body(() => restart(buffered))));
  const size = sizeOf(body);
  restart(size ?? buffered);
  // The runtime tells a length that it knows by itself. The Edge runtime would send the header twice.
  return { path: request.url, body, headers: size === undefined && length !== undefined ? request.headers : headers };
}

function sizeOf(body: BodyInit): number | undefined {
  if (body instanceof Blob) return body.size;
  return body instanceof ArrayBuffer || ArrayBuffer.isView(body) ? body.byteLength : undefined;
}

/** ky wraps what fetch threw. The wrapper says nothing more than its cause. */
function asNetworkFailure(error: unknown): never {
  const isWrapper = error instanceof Error && error.name === 'NetworkError' && error.cause !== undefined;
  return networkFailure(isWrapper ? error.cause : error);
}

/** Next.js caches a GET unless told otherwise. An old compatibility date of workerd refuses to be told. */
function takesNoStore(): boolean {
  try {
    return Boolean(new Request('http://localhost', { cache: 'no-store' }));
  } catch {
    return false;
  }
}
