// Responses of the proxy: JSON without secrets, never cached, and errors as `{ code, message, retry }`.
import { InsufficientBalanceError, toHttp } from '../../errors/index.js';
import { failureKindOf, isTransient } from '../../rules/failure-kind.js';

/** An error that a page sees. */
export interface Rejection {
  readonly code: string;
  readonly message: string;
  /** If true, the same request may succeed: its response was lost, or the failure passes. Otherwise no job was created. */
  readonly retry: boolean;
}

interface ProxyErrorOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly retry?: boolean;
}

/** Thrown for an invalid request of a page. The status is below 500. */
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

/** A 429. With `retry`, the page sends the request again. */
export function tooMany(what: string, retry: boolean): ProxyError {
  return new ProxyError(429, 'rate_limited', `Too many ${what}. Try again later.`, {
    headers: { 'retry-after': '5' },
    retry,
  });
}

/** The same error for a forged ticket, an expired one, another user's, and one of another kind. */
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
 * Returns the response to an error. `isCallers` is true if the page caused it. Problems of the app's account are a 502
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
