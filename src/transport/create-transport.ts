import { steady } from '../clock.js';
import type { Config } from '../config.js';
import { Deadline } from '../deadline.js';
import { type APIError, type CallDetails, ResponseError, TimeoutError } from '../errors/index.js';
import {
  type Channels,
  heard,
  type JobTrace,
  openChannels,
  type RequestTrace,
  type TraceChannel,
  traced,
  tracedStart,
} from '../events.js';
import { type Account, accountFor } from '../limits/account-state.js';
import type { LaneLimiter, RateLimiter } from '../limits/rate-limiter.js';
import { checkOptions } from '../options.js';
import { isFields, unwrap } from '../schemas/envelope.js';
import type { JobCall } from '../schemas/job.js';
import type { RequestOptions } from '../schemas/request-options.js';
import { readText, streamed, withText } from './body.js';
import { createCall } from './call.js';
import { REQUEST_OPTIONS } from './call-options.js';
import { createCredentials } from './credentials.js';
import { decodeError, parseJson, requestIdOf } from './decode-error.js';
import { type Attempt, type Context, connectionError, type Exchange, exchange, networkFailure } from './exchange.js';
import { createHttp, fileOf, follow, type Http, type Sent, sendBody } from './http.js';
import { createJobTeller, type JobTeller } from './job-calls.js';
import { tokensIn } from './job-log.js';
import { createObserver } from './observe.js';
import { withoutQuery } from './redirect.js';
import { type Answer, requestPromise } from './request-promise.js';
import type { JsonRequest, RequestPath, StreamRequest, TransferRequest, Transport } from './transport.js';

/** Of a refusal as much is read as its message needs. */
const MOST_ERROR_BYTES = 64 * 1024;
/** What a call goes through, and how it is sent. */
interface HttpContext extends Context {
  readonly http: Http;
  readonly channels: () => Channels | undefined;
  readonly jobs: JobTeller;
}

/** The port, and what the client shows of its limits. */
export interface LimitedTransport extends Transport {
  /** The limiter that the calls go through, as far as it is known without asking a key function. */
  limiter(): (RateLimiter & Partial<LaneLimiter>) | undefined;
  /** Tells the logger of something doubtful. */
  warn(message: string): void;
  /** What is told of jobs. */
  readonly jobs: JobTeller;
  /** Where waits are traced, while somebody listens. */
  waits(): TraceChannel | undefined;
}

/** The transport of one client. */
export function createTransport(config: Config): LimitedTransport {
  const credentials = createCredentials(config);
  let observer: ReturnType<typeof createObserver> | null = null;
  let channels: Channels | undefined | null = null;
  const context: HttpContext = {
    config,
    time: steady(config.clock),
    credentials,
    observer: () => {
      // Made with the first call, because it may ask the environment.
      if (observer === null) observer = createObserver(config);
      return observer;
    },
    http: createHttp(config),
    channels: () => {
      if (channels === null) channels = openChannels();
      return channels;
    },
    get jobs() {
      return jobs;
    },
  };
  const jobs = createJobTeller(context, context.channels);
  return {
    jobs,
    waits: () => heard(context.channels()?.wait),
    baseUrl: config.baseUrl,
    send: (request, options) => requestPromise(observed(context, request, (seen) => sendJson(seen, request, options))),
    open: (request, options) =>
      requestPromise(observed(context, request, (seen) => openStream(seen, request, options))),
    transfer: (request, options) =>
      requestPromise(observed(context, request, (seen) => transferBytes(seen, request, options))),
    async storing({ name, jobId }, work) {
      const path = `/v1/jobs/${encodeURIComponent(jobId)}/output`;
      const stored = await observed(context, { name, path }, work);
      jobs.stored(jobId);
      return stored;
    },
    account: () => askAccount(context),
    warn: (message) => context.observer()?.warn(message),
    limiter: () => config.limiter ?? credentials.account()?.limiter,
  };
}

