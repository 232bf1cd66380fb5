// Validates requests from pages: only the app's own pages and listed origins, only JSON, and no upload ID, webhook URL, or
// idempotency key.
import { isDevelopment } from '../../client/config.js';
import { isUploadField } from '../../rules/fields.js';
import { readUpTo } from '../../runtime/bytes.js';
import { systemClock } from '../../runtime/clock.js';
import { parsedBodyOf } from '../../runtime/parsed-body.js';
import { isFields } from '../../schemas/envelope.js';
import { badTicket, ProxyError } from './responses.js';
import type { Tickets } from './tickets.js';

/** Sent with every request by `gen-client/page`. Forms and simple cross-site requests can't set it. */
const PAGE_HEADER = 'x-gen-page';

/** Throws a 403 for a request from another site. */
export function requireOwnPage(request: Request, origins: readonly string[]): void {
  const { headers } = request;
  const origin = headers.get('origin');
  const site = headers.get('sec-fetch-site');
  const isOwn = site === null ? origin === null || isOwnHost(origin, request) : site === 'same-origin';
  if (!isOwn && !isAllowedOrigin(origin, origins)) throw foreignOrigin(origin, request);
  if (headers.get(PAGE_HEADER) === null)
    throw new ProxyError(403, 'foreign_origin', `The header ${PAGE_HEADER} is missing.`);
}

/**
 * Returns the error for a request from another site. In development, its message includes both hosts, because a reverse
 * proxy may have changed the Host header.
 */
function foreignOrigin(origin: string | null, request: Request): ProxyError {
  const hint =
    origin === null || !isDevelopment()
      ? ''
      : ` The page's origin is ${origin}, and the proxy's host is ${requestedHost(request)}. Add the origin to origins, or let the reverse proxy forward the Host header.`;
  return new ProxyError(403, 'foreign_origin', `Requests from this site are not allowed.${hint}`);
}

/** Responds to a preflight request from a listed origin. Throws a 405 for other origins. */
export function preflightResponse(request: Request, origins: readonly string[]): Response {
  const origin = request.headers.get('origin');
  if (!isAllowedOrigin(origin, origins))
    throw new ProxyError(405, 'method_not_allowed', 'Use POST, GET, or HEAD.', {
      headers: { allow: 'POST, GET, HEAD' },
    });
  return new Response(null, {
    status: 204,
    headers: {
      'access-control-allow-methods': 'POST, GET, HEAD',
      'access-control-allow-headers': `content-type, ${PAGE_HEADER}, x-gen-ticket`,
      'access-control-max-age': '600',
    },
  });
}

/** Adds the CORS headers for a listed origin. */
export function withCors(response: Response, request: Request, origins: readonly string[]): Response {
  const origin = request.headers.get('origin');
  if (origins.length > 0) response.headers.append('vary', 'Origin');
  if (origin === null || !isAllowedOrigin(origin, origins)) return response;
  response.headers.set('access-control-allow-origin', origin);
  response.headers.set('access-control-allow-credentials', 'true');
  response.headers.set('access-control-expose-headers', 'retry-after');
  return response;
}

function isAllowedOrigin(origin: string | null, origins: readonly string[]): boolean {
  return origin !== null && origins.includes(origin);
}

/** Returns true if the origin has the proxy's host. Ignores the scheme, which differs behind a TLS proxy. */
function isOwnHost(origin: string, request: Request): boolean {
  try {
    return new URL(origin).host === requestedHost(request);
  } catch {
    return false;
  }
}

function requestedHost({ headers, url }: Request): string {
  return headers.get('host') ?? new URL(url).host;
}

/** Fits the tickets of 100 jobs. */
const MAX_BODY_BYTES = 128 * 1024;
const BODY_TIMEOUT_MS = 10_000;

/** Parses the request body as a JSON object. Throws as soon as the body is too large. */
export async function pageBody(request: Request): Promise<Record<string, unknown>> {
  const type = request.headers.get('content-type')?.split(';', 1)[0]?.trim().toLowerCase();
  if (type !== 'application/json') throw new ProxyError(415, 'json_required', 'Send JSON.');
  if (Number(request.headers.get('content-length') ?? 0) > MAX_BODY_BYTES) throw bodyTooLarge();
  const text = await bodyText(request);
  let value: unknown;
  try {
    value = JSON.parse(text, rejectPrototype);
  } catch {
    throw new ProxyError(400, 'invalid_json', 'The body is not valid JSON, or it contains a reserved field name.');
  }
  if (!isFields(value)) throw new ProxyError(400, 'invalid_json', 'The body is not a JSON object.');
  return value;
}

