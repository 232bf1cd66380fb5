// The port that resources see: types only. http-transport.ts stands behind it.
import type { Account } from '../limits/account-state.js';
import type { Lane } from '../limits/rate-limiter.js';
import type { RequestOptions } from '../schemas/request-options.js';
import type { RequestPromise } from './request-promise.js';

/** Where an answer came from, for the messages of a decoder. */
export interface Endpoint {
  readonly method: string;
  readonly path: string;
}

/** What a decoder learns about the call beside the body. */
export interface DecodeContext extends Endpoint {
  readonly idempotencyKey?: string | undefined;
  /** How many times the request was sent. */
  readonly attempts: number;
  readonly response: Response;
}

/** Tells of something doubtful that is not refused; goes to the logger as a warning. */
export type Warn = (message: string) => void;

/** A path, or what makes it once the call begins. What that throws, the call rejects with. */
export type RequestPath = string | (() => string);

/** A JSON call to a documented endpoint. */
export interface JsonRequest<T> {
  readonly method: 'GET' | 'POST' | 'DELETE' | 'PUT' | 'PATCH';
  /** Below the base URL; with ids in it, made by the `path` tag. */
  readonly path: RequestPath;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>> | undefined;
  readonly body?: unknown;
  /** The documented rate limit it counts against; none for undocumented endpoints. */
  readonly lane?: Lane;
  /** A creating POST: carries `Idempotency-Key`, the same on every retry. */
  readonly creates?: boolean;
  /** Works without a key. */
  readonly isPublic?: boolean;
  /** Must never be served from a cache (polls). */
  readonly noStore?: boolean;
  /** Preflight: throws a PreflightError for what the documented rules refuse. */
  readonly check?: (body: unknown, warn: Warn) => void;
  /** Turns the whole body into the result; throws a ResponseError for a missing essential. */
  readonly decode: (body: unknown, context: DecodeContext) => T | Promise<T>;
}

/** A GET or HEAD whose body is streamed to the caller. Redirects to another origin are followed without the key. */
export interface StreamRequest {
  readonly method: 'GET' | 'HEAD';
  readonly path: RequestPath;
  readonly lane?: Lane;
  /** Made when the call begins, like the path. */
  readonly headers?: () => Readonly<Record<string, string>>;
}

/** Bytes on their way to an absolute URL. The key goes along only to the base URL's own origin. */
export interface TransferRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Asked for once per attempt. `moved` is to be called as bytes leave: it starts the attempt's deadline again. */
  readonly body: (moved: () => void) => BodyInit | Promise<BodyInit>;
  /** Whether `body` can be asked for again with the whole content. */
  readonly repeatable: boolean;
  readonly lane?: Lane | undefined;
}

/** What the resources need of the network. */
export interface Transport {
  /** The service's base URL, without a trailing slash. */
  readonly baseUrl: string;
  /** Sends JSON and decodes the answer, read whole within the deadline. */
  send<T>(request: JsonRequest<T>, options?: RequestOptions): RequestPromise<T>;
  /** Resolves with the answer's head; the body streams under an idle timeout. */
  open(request: StreamRequest, options?: RequestOptions): RequestPromise<Response>;
  /** PUTs bytes; resolves with the answer, its body read. A refusal is an APIError. */
  transfer(request: TransferRequest, options?: RequestOptions): RequestPromise<Response>;
  /** What all clients of one account in this process share. */
  account(): Promise<Account>;
}
