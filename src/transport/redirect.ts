import { APIError } from '../errors/index.js';
import { isRedirect } from '../rules/fate.js';

/** Redirects followed in one attempt. */
const MOST_REDIRECTS = 5;

/** A request that was answered, and how far a redirect may lead from it. */
export interface RedirectSource {
  readonly method: string;
  /** The absolute URL that was asked. */
  readonly url: string;
  readonly attempts: number;
  readonly idempotencyKey: string | undefined;
  /** Redirects followed so far in this attempt. */
  readonly redirects: number;
  /** Whether another origin may be asked (without the key): only for a stream. */
  readonly leaves: boolean;
  /** Whether the request went to the service, so that `baseUrl` can be at fault. */
  readonly toService: boolean;
}

/** Whether the response leads elsewhere. */
export function isRedirection({ status, type, headers }: Response): boolean {
  return type === 'opaqueredirect' || (isRedirect(status) && Boolean(headers.get('location')));
}

/** Where a redirect leads, or the APIError of one that is not followed. */
export function redirectTarget({ status, type, headers }: Response, source: RedirectSource): string | APIError {
  if (type === 'opaqueredirect') return redirectRefusal(status, source, 'a browser does not say where it leads');
  const location = headers.get('location') ?? '';
  if (!URL.canParse(location, source.url)) return redirectRefusal(status, source, 'its location is not a URL');
  const [from, to] = [new URL(source.url), new URL(location, source.url)];
  if (to.username + to.password !== '')
    return redirectRefusal(status, source, 'its location holds a user name or a password');
  const unencrypted = from.protocol === 'https:' && to.protocol === 'http:';
  const stays = from.origin === to.origin || source.leaves;
  if (!stays || unencrypted || !/^https?:$/.test(to.protocol) || !/^(GET|HEAD)$/.test(source.method)) {
    return redirectRefusal(status, source, `it leads to ${to.origin}${unencrypted ? ' without encryption' : ''}`);
  }
  if (source.redirects >= MOST_REDIRECTS) {
    return redirectRefusal(status, source, `it is the ${MOST_REDIRECTS + 1}th in a row`);
  }
  return to.href;
}

/** Whether Node's fetch failed because it was told to take redirects for errors. */
export function isRedirectFailure(error: unknown, depth = 0): boolean {
  if (!(error instanceof Error) || depth > 4) return false;
  return error.message === 'unexpected redirect' || isRedirectFailure(error.cause, depth + 1);
}

/** The error of a redirect that is not followed; `why` says where it leads, as far as that is known. */
export function redirectRefusal(status: number, source: RedirectSource, why: string): APIError {
  const { method, idempotencyKey, attempts, toService } = source;
  const url = withoutQuery(source.url);
  const advice = toService
    ? 'Set baseUrl to the address that it leads to, so that the API key is sent nowhere else.'
    : 'The storage must take the bytes at the URL that the service gave.';
  return new APIError(`${method} ${url}: the redirect is not followed, because ${why}. ${advice}`, {
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
