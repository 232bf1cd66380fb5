// One logical call, and the shape of the layers that it passes through.

import { GenError } from '../errors/index.js';
import { checkOptions, REQUEST_OPTIONS, type RequestOptions } from '../rules/options.js';
import type { SlotOutcome } from '../rules/rate-limit.js';
import type { Recover } from '../rules/run-state.js';
import type { Clock } from '../runtime/clock.js';
import type { Deadline } from '../runtime/deadline.js';
import type { Budget, PricedCall } from '../schemas/budget.js';
import type { Job } from '../schemas/job.js';
import { show } from '../schemas/show.js';
import type { ClientAccount } from '../store/account.js';
import type { RateLimits } from '../store/rate-limits.js';
import { type Config, readHeaders } from './config.js';
import type { ClaimedCreate, JobRecords, ResumedJob, UnfinishedCreate } from './create-run.js';
import type { Credentials } from './credentials.js';
import type { Channels, Hooks, RequestEvent, RequestTrace } from './events.js';
import { idempotencyKeyOf } from './idempotency.js';
import type {
  JobSnapshot,
  JsonRequest,
  Query,
  RequestPath,
  ResponseMeta,
  StreamRequest,
  TransferRequest,
} from './transport.js';

/** What all calls of one client share. */
export interface Core {
  readonly config: Config;
  /** The client's clock, which never runs backwards. */
  readonly clock: Clock;
  readonly credentials: Credentials;
  readonly http: Http;
  readonly jobs: JobReporter;
  /** The ledger that the client's store or budget brings, or the budget of a call. */
  ledger(budget?: Budget): ClientLedger | undefined;
  /** Undefined without hooks and without a logger. */
  observer(): Observer | undefined;
  channels(): Channels | undefined;
  /** The rate limits of the client, as far as they are known without asking a key function. */
  limits(): RateLimits | undefined;
  limitsOf(account: ClientAccount): RateLimits;
  /** What all clients of the account share. May ask a key function. */
  account(): Promise<ClientAccount>;
  warn(message: string): void;
}

/** Tells hooks and logger what happens. An observer that throws changes nothing. */
export type Observer = { readonly [Hook in keyof Hooks]-?: NonNullable<Hooks[Hook]> } & {
  warn(message: string): void;
};

export interface Http {
  /** For the service, and nobody else. */
  readonly headers: Readonly<Record<string, string>>;
  /** Not with every fetch: an old compatibility date of workerd refuses `no-store`. */
  readonly cache: { readonly cache?: 'no-store' };
  /** Whether fetch keeps a copy of each body that could be redirected, as Node's does. */
  readonly keepsBodies: boolean;
}

export interface JobReporter {
  /** A create is in flight until the promise settles. */
  creating(create: Promise<unknown>): void;
  seen(call: Call<unknown>, snapshot: JobSnapshot): Promise<void>;
  /** A webhook says that a job has ended. A ledger believes a verified one alone. */
  announced(job: Job, isVerified: boolean): void;
  /** The file of a job is in a store of the caller's. */
  stored(jobId: string): Promise<void>;
  /** The program has the outcome of a job that did not complete. */
  acknowledge(jobId: string): Promise<void>;
  /** Makes `resume()` leave the job alone until the returned function is called. Undefined without a store that persists. */
  hold(jobId: string): (() => void) | undefined;
  /** Whether a hook, a channel, a budget or a store wants to know of the job. */
  isWatched(jobId: string): boolean;
  /** The last quote for a job of this kind, to the account or to the one that called last. */
  priceOf(job: PricedCall, account?: ClientAccount): number | undefined;
  /** How long a job of this kind will take, in milliseconds, as far as earlier ones have shown. */
  durationOf(job: PricedCall): number | undefined;
}

/** What a store or a budget brings to a client: it records creates. */
export interface ClientLedger {
  /** Whether the client has a store that outlives the process. */
  readonly isPersistent: boolean;
  /** Records a create before anything is uploaded or sent, and its outcome. */
  readonly ledgerLayer: Layer;
  /** Records that an attempt goes out. The last layer above the attempt. */
  readonly recordSentLayer: Layer;
  /** Where the ends of the client's jobs are recorded. */
  records(): readonly JobRecords[];
  /** Records that the program has a job's outcome, or that its file is stored. Waits briefly, and never rejects. */
  acknowledge(jobId: string, what: 'outcome' | 'file'): Promise<void>;
  /** Makes `resume()` leave the job alone until the returned function is called. Undefined without a store that persists. */
  hold(jobId: string): (() => void) | undefined;
  /** Claims the account's creates without a living owner, and yields what `run` makes of them in completion order. */
  resume(
    account: string,
    run: (claimed: ClaimedCreate, signal: AbortSignal) => Promise<Job>,
    options: { readonly signal: AbortSignal | undefined; readonly timeoutMs: number | false },
  ): AsyncGenerator<ResumedJob, void, undefined>;
  unfinished(account: string): AsyncGenerator<UnfinishedCreate, void, undefined>;
}

