import { REQUEST_ERRORS, type Recovery, type RequestErrorCode, rowOf } from './codes.js';
import { GenError } from './gen-error.js';

/** What is known of a refused request. */
export interface APIErrorDetails {
  /** HTTP status of the answer. */
  readonly status: number;
  /** The service's code; `http_<status>` where the answer names none. */
  readonly code: RequestErrorCode;
  /** What to do about it. */
  readonly recovery: Recovery;
  /** The HTTP method of the request. */
  readonly method: string;
  /** The URL of the request, without its query. */
  readonly url: string;
  /** The `data` of the answer's body. */
  readonly data?: unknown;
  /** The headers of the answer. */
  readonly headers?: Headers;
  /** The service's id for the request, when it sent one. */
  readonly requestId?: string | undefined;
  /** Milliseconds that the service asks to wait. */
  readonly retryAfterMs?: number | undefined;
  /** The key of the create. */
  readonly idempotencyKey?: string | undefined;
  /** How many attempts were made. */
  readonly attempts?: number;
  /** Where to top up, for a balance that is too low. */
  readonly topUpUrl?: string | undefined;
  /** What was thrown underneath. */
  readonly cause?: unknown;
}

/** The service answered and refused. */
export class APIError extends GenError {
  protected static override get family(): string {
    return 'GenError/APIError';
  }

  /** HTTP status of the answer. */
  readonly status: number;
  /** The service's code; `http_<status>` where the answer names none. */
  readonly code: RequestErrorCode;
  /** The HTTP method of the request. */
  readonly method: string;
  /** The URL of the request, without its query. */
  readonly url: string;
  /** The `data` of the answer's body, else the body itself, as far as it could be read. */
  readonly data: unknown;
  /** The service's id for this request, when it sent one. */
  readonly requestId: string | undefined;
  /** How long the service asks to wait, in milliseconds, from the Retry-After header or the body. */
  readonly retryAfterMs: number | undefined;
  /** The Idempotency-Key that was sent: calling again with it never makes a second job. */
  override readonly idempotencyKey: string | undefined;
  /** How many times the request was sent. */
  readonly attempts: number;
  /** The answer's headers. Not part of the JSON form. */
  declare readonly headers: Headers;

  constructor(message: string, details: APIErrorDetails) {
    super(message, details);
    this.status = details.status;
    this.code = details.code;
    this.method = details.method;
    this.url = details.url;
    this.data = details.data;
    this.requestId = details.requestId;
    this.retryAfterMs = details.retryAfterMs;
    this.idempotencyKey = details.idempotencyKey;
    this.attempts = details.attempts ?? 1;
    Object.defineProperty(this, 'headers', { value: details.headers ?? new Headers(), enumerable: false });
  }
}

/** 400: the request itself must change. */
export class BadRequestError extends APIError {
  protected static override get family() {
    return 'GenError/APIError/BadRequestError';
  }
}

/** 401: the key is missing, wrong or revoked. */
export class AuthenticationError extends APIError {
  protected static override get family() {
    return 'GenError/APIError/AuthenticationError';
  }

  /** 502, for frameworks that answer with it: the key is the app's own, and its user has done nothing wrong. */
  get statusCode(): number {
    return 502;
  }
}

/** 402: the balance is below the quoted cost. */
export class InsufficientBalanceError extends APIError {
  protected static override get family() {
    return 'GenError/APIError/InsufficientBalanceError';
  }

  /** The billing page. */
  readonly topUpUrl: string | undefined;

  constructor(message: string, details: APIErrorDetails) {
    super(message, details);
    this.topUpUrl = details.topUpUrl;
  }
}

/** 403: the key lacks the scope, or the account is suspended. */
export class PermissionDeniedError extends APIError {
  protected static override get family() {
    return 'GenError/APIError/PermissionDeniedError';
  }

  /** 502, for frameworks that answer with it: the key is the app's own, and its user has done nothing wrong. */
  get statusCode(): number {
    return 502;
  }
}

/** 404: no such job, character or upload in this account. */
export class NotFoundError extends APIError {
  protected static override get family() {
    return 'GenError/APIError/NotFoundError';
  }
}

/** 409: in use, or still under review. */
export class ConflictError extends APIError {
  protected static override get family() {
    return 'GenError/APIError/ConflictError';
  }
}

/** 413: the file is over its type's limit. */
export class PayloadTooLargeError extends APIError {
  protected static override get family() {
    return 'GenError/APIError/PayloadTooLargeError';
  }
}

/** 422: the character's image failed review. */
export class UnprocessableEntityError extends APIError {
  protected static override get family() {
    return 'GenError/APIError/UnprocessableEntityError';
  }
}

/** 429: too many requests, or a full lane under `rateLimit: 'throw'`; `retryAfterMs` says how long to wait. */
export class RateLimitError extends APIError {
  protected static override get family() {
    return 'GenError/APIError/RateLimitError';
  }
}

/** 5xx: a failure on the service's side. */
export class ServerError extends APIError {
  protected static override get family() {
    return 'GenError/APIError/ServerError';
  }
}

/** The status of a refusal, or the one that the spec gives its code where the answer said 200 and `success: false`. */
export function documentedStatus({
  status,
  code = '',
}: {
  readonly status: number;
  readonly code?: string | undefined;
}): number {
  return status < 400 ? (rowOf(REQUEST_ERRORS, code)?.[0] ?? status) : status;
}
