import type { RequestErrorCode } from './codes.js';
import { GenError } from './gen-error.js';

/** What is known of a call without an answer. */
export interface CallDetails {
  readonly method?: string;
  /** Without its query. */
  readonly url?: string;
  readonly idempotencyKey?: string | undefined;
  readonly attempts?: number;
  readonly cause?: unknown;
}

/** Refused before any call (as the documented rules say that the service would refuse it). */
export class PreflightError extends GenError {
  protected static override readonly family = 'GenError/PreflightError';
  /** @remarks The code that the service itself would give. */
  readonly code: RequestErrorCode;
  /** @remarks The parameter at fault. */
  readonly param: string;

  constructor(
    message: string,
    details: { readonly code: RequestErrorCode; readonly param: string; readonly cause?: unknown },
  ) {
    super(message, details);
    this.code = details.code;
    this.param = details.param;
  }
}

/** A call that got no usable answer: what was sent, how often, and under which key. */
class CallError extends GenError {
  /** @remarks The HTTP method of the request. */
  readonly method: string | undefined;
  /** @remarks The URL of the request, without its query. */
  readonly url: string | undefined;
  /** @remarks The Idempotency-Key that was sent: calling again with it never makes a second job. */
  readonly idempotencyKey: string | undefined;
  /** @remarks How many times the request was sent. */
  readonly attempts: number;

  constructor(message: string, details: CallDetails = {}) {
    super(message, details);
    this.method = details.method;
    this.url = details.url;
    this.idempotencyKey = details.idempotencyKey;
    this.attempts = details.attempts ?? 1;
  }
}

/** The service was not reached, or the answer broke off. */
export class ConnectionError extends CallError {
  protected static override readonly family = 'GenError/ConnectionError';
}

/** No whole answer within `timeoutMs`. */
export class TimeoutError extends CallError {
  protected static override readonly family = 'GenError/TimeoutError';
  /** @remarks The limit that was passed, in milliseconds. */
  readonly timeoutMs: number | undefined;

  constructor(message: string, details: CallDetails & { readonly timeoutMs?: number } = {}) {
    super(message, details);
    this.timeoutMs = details.timeoutMs;
  }
}

/** A success not in the documented shape. */
export class ResponseError extends CallError {
  protected static override readonly family = 'GenError/ResponseError';
  /** Where in the body the essential is missing: `data.job.id`, say (or mistyped). */
  readonly path: string | undefined;

  constructor(message: string, details: CallDetails & { readonly path?: string | undefined } = {}) {
    super(message, details);
    this.path = details.path;
  }
}
