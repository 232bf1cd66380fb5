import { type Clock, systemClock } from '../clock.js';
import { type Config, isBrowser, isNode } from '../config.js';
import { type APIError, ResponseError, TimeoutError } from '../errors/index.js';
import { type Account, accountFor } from '../limits/account-state.js';
import type { LaneLimiter, RateLimiter } from '../limits/rate-limiter.js';
import { isFields } from '../schemas/envelope.js';
import type { RequestOptions } from '../schemas/request-options.js';
import { VERSION } from '../version.js';
import type { Attempt, Wiring } from './attempt.js';
import { createAttemptGuard } from './attempt-guard.js';
import { type AddBody, createCall, type Send } from './call.js';
import { decodeError, parseJson, requestIdOf } from './decode-error.js';
import { asConnectionError, exchange } from './exchange.js';
import { guardBody } from './idle-stream.js';
import { createKeyRing } from './key-ring.js';
import { createObserver } from './observe.js';
import { type Answer, type ResponseMeta, requestPromise } from './request-promise.js';
import { networkFailure } from './send-attempt.js';
import type { JsonRequest, RequestPath, StreamRequest, TransferRequest, Transport } from './transport.js';

const ACCEPT = { accept: 'application/json' } as const;
const JSON_HEADERS = [ACCEPT, { ...ACCEPT, 'content-type': 'application/json' }] as const;

/** The transport of one client. `clock` is for tests. */
export function createTransport(config: Config, clock: Clock = systemClock): LimitedTransport {
  const ring = createKeyRing(config);
  const wiring: Wiring = {
    config,
    clock,
    ring,
    observer: createObserver(config),
    agent: isBrowser() ? {} : { 'user-agent': `gen-client/${VERSION}` },
    copiesBodies: isNode(),
    takesNoStore: takesNoStore(),
    // Looked up at each call, so that a fetch which is patched later (by msw, say) is seen.
    fetch: (url, init) => (config.fetch ? config.fetch(url, init) : globalThis.fetch(url, init)),
  };
  return {
    baseUrl: config.baseUrl,
    send: (request, options) => requestPromise(sendJson(wiring, request, options)),
    open: (request, options) => requestPromise(openStream(wiring, request, options)),
    transfer: (request, options) => requestPromise(transferBytes(wiring, request, options)),
    account: () => askAccount(wiring),
    warn: (message) => wiring.observer?.warn(message),
    limiter: () => config.limiter ?? ring.known()?.limiter,
  };
}

/** The port, and what the client shows of its limits. */
export interface LimitedTransport extends Transport {
  /** The limiter that the calls go through, as far as it is known without asking a key function. */
  limiter(): (RateLimiter & Partial<LaneLimiter>) | undefined;
  /** Tells the logger of something doubtful. */
  warn(message: string): void;
}

/** Asked for before any call is sent: the account of a key function that must not hang. */
async function askAccount({ clock, config, ring }: Wiring): Promise<Account> {
  const known = ring.known();
  if (known) return known;
  const { timeoutMs, baseUrl: url } = config;
  const late = () => new TimeoutError(`apiKey gave no key within ${timeoutMs} ms (timeoutMs).`, { timeoutMs });
  const guard = createAttemptGuard({ clock, timeoutMs, signal: undefined, late });
  const asked = async () => ring.ask({ method: 'GET', shownUrl: url });
  const key = await guard.race(asked()).finally(guard.end);
  return ring.known() ?? accountFor(url, key);
}

async function sendJson<T>(wiring: Wiring, request: JsonRequest<T>, options: RequestOptions = {}): Promise<Answer<T>> {
  const { config, observer } = wiring;
  const { method, body, query, lane, isPublic, noStore, decode } = request;
  if (options.preflight ?? config.preflight) request.check?.(body, (message) => observer?.warn(message));
  const json = body === undefined ? undefined : JSON.stringify(body);
  const path = pathOf(request.path) + queryText(query);
  const headers = JSON_HEADERS[json ? 1 : 0];
  const parts = { method, path, lane, isPublic, noStore, headers, json: body, body: json, send: wiring.fetch };
  const call = createCall(config, parts, options);
  return exchange(wiring, call, async (response, attempt) => {
    const text = await readText(wiring, response, attempt);
    const value = parseJson(text);
    const mayBeEmpty = text === '' && !request.creates;
    if (value === undefined && !mayBeEmpty) throw notJson(response, attempt, text);
    if (isFields(value) && value.success === false) throw refusal(wiring, { response, text, attempt });
    const { idempotencyKey } = call;
    return {
      meta: () => metaOf(response, attempt),
      response: () => rebuilt(response, text),
      data: () => decode(value, { method, path: call.path, idempotencyKey, attempts: attempt.number, response }),
    };
  });
}