/** Does a call, and traces it while somebody listens. */
async function observed<T>(
  context: HttpContext,
  request: { readonly name: string; readonly path?: RequestPath; readonly call?: JobCall; readonly body?: unknown },
  work: (context: HttpContext) => Promise<T>,
): Promise<T> {
  const channels = context.channels();
  const [requests, jobs] = [heard(channels?.request), request.call && heard(channels?.job)];
  if (!requests && !jobs && !context.observer()) return work(context);
  const { name, call, body: params } = request;
  const job: JobTrace | undefined = call && jobs && { call, params };
  const path = request.path === undefined ? undefined : withoutQuery(pathOf(request.path));
  const trace: RequestTrace = { callId: crypto.randomUUID(), name, path, job, attempts: 0, laneWaitMs: 0 };
  const send = () => traced(requests, trace, () => work({ ...context, trace }));
  return job ? tracedStart(jobs, job, send) : send();
}

/** Asked for before any call is sent: the account of a key function, which must not hang. */
async function askAccount({ config, credentials, time }: Context): Promise<Account> {
  const known = credentials.account();
  if (known) return known;
  const { timeoutMs } = config;
  const url = config.baseUrl();
  const late = () => new TimeoutError(`apiKey did not give a key within ${timeoutMs} ms (timeoutMs)`, { timeoutMs });
  const deadline = new Deadline({ clock: time, ms: timeoutMs, signal: undefined, late });
  const asked = async () => credentials.key({ method: 'GET', url });
  const key = await deadline.race(asked()).finally(() => deadline.end());
  return credentials.account() ?? accountFor(url, key, undefined, { clock: config.clock });
}

async function sendJson<T>(
  context: HttpContext,
  request: JsonRequest<T>,
  options: RequestOptions | undefined,
): Promise<Answer<T>> {
  const { config, http } = context;
  const { method, query, lane, isPublic, neverWaits, creates, decode } = request;
  if (options !== undefined) checkOptions(request.name, REQUEST_OPTIONS, options);
  if (options?.preflight ?? config.preflight)
    request.check?.(request.body, (message) => context.observer()?.warn(message));
  // A copy: the caller may change its object while the call waits for its lane or is sent again.
  const text = JSON.stringify(request.body);
  const json: unknown = text === undefined ? undefined : JSON.parse(text);
  const path = pathOf(request.path);
  const call = createCall(config, { method, path, lane, isPublic, neverWaits, json }, options);
  const sent: Sent = {
    path,
    headers: { accept: 'application/json' },
    ...(json !== undefined && { json }),
    ...(query && { searchParams: query }),
    ...(request.noStore && http.takesNoStore && { cache: 'no-store' }),
  };
  const steps = (onAttempt?: (attempt: Attempt) => void): Exchange<Answer<T>> => ({
    send(attempt) {
      onAttempt?.(attempt);
      return json === undefined ? follow(http, attempt, sent) : sendBody(http, attempt, () => sent);
    },
    async read(response, attempt) {
      const { text, whole } = await readAnswer(context, response, attempt).catch((error: unknown) => {
        // The attempt before has done it, and its answer was lost.
        const { status } = response;
        if (attempt.failures > 0 && status === request.statusWhenDone) return { text: '', whole: true };
        throw error;
      });
      const answered = { response, text, attempt };
      const value = whole ? parseJson(text) : undefined;
      tellSize(attempt, text, value);
      const mayBeEmpty = text === '' && !creates;
      if (whole && value === undefined && !mayBeEmpty) throw notJson(answered);
      if (isFields(value) && value.success === false) throw refusal(context, answered);
      return {
        meta: metaOf(answered),
        response: () => withText(response, text),
        data: () => {
          if (!whole) throw tooLarge(answered, config.maxResponseBytes);
          const { idempotencyKey } = call;
          return decode(value, { method, path: call.path, idempotencyKey, attempts: attempt.number });
        },
      };
    },
  });
  if (!request.shows) return exchange(context, call, steps());
  const shown = { request, call, body: json, budget: options?.budget, trace: context.trace?.job };
  return context.jobs.answer(shown, (onAttempt) => exchange(context, call, steps(onAttempt)));
}

