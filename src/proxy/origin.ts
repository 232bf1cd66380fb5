// Who may ask: the app's own pages, and those of listed origins. No other page gets an answer, or has an effect.
import { Refused } from './answers.js';

/** The header that every request of `gen-client/page` carries: no form and no simple cross-site request can set it. */
const PAGE_HEADER = 'x-gen-page';

/** Refuses a request that another site has made its visitor's browser send. */
export function requireOwnPage(request: Request, origins: readonly string[]): void {
  const { headers } = request;
  const origin = headers.get('origin');
  const site = headers.get('sec-fetch-site');
  const isOwn = site === null ? origin === null || isOwnHost(origin, request) : site === 'same-origin';
  if (!isOwn && !isAllowedOrigin(origin, origins))
    throw new Refused(403, 'foreign_origin', 'This page may not use this address.');
  requireHeader(headers);
}

/** The answer to a preflight of a listed origin. Nobody else gets CORS headers. */
export function preflightAnswer(request: Request, origins: readonly string[]): Response {
  const origin = request.headers.get('origin');
  if (!isAllowedOrigin(origin, origins))
    throw new Refused(405, 'method_not_allowed', 'Use POST, GET or HEAD.', { allow: 'POST, GET, HEAD' });
  return new Response(null, {
    status: 204,
    headers: {
      'access-control-allow-methods': 'POST, GET, HEAD',
      'access-control-allow-headers': `content-type, ${PAGE_HEADER}, x-gen-ticket`,
      'access-control-max-age': '600',
    },
  });
}

/** The answer with what a listed origin needs to read it. */
export function withCors(response: Response, request: Request, origins: readonly string[]): Response {
  const origin = request.headers.get('origin');
  if (origins.length > 0) response.headers.append('vary', 'Origin');
  if (origin === null || !isAllowedOrigin(origin, origins)) return response;
  response.headers.set('access-control-allow-origin', origin);
  response.headers.set('access-control-allow-credentials', 'true');
  response.headers.set('access-control-expose-headers', 'retry-after');
  return response;
}

function requireHeader(headers: Headers): void {
  if (headers.get(PAGE_HEADER) === null)
    throw new Refused(403, 'foreign_origin', `The header ${PAGE_HEADER} is missing.`);
}

function isAllowedOrigin(origin: string | null, origins: readonly string[]): boolean {
  return origin !== null && origins.includes(origin);
}

/** Whether the origin has the host that was asked. Behind a TLS proxy only the host is the same, not the scheme. */
function isOwnHost(origin: string, request: Request): boolean {
  try {
    const asked = request.headers.get('host') ?? new URL(request.url).host;
    return new URL(origin).host === asked;
  } catch {
    return false;
  }
}
