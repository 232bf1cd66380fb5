// A logical call, and the interfaces of the layers that it passes through.

import { GenError } from '../errors/index.js';
import { checkOptions, REQUEST_OPTIONS, type RequestOptions } from '../rules/options.js';
import type { SlotOutcome } from '../rules/rate-limit.js';
import type { Recover } from '../rules/run-state.js';
import type { Clock } from '../runtime/clock.js';
import type { Deadline } from '../runtime/deadline.js';
import type { Budget, PricedCall } from '../schemas/budget.js';
import { formatValue } from '../schemas/format-value.js';
import type { Job } from '../schemas/job.js';
import type { ClientAccount } from '../store/account.js';
import type { RateLimits } from '../store/rate-limits.js';
import { type Config, readHeaders } from './config.js';
import type { ClaimedRun, JobRecords, ResumedJob, UnfinishedCreate } from './create-run.js';
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

/** State that all calls of a client share. */
export interface Core {
  readonly config: Config;
  /** The client's clock, which never runs backward. */
  readonly clock: Clock;
  readonly credentials: Credentials;
  readonly http: Http;
  readonly jobs: JobReporter;
  /** Returns the ledger of the client's store or budget, or of the call's budget. */
  ledger(budget?: Budget): ClientLedger | undefined;
  /** Returns the observer, or undefined without hooks and a logger. */
  observer(): Observer | undefined;
  channels(): Channels | undefined;
  /** Returns the client's rate limits, or undefined until a key function has returned a key. */
  limits(): RateLimits | undefined;
  limitsOf(account: ClientAccount): RateLimits;
  /** Returns the state that all clients of the account share. May call a key function. Aborts with `signal`. */
  account(signal?: AbortSignal): Promise<ClientAccount>;
  warn(message: string): void;
}

/** Reports events to hooks and the logger. Ignores errors that they throw. */
export type Observer = { readonly [Hook in keyof Hooks]-?: NonNullable<Hooks[Hook]> } & {
  warn(message: string): void;
};

export interface Http {
  /** Headers that are sent to the service only. */
  readonly headers: Readonly<Record<string, string>>;
  /** Cache option of GETs. Empty if fetch rejects `no-store`, as workerd does with an old compatibility date. */
  readonly cache: { readonly cache?: 'no-store' };
  /** If true, fetch buffers the body of each request that could be redirected, as Node's does. */
  readonly buffersBodies: boolean;
}

export interface JobReporter {
  /** Registers a create as in flight until the promise settles. */
  trackCreate(create: Promise<unknown>): void;
  reportJob(call: Call<unknown>, snapshot: JobSnapshot): Promise<void>;
  /** Reports a webhook about the end of a job. Only a verified webhook is recorded in the ledger. */
  announce(job: Job, isVerified: boolean): void;
  /** Reports that the caller has stored a job's file. */
  reportStored(jobId: string): Promise<void>;
  /** Records that the program has the outcome of a job that didn't complete. */
  acknowledge(jobId: string): Promise<void>;
  /** Hides the job from `resume()` until the returned function is called. Returns undefined without a persistent store. */
  own(jobId: string): (() => void) | undefined;
  /** Returns true if a hook, a channel, a budget, or a store needs the job's end. */
  isWatched(jobId: string): boolean;
  /** Returns the account's last quote for a job of this kind. `account` defaults to that of the last call. */
  priceOf(job: PricedCall, account?: ClientAccount): number | undefined;
  /** Returns the expected duration of a job of this kind in milliseconds, or undefined if none has completed. */
  durationOf(job: PricedCall): number | undefined;
}

/** Records creates. Provided by a store or a budget. */
export interface ClientLedger {
  /** If true, the client has a persistent store. */
  readonly isPersistent: boolean;
  /** Records a create before anything is uploaded or sent, and its outcome. */
  readonly ledgerLayer: Layer;
  /** Records that an attempt is sent. Runs directly above the attempt. */
  readonly recordSentLayer: Layer;
  /** Returns the client's records of jobs, one per store. */
  records(): readonly JobRecords[];
  /** Records that the program has a job's outcome, or that the job's file is stored. Never rejects. */
  acknowledge(jobId: string, kind: 'outcome' | 'file'): Promise<void>;
  /** Hides the job from `resume()` until the returned function is called. Returns undefined without a persistent store. */
  own(jobId: string): (() => void) | undefined;
  /** Claims the account's creates without a live owner, executes them, and yields their jobs in completion order. */
  resume(
    account: string,
    execute: (claimedRun: ClaimedRun, signal: AbortSignal) => Promise<Job>,
    options: { readonly signal: AbortSignal | undefined; readonly timeoutMs: number | false },
  ): AsyncGenerator<ResumedJob, void, undefined>;
  unfinished(account: string): AsyncGenerator<UnfinishedCreate, void, undefined>;
}

