import { REQUEST_ERRORS, type RequestErrorCode, rowOf } from './codes.js';
import { type Details, GenError } from './gen-error.js';

/** What is known of a refused request. */
export type APIErrorDetails = Details<
  InsufficientBalanceError,
  'status' | 'code' | 'recovery' | 'method' | 'url',
  'data' | 'headers' | 'requestId' | 'retryAfterMs' | 'idempotencyKey' | 'attempts' | 'topUpUrl'
>;

/** The service answered and refused. */
export class APIError extends GenError {
  protected static override get family(): string {
    return 'GenError/APIError';
  }

  /** HTTP status of the answer. */
  declare readonly status: number;
  /** The service's code; `http_<status>` where the answer names none. */
  declare readonly code: RequestErrorCode;
  /** The HTTP method of the request. */
  declare readonly method: string;
  /** The URL of the request, without its query. */
  declare readonly url: string;
  /** The `data` of the answer's body, else the body itself, as far as it could be read. */
  declare readonly data: unknown;
  /** The service's id for this request, when it sent one. */
  declare readonly requestId: string | undefined;
  /** How long the service asks to wait, in milliseconds, from the Retry-After header or the body. */
  declare readonly retryAfterMs: number | undefined;
  /** The Idempotency-Key that was sent: calling again with it never makes a second job. */
  declare readonly idempotencyKey: string | undefined;
  /** How many times the request was sent. */
  declare readonly attempts: number;
  /** The answer's headers. Not part of the JSON form. */
  declare readonly headers: Headers;

  constructor(message: string, { headers = new Headers(), ...details }: APIErrorDetails) {
    super(message, { attempts: 1, ...details });
    Object.defineProperty(this, 'headers', { value: headers, enumerable: false });
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
  declare readonly topUpUrl: string | undefined;
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

/** 429: too many requests, or a full rate limit under `rateLimit: 'throw'`; `retryAfterMs` says how long to wait. */
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