async function openStream(
  context: HttpContext,
  request: StreamRequest,
  options: RequestOptions | undefined,
): Promise<Answer<Response>> {
  const { method, lane } = request;
  if (options !== undefined) checkOptions(request.name, REQUEST_OPTIONS, options);
  const path = pathOf(request.path);
  const headers = request.headers?.();
  const call = createCall(context.config, { method, path, lane, streams: true }, options);
  return exchange(context, call, {
    send: (attempt) => follow(context.http, attempt, { path, headers, leaves: true }),
    async read(response, attempt) {
      if (!response.ok) await readAnswer(context, response, attempt);
      const { deadline } = attempt;
      deadline.pause();
      const broken = (cause: unknown) => connectionError(cause, attempt);
      const watched = streamed(response, { deadline, idleMs: call.timeoutMs, broken });
      return { meta: metaOf({ response, attempt }), response: () => watched, data: () => watched };
    },
  });
}

async function transferBytes(
  context: HttpContext,
  request: TransferRequest,
  options: RequestOptions | undefined,
): Promise<Answer<Response>> {
  const { url, lane, repeatable } = request;
  if (options !== undefined) checkOptions(request.name, REQUEST_OPTIONS, options);
  const call = createCall(context.config, { method: 'PUT', path: '', url, lane, repeatable }, options);
  return exchange(context, call, {
    send: (attempt) => sendBody(context.http, attempt, () => fileOf(attempt, request)),
    async read(response, attempt) {
      const { text } = await readAnswer(context, response, attempt);
      const whole = () => withText(response, text);
      return { meta: metaOf({ response, attempt }), response: whole, data: whole };
    },
  });
}

/** What the hooks are told of an answer. */
function tellSize({ told }: Attempt, text: string, value: unknown): void {
  if (!told) return;
  told.receivedBytes = new TextEncoder().encode(text).length;
  const data = unwrap(value);
  if (isFields(data)) told.quotedTokens = tokensIn(data.quoted_token_cost);
}

interface Answered {
  readonly response: Response;
  readonly text: string;
  readonly attempt: Attempt;
}

/** The body, read whole within the attempt's deadline. Throws the APIError of a refusal. */
async function readAnswer(context: HttpContext, response: Response, attempt: Attempt) {
  const maxBytes = response.ok ? context.config.maxResponseBytes : MOST_ERROR_BYTES;
  const read = attempt.deadline.race(readText(response, maxBytes));
  if (response.ok) return read.catch(networkFailure);
  // The status alone says that it is refused: a refusal whose body is cut or stalled is not a failure to be retried.
  const { text } = await read.catch((error: unknown) => {
    if (attempt.call.signal?.aborted) throw error;
    return { text: '' };
  });
  throw refusal(context, { response, text, attempt });
}

function refusal({ config }: HttpContext, { response, text, attempt }: Answered): APIError {
  const { status, statusText, headers } = response;
  const { call, number: attempts, secret } = attempt;
  const { method, url, idempotencyKey } = call;
  const now = config.clock.now();
  return decodeError({ status, statusText, headers, text }, { method, url, idempotencyKey, attempts, secret, now });
}

function notJson({ response, text, attempt }: Answered): ResponseError {
  const { method, url } = attempt.call;
  const type = response.headers.get('content-type') ?? 'no content type';
  const what = text === '' ? 'an empty body' : `a body that is not JSON (${type}, ${text.length} characters)`;
  return new ResponseError(
    `${method} ${url}: the service answered ${response.status} with ${what}`,
    detailsOf(attempt),
  );
}

function tooLarge({ response, attempt }: Answered, maxBytes: number): ResponseError {
  const { method, url } = attempt.call;
  const message = `${method} ${url}: the ${response.status} response is larger than ${maxBytes} bytes (maxResponseBytes)`;
  return new ResponseError(message, detailsOf(attempt));
}

function detailsOf({ call, number: attempts }: Attempt): CallDetails {
  const { method, url, idempotencyKey } = call;
  return { method, url, idempotencyKey, attempts };
}

function metaOf({ response, attempt }: Omit<Answered, 'text'>) {
  const { call, number: attempts } = attempt;
  return { requestId: requestIdOf(response.headers), attempts, idempotencyKey: call.idempotencyKey };
}

function pathOf(path: RequestPath): string {
  return typeof path === 'function' ? path() : path;
}