/** A create in the ledger, for the layers that report its progress. */
export interface CreateRecord {
  /** Records the IDs of the uploads, so that another process can send the create. */
  uploaded(body: unknown): Promise<void>;
  /** Records that the request is sent with the call's key. Rejects if another process owns the create. */
  sending(call: Call<unknown>): Promise<void>;
  /** Records that the last attempt created no job, before a pause in which the process may crash. */
  unsent(): Promise<void>;
}

export interface Call<T> {
  readonly core: Core;
  /** Name of the SDK method, for example `videos.create`. */
  readonly name: string;
  readonly method: string;
  /** URL, relative to `prefix` or absolute, with an optional query. */
  readonly target: string;
  readonly prefix: string | undefined;
  /** Parameters to add to the target's query. */
  readonly query: readonly (readonly [name: string, value: string])[];
  /** The absolute URL without its query, for errors. */
  readonly url: string;
  /** The path relative to the base URL, without its query, for hooks and logs. */
  readonly path: string;
  readonly limit: string | undefined;
  /** If true, the request goes to the service, and includes the API key and the client's headers. */
  readonly toService: boolean;
  readonly isPublic: boolean;
  /** If true, the call rejects instead of waiting for the rate limit. */
  readonly neverWaits: boolean;
  /** Headers from the call's options. Sent to the service only. */
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
  /** The body of a JSON call. The caller may change it while the call waits. */
  readonly body: unknown;
  readonly json: string | undefined;
  /** Trace for hooks, the logger, and diagnostics channels. Undefined if none of them is set or subscribed. */
  readonly trace: RequestTrace | undefined;
  /** Number of the attempt, from 1. 0 before the first. */
  readonly attemptNumber: number;
  /** Failed attempts before this one, excluding 429s that the call waited out. */
  readonly failures: number;
  /** The slot of this attempt in the call's rate limit. */
  readonly slot?: Slot | undefined;
  /** The API key of this attempt, if an earlier layer needed it to determine the account. */
  readonly secret?: string | undefined;
  /** The create's ledger record, for the layers below the ledger's. */
  readonly record?: CreateRecord | undefined;
  /** State of the sent requests, for the layers above. */
  readonly sent: {
    /** If true, a request may have created a job. */
    mayHaveArrived: boolean;
    /** The account whose API key was sent. */
    account?: ClientAccount;
    /** Records of the create, one for each ledger. */
    records?: readonly JobRecords[];
  };
}

export type CallRequest<T> =
  | { readonly type: 'json'; readonly request: JsonRequest<T> }
  | { readonly type: 'stream'; readonly request: StreamRequest<unknown>; readonly read: (response: Response) => T }
  | { readonly type: 'transfer'; readonly request: TransferRequest; readonly read: (response: Response) => T };

export interface Slot {
  /** Outcome of the attempt, updated as it progresses. */
  outcome: SlotOutcome;
  /** Releases the slot. Only the first call has an effect. */
  end(): void;
}

export interface Attempt {
  readonly call: Call<unknown>;
  readonly deadline: Deadline;
  /** The API key, which must not appear in messages. */
  readonly secret: string | undefined;
  /** Response data for hooks and the logger. Undefined without both. */
  readonly responseInfo: ResponseInfo | undefined;
}

export interface ResponseInfo {
  receivedBytes?: number;
  quotedTokens?: number | undefined;
}

/** A response's data, or the decoding error. */
export type Decoded<T> = { readonly data: T } | { readonly failure: unknown };

export interface LayerResult<T> extends Omit<ResponseMeta, 'response'> {
  readonly response: Response;
  /** The body, if it was read. `asResponse` and `withResponse` build an unread response from it. */
  readonly text?: string;
  readonly decoded: Decoded<T>;
}

