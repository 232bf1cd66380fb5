import { APIError } from '../errors/index.js';

/** Redirects followed in one attempt. */
const MOST_REDIRECTS = 5;

/** A request that was answered, and how far it may be led away. */
export interface Hop {
  readonly method: string;
  /** The absolute URL that was asked. */
  readonly url: string;
  readonly attempts: number;
  readonly idempotencyKey: string | undefined;
  /** Redirects followed so far in this attempt. */
  readonly hops: number;
  /** Whether another origin may be asked (without the key): only for a stream. */
  readonly leaves: boolean;
}

/** Where to go on; undefined for an answer that is no redirect, and the APIError of a redirect that is not followed. */
export function redirectTarget({ status, type, headers }: Response, hop: Hop): string | APIError | undefined {
  if (type === 'opaqueredirect') return redirectRefusal(status, hop, 'a browser does not say where to');
  const location = headers.get('location');
  if (![301, 302, 303, 307, 308].includes(status) || !location) return undefined;
  if (!URL.canParse(location, hop.url)) return redirectRefusal(status, hop, 'its location is no URL');
  const [from, to] = [new URL(hop.url), new URL(location, hop.url)];
  const unencrypted = from.protocol === 'https:' && to.protocol === 'http:';
  const stays = from.origin === to.origin || hop.leaves;
  if (!stays || unencrypted || !/^https?:$/.test(to.protocol) || !/^(GET|HEAD)$/.test(hop.method)) {
    return redirectRefusal(status, hop, `it leads to ${to.origin}${unencrypted ? ', unencrypted' : ''}`);
  }
  if (hop.hops >= MOST_REDIRECTS) return redirectRefusal(status, hop, `${MOST_REDIRECTS} others went before it`);
  return to.href;
}

/** Whether Node's fetch failed because it was told to take redirects for errors. */
export function isRedirectFailure(error: unknown, depth = 0): boolean {
  if (!(error instanceof Error) || depth > 4) return false;
  return error.message === 'unexpected redirect' || isRedirectFailure(error.cause, depth + 1);
}

/** The error of a redirect that is not followed; `why` says where it leads, as far as that is known. */
export function redirectRefusal(status: number, hop: Hop, why: string): APIError {
  const { method, idempotencyKey, attempts } = hop;
  const url = withoutQuery(hop.url);
  const advice = 'Set baseUrl to the address that answers itself, so that the API key goes nowhere else.';
  return new APIError(`${method} ${url} was redirected, which is not followed: ${why}. ${advice}`, {
    status,
    code: `http_${status}`,
    recovery: 'change_request',
    method,
    url,
    idempotencyKey,
    attempts,
  });
}

/** A URL as it may stand in a message: a query may hold a signature. */
export function withoutQuery(url: string): string {
  const end = url.search(/[?#]/);
  return end === -1 ? url : url.slice(0, end);
}
