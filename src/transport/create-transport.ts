import { abortable } from '../abort.js';
import { steady } from '../clock.js';
import type { Config } from '../config.js';
import { Deadline } from '../deadline.js';
import { TimeoutError } from '../errors/index.js';
import { seenFromCallerOf } from '../errors/stack.js';
import { type Channels, heard, openChannels, type TraceChannel } from '../events.js';
import { type Account, accountFor } from '../limits/account-state.js';
import type { LaneLimiter, RateLimiter } from '../limits/rate-limiter.js';
import { checkOptions } from '../options.js';
import { type LiveLimits, liveLimits, liveRow } from '../preflight/live-catalog.js';
import { type CheckOptions, isAboutLimits } from '../preflight/rules.js';
import { isFields, listIn } from '../schemas/envelope.js';
import type { ModelList } from '../schemas/model-list.js';
import type { RequestOptions } from '../schemas/request-options.js';
import { metaOf, notJson, readAnswer, refusal, tooLarge } from './answers.js';
import { streamed, withText } from './body.js';
import { createCall } from './call.js';
import { REQUEST_OPTIONS } from './call-options.js';
import { createCredentials } from './credentials.js';
import { parseJson } from './decode-error.js';
import { type Attempt, type Context, connectionError, exchange } from './exchange.js';
import { createHttp, fileOf, follow, type Http, type Sent, sendBody } from './http.js';
import { idempotencyKeyOf } from './idempotency.js';
import { createJobTeller, type JobTeller } from './job-calls.js';
import { createObserver } from './observe.js';
import { type ObservedCall, observed, pathOf, tellSize } from './observe-call.js';
import { type Answer, requestPromise } from './request-promise.js';
import type { JsonRequest, StreamRequest, TransferRequest, Transport } from './transport.js';

