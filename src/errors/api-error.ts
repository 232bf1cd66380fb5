import { REQUEST_ERRORS, type RequestErrorCode, rowOf } from './codes.js';
import { type Details, GenError } from './gen-error.js';

/** Details of a rejected request. */
export type APIErrorDetails = Details<
  InsufficientBalanceError,
  'status' | 'code' | 'recovery' | 'method' | 'url',
  'data' | 'headers' | 'requestId' | 'retryAfterMs' | 'idempotencyKey' | 'attempts' | 'topUpUrl'
>;

/** Thrown if the service rejected the call. */
export class APIError extends GenError {
  protected static override get family(): string {
    return 'GenError/APIError';
  }

  /** HTTP status of the response. */
  declare readonly status: number;
  /** Error code of the service, or `http_<status>` if the response contains none. */
  declare readonly code: RequestErrorCode;
  /** HTTP method of the request. */
  declare readonly method: string;
  /** URL of the request, without its query. */
  declare readonly url: string;
  /** `data` of the response body, or the body itself, if it could be read. */
  declare readonly data: unknown;
  /** Request ID of the service, if it sent one. */
  declare readonly requestId: string | undefined;
  /** Milliseconds to wait before the next call, from the Retry-After header or the body. */
  declare readonly retryAfterMs: number | undefined;
  /** Idempotency key that was sent. Calling again with it never creates a second job. */
  declare readonly idempotencyKey: string | undefined;
  /** Number of attempts. */
  declare readonly attempts: number;
  /** Response headers. `toJSON` omits them. */
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

/** 401: the API key is missing, invalid, or revoked. */
export class AuthenticationError extends APIError {
  protected static override get family() {
    return 'GenError/APIError/AuthenticationError';
  }

  /** Always 502, because frameworks respond with this status, and the API key is the app's, not its user's. */
  get statusCode(): number {
    return 502;
  }
}

/** 402: the balance is below the quoted cost. */
export class InsufficientBalanceError extends APIError {
  protected static override get family() {
    return 'GenError/APIError/InsufficientBalanceError';
  }

  /** URL of the billing page. */
  declare readonly topUpUrl: string | undefined;
}

/** 403: the key lacks the scope, or the account is suspended. */
export class PermissionDeniedError extends APIError {
  protected static override get family() {
    return 'GenError/APIError/PermissionDeniedError';
  }

  /** Always 502, because frameworks respond with this status, and the API key is the app's, not its user's. */
  get statusCode(): number {
    return 502;
  }
}

/** 404: no such job, character, or upload in this account. */
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

/** 429: too many requests, or no free slot with `rateLimit: 'throw'`. Wait `retryAfterMs`. */
export class RateLimitError extends APIError {
  protected static override get family() {
    return 'GenError/APIError/RateLimitError';
  }
}

/** 5xx: the service failed. */
export class ServerError extends APIError {
  protected static override get family() {
    return 'GenError/APIError/ServerError';
  }
}

/** Returns a rejection's status, or its code's documented status if the response was a 200 with `success: false`. */
export function documentedStatus({
  status,
  code = '',
}: {
  readonly status: number;
  readonly code?: string | undefined;
}): number {
  return status < 400 ? (rowOf(REQUEST_ERRORS, code)?.[0] ?? status) : status;
}