/** One create in the ledger, as the layers between the ledger's report on it. */
export interface CreateRecord {
  /** Records the IDs of the uploads, so that another process can send the create. */
  uploaded(body: unknown): Promise<void>;
  /** Records that the request goes out under the call's key. Rejects if another process owns the create now. */
  sending(call: Call<unknown>): Promise<void>;
  /** Records that the last attempt created nothing, before a pause in which the process may crash. */
  unsent(): Promise<void>;
}

export interface Call<T> {
  readonly core: Core;
  /** The method as users call it, for example `videos.create`. */
  readonly name: string;
  readonly method: string;
  /** Below `prefix`, or absolute. It may have a query. */
  readonly target: string;
  readonly prefix: string | undefined;
  /** Added to the query of the target. */
  readonly query: readonly (readonly [name: string, value: string])[];
  /** Absolute, without its query: for errors. */
  readonly url: string;
  /** Below the base URL, without its query: for hooks and logs. */
  readonly path: string;
  readonly limit: string | undefined;
  /** Whether it goes to the service itself: only then are the key and the client's headers sent. */
  readonly toService: boolean;
  readonly isPublic: boolean;
  /** Whether it rejects where another call would wait for its rate limit. */
  readonly neverWaits: boolean;
  /** What the call's options add. Sent to the service only. */
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal | undefined;
  readonly timeoutMs: number;
  readonly maxRetries: number;
  readonly idempotencyKey: string | undefined;
  readonly repeatable: boolean;
  readonly options: RequestOptions;
  readonly label: string | undefined;
  readonly kind: CallRequest<T>;
  /** The request of a JSON call. Empty for a stream or a transfer. */
  readonly request: Partial<JsonRequest<T>>;
  /** The body of a JSON call. The caller may change it once the call waits. */
  readonly body: unknown;
  readonly json: string | undefined;
  /** What the listeners are passed about the call; undefined without a listener. */
  readonly trace: RequestTrace | undefined;
  /** 1 for the first attempt; 0 before it. */
  readonly attemptNumber: number;
  /** Failed attempts before this one. A 429 that is waited out doesn't count. */
  readonly failures: number;
  /** The slot of this attempt in the call's rate limit. */
  readonly slot?: Slot | undefined;
  /** The API key of this attempt, if it was needed earlier to determine the account. */
  readonly secret?: string | undefined;
  /** The create in the ledger, for the layers below the ledger's. */
  readonly record?: CreateRecord | undefined;
  /** Whether a request of the call may have made a job, for the layers above. */
  readonly sent: {
    mayHaveArrived: boolean;
    /** Whose key was sent. */
    account?: ClientAccount;
    /** Where the create is recorded. */
    records?: readonly JobRecords[];
  };
}

export type CallRequest<T> =
  | { readonly type: 'json'; readonly request: JsonRequest<T> }
  | { readonly type: 'stream'; readonly request: StreamRequest<unknown>; readonly read: (response: Response) => T }
  | { readonly type: 'transfer'; readonly request: TransferRequest; readonly read: (response: Response) => T };

export interface Slot {
  /** What the attempt came to so far. */
  outcome: SlotOutcome;
  /** Releases the slot. Only the first call counts. */
  end(): void;
}

export interface Attempt {
  readonly call: Call<unknown>;
  readonly deadline: Deadline;
  /** The key that is sent, to be kept out of messages. */
  readonly secret: string | undefined;
  /** What the hooks are passed about the response; undefined without a listener. */
  readonly responseInfo: ResponseInfo | undefined;
}

export interface ResponseInfo {
  receivedBytes?: number;
  quotedTokens?: number | undefined;
}

/** The data of an answer, or why it has none. The response is there in both cases. */
export type Decoded<T> = { readonly data: T } | { readonly failure: unknown };

export interface Answer<T> extends Omit<ResponseMeta, 'response'> {
  readonly response: Response;
  /** The body, where it was read: the response is made again from it for a caller who asks for the response. */
  readonly text?: string;
  readonly decoded: Decoded<T>;
}

export type Next<T> = (call: Call<T>) => Promise<Answer<T>>;

/** One layer of the pipeline: a function around the layers below it. */
export type Layer = <T>(call: Call<T>, next: Next<T>) => Promise<Answer<T>>;

/**
 * An option of calls whose run waits outside of this process: a queued call, a durable run. Such a call rejects with the time
 * to come back instead of waiting for its rate limit, and its create retains its position in the queue.
 */
export const DETACHED: unique symbol = Symbol.for('gen-client.detached');

export interface DetachedCall {
  /** The queue of the run. Its key stands for the run, so the same key in another queue is another run's. */
  readonly queue?: string | undefined;
  /** If true, its position in the queue is before all that are not urgent. */
  readonly isUrgent?: boolean | undefined;
  readonly maxRetries?: number | undefined;
  /** The rules of the run. The params are checked with each of its models. */
  readonly recover?: Recover | undefined;
  /** Called with the body when its files are uploaded: with their IDs in place of the files. */
  readonly onUploads?: ((body: Readonly<Record<string, unknown>>) => void) | undefined;
}