/** What a call goes through, and how it is sent. */
interface HttpContext extends Context {
  readonly http: Http;
  readonly warn: (message: string) => void;
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
  const warn = (message: string) => context.observer()?.warn(message);
  const credentials = createCredentials(config, warn);
  let observer: ReturnType<typeof createObserver> | null = null;
  let channels: Channels | undefined | null = null;
  const context: HttpContext = {
    config,
    time: steady(config.clock),
    credentials,
    warn,
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
  const told = <T>(request: ObservedCall, work: (seen: HttpContext) => Promise<Answer<T>>) =>
    requestPromise(observed(context, request, work));
  return {
    jobs,
    waits: () => heard(context.channels()?.wait),
    baseUrl: config.baseUrl,
    send: (request, options) =>
      told(request, (seen) => (request.files ? sendWithFiles : sendJson)(seen, request, options)),
    open: (request, options) => told(request, (seen) => openStream(seen, request, options)),
    transfer: (request, options) => told(request, (seen) => transferBytes(seen, request, options)),
    async storing({ name, jobId }, work) {
      const path = `/v1/jobs/${encodeURIComponent(jobId)}/output`;
      const stored = await observed(context, { name, path }, work);
      jobs.stored(jobId);
      return stored;
    },
    account: () => askAccount(context),
    warn,
    limiter: () => config.limiter ?? credentials.account()?.limiter,
  };
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

/** Refuses a body that the documented rules say the service would refuse. */
function checkBody<T>(context: HttpContext, { check, body }: JsonRequest<T>, options?: CheckOptions): void {
  try {
    check?.(body, context.warn, options);
  } catch (error) {
    throw seenFromCallerOf(error, checkBody);
  }
}

async function sendJson<T>(
  context: HttpContext,
  request: JsonRequest<T>,
  options: RequestOptions | undefined,
): Promise<Answer<T>> {
  if (options !== undefined) checkOptions(request.name, request.options ?? REQUEST_OPTIONS, options);
  const preflight = options?.preflight ?? context.config.preflight;
  try {
    if (preflight) checkBody(context, request);
  } catch (refused) {
    await checkLive(context, request, { refused, signal: options?.signal });
  }
  // A copy: the caller may change its object while the call waits for its lane or is sent again.
  const copied = { ...request, body: request.files ? request.files.copy(request.body) : copyOf(request.body) };
  const checked = { ...options, preflight };
  if (!request.shows) return await sendChecked(context, copied, checked);
  // A budget refuses before the files of the body are uploaded.
  const key = request.call && idempotencyKeyOf(options?.idempotencyKey, copied.body);
  const call = { request: copied, key, signal: options?.signal, budget: options?.budget, trace: context.trace?.job };
  return await context.jobs.answer(call, (onAttempt) =>
    sendChecked(context, copied, { ...checked, ...(key !== undefined && { idempotencyKey: key }), onAttempt }),
  );
}

/** The options of a call that has passed its checks, and who is told each attempt that is sent. */
interface CheckedOptions extends RequestOptions {
  readonly preflight: boolean;
  readonly onAttempt?: (attempt: Attempt) => void;
}

async function sendChecked<T>(
  context: HttpContext,
  request: JsonRequest<T>,
  { onAttempt, ...options }: CheckedOptions,
): Promise<Answer<T>> {
  const { config, http } = context;
  const { method, query, lane, isPublic, neverWaits, creates, decode } = request;
  const json = request.files ? await request.files.upload(request.body, options) : request.body;
  const path = pathOf(request.path);
  const call = createCall(config, { method, path, lane, isPublic, neverWaits, json }, options);
  const sent: Sent = {
    path,
    headers: { accept: 'application/json' },
    ...(json !== undefined && { json }),
    ...(query && { searchParams: query }),
    ...(request.noStore && http.takesNoStore && { cache: 'no-store' }),
  };
  return await exchange<Answer<T>>(context, call, {
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
}

/** What the service tells of its models, kept for an hour with the account. */
interface LiveCatalog {
  readAt: number;
  limits: ReadonlyMap<string, LiveLimits>;
  reading?: Promise<ModelList> | undefined;
}

const HOUR_MS = 3_600_000;
const MODEL_LIST: JsonRequest<ModelList> = {
  name: 'models.list',
  method: 'GET',
  path: '/v1/models',
  isPublic: true,
  decode: (body) => ({ models: listIn(body, 'models') }),
};

/** Checks once more, by what the service tells now. Where that cannot be read, the refusal by the compiled table stands. */
async function checkLive<T>(
  context: HttpContext,
  request: JsonRequest<T>,
  { refused, signal }: { readonly refused: unknown; readonly signal: AbortSignal | undefined },
): Promise<void> {
  if (context.config.catalog !== 'live' || !isAboutLimits(refused)) throw refused;
  const limits = await readLimits(context, signal).catch(() => {
    signal?.throwIfAborted();
    throw refused;
  });
  checkBody(context, request, { capabilities: (alias) => liveRow(limits, alias) });
}

async function readLimits(context: HttpContext, signal: AbortSignal | undefined): Promise<LiveCatalog['limits']> {
  const { clock } = context.config;
  const account = await askAccount(context);
  const catalog = account.shared<LiveCatalog>('catalog/1', () => ({
    readAt: Number.NEGATIVE_INFINITY,
    limits: new Map(),
  }));
  if (clock.now() - catalog.readAt < HOUR_MS) return catalog.limits;
  const read = async () => (await sendJson(context, MODEL_LIST, { maxRetries: 0 })).data();
  // A call on Workers must not wait for a read that belongs to another request.
  const reading = (clock.perRequest ? undefined : catalog.reading) ?? read();
  catalog.reading = reading;
  try {
    catalog.limits = liveLimits(await abortable(reading, signal));
    catalog.readAt = clock.now();
  } finally {
    if (catalog.reading === reading) catalog.reading = undefined;
  }
  return catalog.limits;
}

function copyOf(body: unknown): unknown {
  const text = JSON.stringify(body);
  return text === undefined ? undefined : JSON.parse(text);
}

/** Sends a body with files, which are told when the call has failed. */
async function sendWithFiles<T>(
  context: HttpContext,
  request: JsonRequest<T>,
  options: RequestOptions | undefined,
): Promise<Answer<T>> {
  try {
    return await sendJson(context, request, options);
  } catch (error) {
    await request.files?.failed?.(error);
    throw error;
  }
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
  return await exchange(context, call, {
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
  return await exchange(context, call, {
    send: (attempt) => sendBody(context.http, attempt, () => fileOf(attempt, request)),
    async read(response, attempt) {
      const { text } = await readAnswer(context, response, attempt);
      const whole = () => withText(response, text);
      return { meta: metaOf({ response, attempt }), response: whole, data: whole };
    },
  });
}
