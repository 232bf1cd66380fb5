// What the proxy answers: JSON without secrets, never cached, and errors as `{ code, message }`.
import { InsufficientBalanceError, toHttp } from '../../errors/index.js';

/** A request that the proxy refuses because of what the page has sent: the status is below 500. */
export class Refused extends Error {
  readonly status: number;
  readonly code: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, code: string, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.headers = headers;
  }
}

/** A ticket that opens nothing: forged, expired, another user's, or of another kind. They all look the same. */
export const badTicket = () => new Refused(404, 'not_found', 'This does not exist, or it has expired.');

const HEADERS = {
  'content-type': 'application/json',
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

/** A JSON answer. */
export function jsonAnswer(value: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(JSON.stringify(value), { status, headers: { ...HEADERS, ...headers } });
}

/**
 * What a page is answered for an error, and whether the error is its own. The service's refusals of the app's key and balance
 * become 502 without their code: a page must not learn what the app's account lacks.
 */
export function failureOf(error: unknown) {
  if (error instanceof Refused) {
    const { status, code, message, headers } = error;
    return { status, code, message, headers, isCallers: true };
  }
  if (InsufficientBalanceError.isInstance(error)) {
    const message = 'The generation service is not available. Try again later.';
    return { status: 502, code: 'service_error', message, headers: {}, isCallers: false };
  }
  // A refusal of the app's own key has that answer already.
  const { status, code, message, fault } = toHttp(error);
  return { status, code, message, headers: {}, isCallers: fault === 'caller' };
}