async function bodyText(request: Request): Promise<string> {
  // Serialize a body that the server already parsed, so that it passes the same checks.
  const parsed = parsedBodyOf(request);
  if (parsed !== undefined) return JSON.stringify(parsed);
  // Real time, because a sandbox's clock can run faster than the network.
  const { bytes, end } = await readUpTo(request.body, MAX_BODY_BYTES, (fire) =>
    systemClock.after(BODY_TIMEOUT_MS, fire),
  );
  if (end === 'timeout') throw new ProxyError(408, 'body_timeout', 'The body did not arrive within 10 seconds.');
  if (end === 'too_large') throw bodyTooLarge();
  return new TextDecoder().decode(bytes);
}

function bodyTooLarge(): ProxyError {
  return new ProxyError(413, 'body_too_large', 'The body is too large.');
}

const PROTOTYPES: readonly string[] = ['__proto__', 'constructor', 'prototype'];

/**
 * A reviver that throws for these names. `JSON.parse` creates them as own properties, and copying such an object can
 * set its prototype.
 */
function rejectPrototype(name: string, value: unknown): unknown {
  if (PROTOTYPES.includes(name)) throw new TypeError(name);
  return value;
}

/** Fields that only the app can set. */
const APP_ONLY_FIELDS: readonly string[] = ['webhook_url', 'callback_url', 'idempotency_key'];

/** Returns the input of a create. Throws for a field that only the app can set. */
export function inputOf(body: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { input } = body;
  if (!isFields(input)) throw new ProxyError(400, 'invalid_input', 'Send an object as "input".');
  const forbidden = APP_ONLY_FIELDS.find((name) => Object.hasOwn(input, name));
  if (forbidden !== undefined) throw fieldNotAccepted(forbidden);
  return input;
}

function fieldNotAccepted(name: string): ProxyError {
  return new ProxyError(400, 'field_not_accepted', `A page cannot set ${name}.`);
}

/**
 * Returns the params from the app's function, and replaces each upload ticket with its upload ID. Throws if an upload ID, a
 * webhook URL, or an idempotency key came from the page.
 */
export async function createParams(
  appParams: unknown,
  input: Readonly<Record<string, unknown>>,
  { tickets, user }: { readonly tickets: Tickets; readonly user: string },
): Promise<{ readonly params: Record<string, unknown>; readonly uploadIds: readonly string[] }> {
  if (!isFields(appParams))
    throw new TypeError('create: each function must return an object. Return the params of the create.');
  const params = { ...appParams };
  const uploadIds: string[] = [];
  const strings = collectStrings(input);
  // Substrings count, too, because the function may have trimmed the input.
  const isFromPage = (value: string) => value !== '' && strings.some((string) => string.includes(value));
  for (const name of APP_ONLY_FIELDS) {
    const value = params[name];
    if (typeof value === 'string' && isFromPage(value)) throw fieldNotAccepted(name);
  }
  if (params.idempotency_key !== undefined)
    throw new TypeError("create: idempotency_key is set by the proxy, from the page's key. Remove it from the params.");
  const resolveUploadId = async (value: unknown): Promise<unknown> => {
    if (typeof value !== 'string') {
      if (isNonStringJson(value))
        throw new ProxyError(400, 'upload_invalid', 'An upload field accepts only upload tickets.');
      return value;
    }
    const ticket = await tickets.open(value, { kind: 'upload', user });
    if (ticket) uploadIds.push(ticket.id);
    if (!ticket && isFromPage(value)) throw badTicket();
    return ticket?.id ?? value;
  };
  for (const [name, value] of Object.entries(params)) {
    if (!isUploadField(name) || value === undefined || value === null) continue;
    params[name] = Array.isArray(value) ? await Promise.all(value.map(resolveUploadId)) : await resolveUploadId(value);
  }
  return { params, uploadIds };
}

/** Returns true for plain JSON values other than strings. Tickets are strings, and an app's files are Blobs or class instances. */
function isNonStringJson(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return value !== undefined;
  const prototype: unknown = Object.getPrototypeOf(value);
  return Array.isArray(value) || prototype === Object.prototype;
}

function collectStrings(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(collectStrings) : [];
}
