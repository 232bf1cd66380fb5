// Types of the transport, which resources use.

import type { RateLimitName } from '../rules/limits.js';
import type { OptionsSchema, RequestOptions } from '../rules/options.js';
import type { CheckOptions } from '../rules/preflight.js';
import type { Clock, Random } from '../runtime/clock.js';
import type { Job, JobCall } from '../schemas/job.js';
import type { ClientAccount } from '../store/account.js';
import type { BodyFiles } from '../uploading/body-files.js';
import type { CreateRun } from './create-run.js';

/** A promise of the data, with methods that return the response. */
export interface RequestPromise<Data> extends Promise<Data> {
  /** Idempotency key of a create, available immediately, even if the call is aborted. Undefined for other calls. */
  readonly idempotencyKey?: string | undefined;
  /**
   * Resolves with the data, the response, the service's request ID, the number of attempts, and the idempotency key.
   */
  withResponse(): Promise<{
    /** Result of the call. */
    readonly data: Data;
    /** HTTP response, whose body is unread. */
    readonly response: Response;
    /** Request ID of the service, if it sent one. */
    readonly requestId?: string | undefined;
    /** Number of requests sent. */
    readonly attempts: number;
    /** Idempotency key of a create. */
    readonly idempotencyKey?: string | undefined;
  }>;
  /** Resolves with the response, whose body is unread. */
  asResponse(): Promise<Response>;
}

export type ResponseMeta = Omit<Awaited<ReturnType<RequestPromise<unknown>['withResponse']>>, 'data'>;

/**
 * Result of a call: a {@link RequestPromise}. In a test, a function that returns a plain Promise can replace the
 * method.
 */
// `Call` is any type parameter of the method. For a call, the compiler resolves the condition to a RequestPromise. When
// it compares a function with the method, `Call` is unresolved, and only the Promise is compared.
export type CallResult<Data, Call> = [[Call] extends [never] ? 'open' : never] extends [never]
  ? RequestPromise<Data>
  : Promise<Data>;

/** The call, for the decoder of its response. */
export interface DecodeContext {
  readonly method: string;
  /** URL without its query. */
  readonly url: string;
  readonly idempotencyKey?: string | undefined;
  /** Number of requests sent. */
  readonly attempts: number;
}

/** Logs a warning about something that may be a mistake. */
export type Warn = (message: string) => void;

/** A path, or a function that builds it when the call starts. If the function throws, the call rejects. */
export type RequestPath = string | (() => string);

interface RequestBase {
  /** Name of the SDK method, for example `videos.create`. */
  readonly name: string;
  /** Path relative to the base URL. Build paths with IDs with the `path` tag. */
  readonly path: RequestPath;
  /** The documented rate limit of the endpoint, if any. */
  readonly limit?: RateLimitName | undefined;
}

export interface RequestFiles extends Pick<BodyFiles, 'copy' | 'upload' | 'checkJson' | 'forget'> {
  onSuccess?(): void;
  /** Awaited before the call rejects with `error`. If `wasSent` is true, a request may have reached the service. */
  onFailure?(error: unknown, wasSent: boolean): Promise<void>;
}

export interface JobSnapshot {
  readonly job: Job;
  readonly quotedTokens?: number | undefined;
  /** Tokens left, from the response to a create. */
  readonly balanceTokens?: number | undefined;
  readonly warnings?: readonly string[] | undefined;
}

type QueryValue = string | number | boolean;

/** Query parameters. An array repeats its name. Undefined is omitted. */
export type Query = Readonly<Record<string, QueryValue | readonly QueryValue[] | undefined>>;

export interface JsonRequest<T> extends RequestBase {
  readonly method: 'GET' | 'POST' | 'DELETE' | 'PUT' | 'PATCH';
  readonly query?: Query | undefined;
  readonly body?: unknown;
  /** If true, an empty response is an error, because a job may exist. */
  readonly creates?: boolean;
  readonly call?: JobCall;
  /** Settles when the run of `createAndWait` or `resume` ends. Undefined for `create`. */
  readonly waits?: Promise<unknown> | undefined;
  readonly run?: CreateRun | undefined;
  extractJob?(data: T): JobSnapshot;
  /** Status that means success if an earlier response was lost, for example 404 for a deletion. */
  readonly statusWhenDone?: number;
  readonly isPublic?: boolean;
  /** If true, rejects with a RateLimitError instead of waiting for the rate limit. */
  readonly neverWaits?: boolean;
  /** Throws a PreflightError if the body breaks a documented rule. */
  readonly check?: ((body: unknown, warn: Warn, options?: CheckOptions) => void) | undefined;
  /** Schema of the options, if the call has its own. `checked`: the options are already validated. */
  readonly options?: OptionsSchema | 'checked' | undefined;
  /** Files in the body. They are uploaded after the check. */
  readonly files?: RequestFiles | undefined;
  /** Decodes the body. Throws a ResponseError if a required field is missing. */
  readonly decode: (body: unknown, context: DecodeContext) => T;
}

/** A GET or HEAD whose body is streamed to the caller. Redirects to another origin are followed without the API key. */
export interface StreamRequest<T> extends RequestBase {
  readonly method: 'GET' | 'HEAD';
  /** Returns the result of the call. If that is a Response, it replaces the one from the service. */
  readonly read: (response: Response) => T | Promise<T>;
  /** Schema of the options, if the call has its own. */
  readonly options?: OptionsSchema | undefined;
  /** Returns how long the service may still be publishing the file, in milliseconds. Called after the first rejection. */
  readonly publishingMs?: () => Promise<number>;
  /** Returns the headers. Called when the call starts. */
  readonly headers?: () => Readonly<Record<string, string>>;
}

/** A PUT of bytes to an absolute URL. The API key is sent to the base URL's origin only. */
export interface TransferRequest {
  readonly name: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Called once per attempt. Must call `onActivity` as bytes are sent, to restart the attempt's timeout. */
  readonly body: (onActivity: () => void) => BodyInit | Promise<BodyInit>;
  /** If true, `body` can be called again and returns the entire content. */
  readonly repeatable: boolean;
  readonly limit?: RateLimitName | undefined;
}

export interface StoringCall {
  /** Name of the SDK function, for example `saveOutput`. */
  readonly name: string;
  readonly jobId: string;
  readonly signal?: AbortSignal | undefined;
}

export interface Transport {
  /** Returns the service's base URL without a trailing slash. Throws a GenError if none is set. */
  baseUrl(): string;
  /** Sends JSON and decodes the response. The timeout covers the entire body. */
  send<T>(request: JsonRequest<T>, options?: RequestOptions): RequestPromise<T>;
  /** Resolves with the response's headers. The body is streamed, with a timeout between two chunks. */
  open<T>(request: StreamRequest<T>, options?: RequestOptions): RequestPromise<T>;
  /** PUTs bytes. Resolves with the response, whose body has been read. */
  transfer(request: TransferRequest, options?: RequestOptions): RequestPromise<Response>;
  /** Runs `work`, which stores the file of a job. Traces it, and reports when it's done. */
  storing<T>(call: StoringCall, work: () => Promise<T>): Promise<T>;
  account(signal?: AbortSignal): Promise<ClientAccount>;
  readonly random: Random;
  readonly clock: Clock;
  /** The client's timeout per attempt, in milliseconds. */
  readonly timeoutMs: number;
}