async function openStream(wiring: Wiring, request: StreamRequest, options?: RequestOptions): Promise<Answer<Response>> {
  const { method, lane, headers } = request;
  const parts = { method, lane, path: pathOf(request.path), headers: headers?.() };
  const call = createCall(wiring.config, { ...parts, streams: true, send: wiring.fetch }, options);
  return exchange(wiring, call, async (response, attempt) => {
    if (!response.ok) await readText(wiring, response, attempt);
    attempt.guard.suspend();
    const broken = (cause: unknown) => asConnectionError(cause, attempt);
    const guarded = guardBody(response, attempt.guard, { idleMs: call.timeoutMs, broken });
    return { meta: () => metaOf(response, attempt), response: () => guarded, data: () => guarded };
  });
}

async function transferBytes(
  wiring: Wiring,
  request: TransferRequest,
  options?: RequestOptions,
): Promise<Answer<Response>> {
  const { config } = wiring;
  const toService = new URL(request.url).origin === new URL(config.baseUrl).origin;
  const path = request.url.startsWith(config.baseUrl) ? request.url.slice(config.baseUrl.length) : request.url;
  // What only a file on its way needs is loaded with the first of them, within the deadline of its attempt.
  const send: Send = async (url, init) => (await import('./bytes.js')).throughKy(wiring.fetch, url, init);
  const body: AddBody = async (...attempt) => (await import('./bytes.js')).addBody(request.body, ...attempt);
  const parts = { ...request, method: 'PUT', path, toService, body, send };
  const call = createCall(config, parts, options);
  return exchange(wiring, call, async (response, attempt) => {
    const text = await readText(wiring, response, attempt);
    const whole = () => rebuilt(response, text);
    return { meta: () => metaOf(response, attempt), response: whole, data: whole };
  });
}

/** The body, read whole within the attempt's deadline. Throws the APIError of a refusal. */
function readText(wiring: Wiring, response: Response, attempt: Attempt): Promise<string> {
  const reading = attempt.guard.race(response.text(), undefined, networkFailure);
  if (response.ok) return reading;
  // The status alone says that it is refused: a refusal whose body is cut or stalled is not a failure to be retried.
  const cut = (error: unknown) => {
    if (attempt.call.signal?.aborted) throw error;
    return '';
  };
  return reading.catch(cut).then((text) => {
    throw refusal(wiring, { response, text, attempt });
  });
}

interface Told {
  readonly response: Response;
  readonly text: string;
  readonly attempt: Attempt;
}

function refusal({ clock }: Wiring, { response, text, attempt }: Told): APIError {
  const { status, statusText, headers } = response;
  const { call, number: attempts, secret } = attempt;
  const { method, shownUrl: url, idempotencyKey } = call;
  return decodeError(
    { status, statusText, headers, text },
    { method, url, idempotencyKey, attempts, secret, now: clock.now() },
  );
}

function notJson(response: Response, { call, number: attempts }: Attempt, text: string): ResponseError {
  const { method, shownUrl: url, idempotencyKey } = call;
  const kind = response.headers.get('content-type') ?? 'no content type';
  return new ResponseError(
    `${method} ${url} answered ${response.status} with no JSON (${kind}, ${text.length} characters).`,
    { method, url, idempotencyKey, attempts },
  );
}

function metaOf(response: Response, { call, number: attempts }: Attempt): Omit<ResponseMeta, 'response'> {
  return { requestId: requestIdOf(response.headers), attempts, idempotencyKey: call.idempotencyKey };
}

/** The answer again, its body readable: the first one was read to the end within the deadline. */
function rebuilt({ status, statusText, headers, url }: Response, text: string): Response {
  const body = status === 204 || status === 205 || status === 304 ? null : text;
  return Object.defineProperty(new Response(body, { status, statusText, headers }), 'url', { value: url });
}

function pathOf(path: RequestPath): string {
  return typeof path === 'function' ? path() : path;
}

function queryText(query: JsonRequest<unknown>['query']): string {
  if (!query) return '';
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined);
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs.map(([name, value]) => [name, String(value)]))}`;
}

/** Next.js caches a GET unless told otherwise; an old compatibility date of workerd refuses to be told. */
function takesNoStore(): boolean {
  try {
    return Boolean(new Request('http://localhost', { cache: 'no-store' }));
  } catch {
    return false;
  }
}
