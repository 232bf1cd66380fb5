// The proxy's responses: uncached JSON without secrets. Errors are `{ code, message, retry }`.
import { InsufficientBalanceError, toHttp } from '../../errors/index.js';
import { failureKindOf, isTransient } from '../../rules/failure-kind.js';

/** An error that a page sees. */
export interface Rejection {
  readonly code: string;
  readonly message: string;
  /** If true, the same request may succeed later. If false, no job was created. */
  readonly retry: boolean;
}

interface ProxyErrorOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly retry?: boolean;
}

/** Thrown for a page's invalid request. The status is below 500. */
export class ProxyError extends Error {
  readonly status: number;
  readonly code: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly retry: boolean;

  constructor(status: number, code: string, message: string, { headers = {}, retry = false }: ProxyErrorOptions = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.headers = headers;
    this.retry = retry;
  }
}

/** Creates a 429. If `retry` is true, the page sends the request again. */
export function tooMany(what: string, retry: boolean): ProxyError {
  return new ProxyError(429, 'rate_limited', `Too many ${what}. Try again later.`, {
    headers: { 'retry-after': '5' },
    retry,
  });
}

/** The error for every invalid ticket, so that a page can't tell a forged ticket from another user's. */
export const badTicket = () => new ProxyError(404, 'not_found', 'This does not exist, or it has expired.');

const HEADERS = {
  'content-type': 'application/json',
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

export function jsonResponse(value: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(JSON.stringify(value), { status, headers: { ...HEADERS, ...headers } });
}

/**
 * Converts an error to a response. `isCallers` is true if the page caused it. Problems with the app's account become a 502
 * without their code.
 */
export function failureOf(error: unknown) {
  if (error instanceof ProxyError) {
    const { status, code, message, headers, retry } = error;
    return { status, code, message, headers, retry, isCallers: true };
  }
  const kind = failureKindOf(error);
  const retry = kind === 'lost' || (kind === 'unsent' && isTransient(error));
  if (InsufficientBalanceError.isInstance(error)) {
    const message = 'The generation service is not available. Try again later.';
    return { status: 502, code: 'service_error', message, headers: {}, retry, isCallers: false };
  }
  // For a rejected API key, `toHttp` returns a 502 as well.
  const { status, code, message, fault } = toHttp(error);
  return { status, code, message, headers: {}, retry, isCallers: fault === 'caller' };
}