export function detachedCall(options: RequestOptions): DetachedCall | undefined {
  return (options as { readonly [DETACHED]?: DetachedCall })[DETACHED];
}

const METHODS: readonly string[] = ['GET', 'HEAD', 'POST', 'DELETE', 'PUT', 'PATCH'];
const NO_OPTIONS: RequestOptions = Object.freeze({});

/** Joins a request with the options of the call and of the client. Throws a GenError for a bad option. */
export function createCall<T>(core: Core, kind: CallRequest<T>, options: RequestOptions = NO_OPTIONS): Call<T> {
  const { config } = core;
  const { name, limit } = kind.request;
  const json = kind.type === 'json' ? kind.request : undefined;
  const schema = (kind.type === 'transfer' ? undefined : kind.request.options) ?? REQUEST_OPTIONS;
  if (options !== NO_OPTIONS && schema !== 'checked') checkOptions(name, schema, options);
  if (options.extraBody !== undefined && json?.body === undefined) {
    throw new GenError(`${name} has no body, so extraBody has no effect. Leave it out.`);
  }
  const target = kind.type === 'transfer' ? kind.request.url : requestPath(kind.request.path);
  const method: string = kind.type === 'transfer' ? 'PUT' : kind.request.method;
  if (!METHODS.includes(method)) throw badMethod(method);
  const base = config.baseUrl();
  const prefix = kind.type === 'transfer' ? undefined : base;
  const toService = prefix !== undefined || new URL(target).origin === new URL(base).origin;
  const [bare = target] = target.split(/[?#]/, 1);
  const url = (prefix ?? '') + bare;
  const creates = method === 'POST' || method === 'PATCH';
  const detached = detachedCall(options);
  return {
    core,
    name,
    method,
    target,
    prefix,
    query: queryOf(json?.query),
    url,
    path: url.startsWith(`${base}/`) ? url.slice(base.length) : url,
    limit,
    toService,
    isPublic: json?.isPublic ?? false,
    neverWaits: json?.neverWaits ?? (detached !== undefined || config.rateLimit === 'throw'),
    headers: toService && options.headers ? readHeaders(options.headers) : NO_HEADERS,
    signal: options.signal,
    timeoutMs: options.timeoutMs ?? config.timeoutMs,
    maxRetries: detached?.maxRetries ?? options.maxRetries ?? config.maxRetries,
    idempotencyKey: creates ? idempotencyKeyOf(options.idempotencyKey, json?.body, config.random) : undefined,
    repeatable: kind.type !== 'transfer' || kind.request.repeatable,
    options,
    label: 'label' in options && typeof options.label === 'string' ? options.label : undefined,
    kind,
    request: json ?? {},
    body: json?.body,
    json: undefined,
    trace: undefined,
    attemptNumber: 0,
    failures: 0,
    sent: { mayHaveArrived: false },
  };
}

const NO_HEADERS: Readonly<Record<string, string>> = Object.freeze({});

function badMethod(method: unknown): GenError {
  return new GenError(`method must be one of ${METHODS.join(', ')}, not ${show(method)}.`);
}

const NO_QUERY: Call<unknown>['query'] = Object.freeze([]);

function queryOf(query: Query | undefined): Call<unknown>['query'] {
  if (query === undefined) return NO_QUERY;
  return Object.entries(query).flatMap(([name, value]) =>
    [value ?? []].flat().map((one): [string, string] => [name, String(one)]),
  );
}

/**
 * The path as text. Making it may throw. Whatever made it, it stays below the base URL: a URL parser takes `..` for a step up,
 * also when it is encoded.
 */
function requestPath(given: RequestPath): string {
  const path = typeof given === 'function' ? given() : given;
  if (/^\/(?!\/)[^\\\s]+$/.test(path) && !/^[^?#]*\/(\.|%2e){1,2}([/?#]|$)/i.test(path)) return path;
  throw new GenError(`path must start with one "/" and stay below baseUrl, without "..": ${JSON.stringify(path)}.`);
}

export function requestEvent({
  method,
  path,
  limit,
  idempotencyKey,
  trace,
  attemptNumber: attempt,
}: Call<unknown>): RequestEvent {
  const { callId = '', limitWaitMs = 0 } = trace ?? {};
  return { callId, method, path, limit, attempt, limitWaitMs, idempotencyKey };
}

/** Returns the job in a response, if the call returns one. */
export function snapshotIn<T>({ request }: Call<T>, { decoded }: Answer<T>): JobSnapshot | undefined {
  return 'failure' in decoded ? undefined : request.extractJob?.(decoded.data);
}

export function detailsOf({ method, url, idempotencyKey, attemptNumber: attempts }: Call<unknown>) {
  return { method, url, idempotencyKey, attempts };
}
