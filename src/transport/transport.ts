// The port that resources see: types only. http.ts stands behind it.

import type { RateLimitName } from '../rules/limits.js';
import type { OptionsSchema, RequestOptions } from '../rules/options.js';
import type { CheckOptions } from '../rules/preflight.js';
import type { Clock, Random } from '../runtime/clock.js';
import type { Job, JobCall } from '../schemas/job.js';
import type { ClientAccount } from '../store/account.js';
import type { BodyFiles } from '../uploading/body-files.js';
import type { CreateRun } from './create-run.js';

/** A Promise of the data, with two more ways to get the answer. */
export interface RequestPromise<T> extends Promise<T> {
  /** The Idempotency-Key of a create, known from the start, so also when the call is aborted. Undefined for other calls. */
  readonly idempotencyKey?: string | undefined;
  /** The data together with the response, the service's request id, the number of attempts and the idempotency key. */
  withResponse(): Promise<{
    /** What the call gives. */
    readonly data: T;
    /** The HTTP response. Its body can be read. */
    readonly response: Response;
    /** The service's id for the request, where it sent one. */
    readonly requestId?: string | undefined;
    /** How many times the request was sent. */
    readonly attempts: number;
    /** The Idempotency-Key that was sent with a create. */
    readonly idempotencyKey?: string | undefined;
  }>;
  /** The plain response, whose body can be read. */
  asResponse(): Promise<Response>;
}

export type ResponseMeta = Omit<Awaited<ReturnType<RequestPromise<unknown>['withResponse']>>, 'data'>;

/** What a decoder learns about the call beside the body. */
export interface DecodeContext {
  readonly method: string;
  /** Without its query. */
  readonly url: string;
  readonly idempotencyKey?: string | undefined;
  /** How many times the request was sent. */
  readonly attempts: number;
}

/** Tells of something doubtful that is not refused. It goes to the logger as a warning. */
export type Warn = (message: string) => void;

/** A path, or a function that makes it when the call begins. The call rejects with whatever that function throws. */
export type RequestPath = string | (() => string);

interface RequestBase {
  /** The method as users call it, for example `videos.create`. */
  readonly name: string;
  /** Below the base URL. Ids in it come from the `path` tag. */
  readonly path: RequestPath;
  /** The documented rate limit that it counts against. Undocumented endpoints have none. */
  readonly limit?: RateLimitName | undefined;
}

export interface RequestFiles extends Pick<BodyFiles, 'copy' | 'upload' | 'outline' | 'forget'> {
  done?(): void;
  /** Awaited before the call rejects with `error`. `wasSent` says whether a request may have reached the service. */
  failed?(error: unknown, wasSent: boolean): Promise<void>;
}

export interface JobSnapshot {
  readonly job: Job;
  readonly quotedTokens?: number | undefined;
  /** Tokens left, in the answer to a create. */
  readonly balanceTokens?: number | undefined;
  readonly warnings?: readonly string[] | undefined;
}

type QueryValue = string | number | boolean;

/** The values of a query by their names. A list sends its name several times, undefined leaves it out. */
export type Query = Readonly<Record<string, QueryValue | readonly QueryValue[] | undefined>>;

export interface JsonRequest<T> extends RequestBase {
  readonly method: 'GET' | 'POST' | 'DELETE' | 'PUT' | 'PATCH';
  readonly query?: Query | undefined;
  readonly body?: unknown;
  /** A POST that creates: an empty answer is a failure, because the job may exist. */
  readonly creates?: boolean;
  readonly call?: JobCall;
  /** Where the same call also waits for the job: settles when that call is over. */
  readonly waits?: Promise<unknown> | undefined;
  readonly run?: CreateRun | undefined;
  extractJob?(data: T): JobSnapshot;
  /** After an attempt whose answer was lost, this status says that it succeeded: a 404 to a deletion, for example. */
  readonly statusWhenDone?: number;
  readonly isPublic?: boolean;
  /** Rejects with a RateLimitError where another call would wait for its rate limit. */
  readonly neverWaits?: boolean;
  /** Preflight: throws a PreflightError for what the documented rules refuse. */
  readonly check?: ((body: unknown, warn: Warn, options?: CheckOptions) => void) | undefined;
  /** The options of the call, where it takes more than every call does. `checked`: a longer call has checked them. */
  readonly options?: OptionsSchema | 'checked' | undefined;
  /** The files in the body. They are uploaded when the check has passed. */
  readonly files?: RequestFiles | undefined;
  /** Turns the body into the result. Throws a ResponseError for an answer that lacks something essential. */
  readonly decode: (body: unknown, context: DecodeContext) => T;
}

/** A GET or HEAD whose body is streamed to the caller. Redirects to another origin are followed without the key. */
export interface StreamRequest<T> extends RequestBase {
  readonly method: 'GET' | 'HEAD';
  /** Makes the result of the response, once the call is done. A response that it makes stands in for the one that came. */
  readonly read: (response: Response) => T | Promise<T>;
  /** The options of the call, if it takes more than every call does. */
  readonly options?: OptionsSchema | undefined;
  /** How long the service may still be publishing the file, in milliseconds. Called after the first refusal. */
  readonly publishingMs?: () => Promise<number>;
  /** Made when the call begins, like the path. */
  readonly headers?: () => Readonly<Record<string, string>>;
}

/** Bytes on their way to an absolute URL. The key is sent only to the base URL's own origin. */
export interface TransferRequest {
  readonly name: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Asked for once per attempt. `moved` is to be called as bytes leave: it starts the attempt's deadline again. */
  readonly body: (moved: () => void) => BodyInit | Promise<BodyInit>;
  /** Whether `body` can be asked for again with the whole content. */
  readonly repeatable: boolean;
  readonly limit?: RateLimitName | undefined;
}

export interface StoringCall {
  /** The function as users call it, for example `saveOutput`. */
  readonly name: string;
  readonly jobId: string;
}

export interface Transport {
  /** The service's base URL, without a trailing slash. Throws a GenError where there is none. */
  baseUrl(): string;
  /** Sends JSON and decodes the answer, which is read whole within the deadline. */
  send<T>(request: JsonRequest<T>, options?: RequestOptions): RequestPromise<T>;
  /** Resolves with the answer's headers; the body streams, with a time limit between two chunks. */
  open<T>(request: StreamRequest<T>, options?: RequestOptions): RequestPromise<T>;
  /** PUTs bytes. Resolves with the answer, whose body has been read. */
  transfer(request: TransferRequest, options?: RequestOptions): RequestPromise<Response>;
  /** Does work that stores the finished file of a job: traces it, and tells when it is done. */
  storing<T>(call: StoringCall, work: () => Promise<T>): Promise<T>;
  account(): Promise<ClientAccount>;
  readonly random: Random;
  readonly clock: Clock;
  /** The client's timeout of an attempt, in milliseconds. */
  readonly timeoutMs: number;
}