export type Next<T> = (call: Call<T>) => Promise<LayerResult<T>>;

/** A layer of the pipeline: a function around the layers below it. */
export type Layer = <T>(call: Call<T>, next: Next<T>) => Promise<LayerResult<T>>;

/**
 * Option of detached calls, whose run waits outside of this process: queued calls and durable runs. Such a call doesn't wait for
 * its rate limit. It rejects with the time until a slot is free, and its create retains its position in the queue.
 */
export const DETACHED: unique symbol = Symbol.for('gen-client.detached');

export interface DetachedCall {
  /** Queue of the run. The same idempotency key identifies different runs in different queues. */
  readonly queue?: string | undefined;
  /** If true, the call is queued before all calls that aren't urgent. */
  readonly isUrgent?: boolean | undefined;
  readonly maxRetries?: number | undefined;
  /** The run's `recover` rules. The params are also validated with each fallback model. */
  readonly recover?: Recover | undefined;
  /** Called after the files are uploaded, with the body in which upload IDs replace them. */
  readonly onUploads?: ((body: Readonly<Record<string, unknown>>) => void) | undefined;
}

export function detachedCall(options: RequestOptions): DetachedCall | undefined {
  return (options as { readonly [DETACHED]?: DetachedCall })[DETACHED];
}

const METHODS: readonly string[] = ['GET', 'HEAD', 'POST', 'DELETE', 'PUT', 'PATCH'];
const NO_OPTIONS: RequestOptions = Object.freeze({});

/** Creates a call from a request and the options of the call and the client. Throws a GenError for an invalid option. */
export function createCall<T>(core: Core, kind: CallRequest<T>, options: RequestOptions = NO_OPTIONS): Call<T> {
  const { config } = core;
  const { name, limit } = kind.request;
  const json = kind.type === 'json' ? kind.request : undefined;
  const schema = (kind.type === 'transfer' ? undefined : kind.request.options) ?? REQUEST_OPTIONS;
  if (options !== NO_OPTIONS && schema !== 'checked') checkOptions(name, schema, options);
  if (options.extraBody !== undefined && json?.body === undefined) {
    throw new GenError(`${name}: extraBody has no effect without a body. Remove it.`);
  }
  const target = kind.type === 'transfer' ? kind.request.url : requestPath(kind.request.path);
  const method: string = kind.type === 'transfer' ? 'PUT' : kind.request.method;
  if (!METHODS.includes(method))
    throw new GenError(`request: method must be one of ${METHODS.join(', ')}, not ${formatValue(method)}.`);
  const base = config.baseUrl();
  const prefix = kind.type === 'transfer' ? undefined : base;
  const toService = prefix !== undefined || new URL(target).origin === new URL(base).origin;
  const [withoutQuery = target] = target.split(/[?#]/, 1);
  const url = (prefix ?? '') + withoutQuery;
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

const NO_QUERY: Call<unknown>['query'] = Object.freeze([]);

function queryOf(query: Query | undefined): Call<unknown>['query'] {
  if (query === undefined) return NO_QUERY;
  return Object.entries(query).flatMap(([name, value]) =>
    [value ?? []].flat().map((item): [string, string] => [name, String(item)]),
  );
}

/** Returns the path. Throws if it would leave the base URL: URL parsers resolve `..`, even if it's encoded. */
function requestPath(pathOrBuilder: RequestPath): string {
  const path = typeof pathOrBuilder === 'function' ? pathOrBuilder() : pathOrBuilder;
  if (/^\/(?!\/)[^\\\s]+$/.test(path) && !/^[^?#]*\/(\.|%2e){1,2}([/?#]|$)/i.test(path)) return path;
  throw new GenError(`request: path must start with one "/" and stay below baseUrl, not ${JSON.stringify(path)}.`);
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
export function snapshotIn<T>({ request }: Call<T>, { decoded }: LayerResult<T>): JobSnapshot | undefined {
  return 'failure' in decoded ? undefined : request.extractJob?.(decoded.data);
}

export function detailsOf({ method, url, idempotencyKey, attemptNumber: attempts }: Call<unknown>) {
  return { method, url, idempotencyKey, attempts };
}
