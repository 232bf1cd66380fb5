// What a page may send: requests of the app's own pages and of listed origins, as JSON, with tickets of its own uploads and never an id,
// a webhook or a key. No other page gets an answer, or has an effect.
import { isDevelopment } from '../../client/config.js';
import { InsufficientBalanceError, JobFailedError, toHttp } from '../../errors/index.js';
import { isUploadField } from '../../rules/fields.js';
import { readUpTo } from '../../runtime/bytes.js';
import type { Clock } from '../../runtime/clock.js';
import { isFields } from '../../schemas/envelope.js';
import { isCompleted, isFinal, type Job } from '../../schemas/job.js';
import type { Tickets } from './tickets.js';

/** The header that every request of `gen-client/page` carries: no form and no simple cross-site request can set it. */
const PAGE_HEADER = 'x-gen-page';

/** Refuses a request that another site has made its visitor's browser send. */
export function requireOwnPage(request: Request, origins: readonly string[]): void {
  const { headers } = request;
  const origin = headers.get('origin');
  const site = headers.get('sec-fetch-site');
  const isOwn = site === null ? origin === null || isOwnHost(origin, request) : site === 'same-origin';
  if (!isOwn && !isAllowedOrigin(origin, origins)) throw foreignOrigin(origin, request);
  if (headers.get(PAGE_HEADER) === null)
    throw new Refused(403, 'foreign_origin', `The header ${PAGE_HEADER} is missing.`);
}

/** While the app is developed it says which hosts differ: a web server in front may have changed the header Host. */
function foreignOrigin(origin: string | null, request: Request): Refused {
  const why =
    origin === null || !isDevelopment()
      ? ''
      : ` It is of ${origin}, and the proxy was asked at ${requestedHost(request)}: list the origin in origins, or let the web server in front pass on the header Host.`;
  return new Refused(403, 'foreign_origin', `This page may not use this address.${why}`);
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

function isAllowedOrigin(origin: string | null, origins: readonly string[]): boolean {
  return origin !== null && origins.includes(origin);
}

/** Whether the origin has the host that was asked. Behind a TLS proxy only the host is the same, not the scheme. */
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

const MOST_BODY_BYTES = 64 * 1024;
const BODY_MS = 10_000;

/** The JSON object that a page has sent. Refused before more than the bound is read. */
export async function pageBody(request: Request, clock: Clock): Promise<Record<string, unknown>> {
  const type = request.headers.get('content-type')?.split(';', 1)[0]?.trim().toLowerCase();
  if (type !== 'application/json') throw new Refused(415, 'json_required', 'Send JSON.');
  if (Number(request.headers.get('content-length') ?? 0) > MOST_BODY_BYTES) throw bodyTooLarge();
  const { bytes, end } = await readUpTo(request.body, MOST_BODY_BYTES, (fire) => clock.after(BODY_MS, fire));
  if (end === 'late') throw new Refused(408, 'body_timeout', 'The body did not arrive in time.');
  if (end === 'too_large') throw bodyTooLarge();
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder().decode(bytes), refusePrototype);
  } catch {
    throw new Refused(400, 'invalid_json', 'The body is not JSON, or has a field that is not accepted.');
  }
  if (!isFields(value)) throw new Refused(400, 'invalid_json', 'The body is not a JSON object.');
  return value;
}

function bodyTooLarge(): Refused {
  return new Refused(413, 'body_too_large', 'The body is too large.');
}

const PROTOTYPES: readonly string[] = ['__proto__', 'constructor', 'prototype'];

/** `JSON.parse` makes such a name an own property, and a careless copy of the object makes it a prototype. */
function refusePrototype(name: string, value: unknown): unknown {
  if (PROTOTYPES.includes(name)) throw new TypeError(name);
  return value;
}

/** Fields of a create that only the app may set. */
const APPS_OWN: readonly string[] = ['webhook_url', 'callback_url', 'idempotency_key'];

/** What a page asks for. Refused where it names what only the app may set. */
export function inputOf(body: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { input } = body;
  if (!isFields(input)) throw new Refused(400, 'invalid_input', 'Send an object as "input".');
  const own = APPS_OWN.find((name) => Object.hasOwn(input, name));
  if (own !== undefined) throw new Refused(400, 'field_not_accepted', `A page cannot set ${own}.`);
  return input;
}

/**
 * The params to send: what the app's function returned, with the ids of the page's own uploads in place of their tickets.
 * An id, a webhook or a key that came from the page by another way is refused.
 */
export async function createParams(
  returned: unknown,
  input: Readonly<Record<string, unknown>>,
  { tickets, user }: { readonly tickets: Tickets; readonly user: string },
): Promise<Record<string, unknown>> {
  if (!isFields(returned)) throw new TypeError('A function of `create` must return the params of the call.');
  const params = { ...returned };
  const asked = textsIn(input);
  // A part of what the page has sent, too: the function may have trimmed it.
  const isAsked = (value: string) => value !== '' && asked.some((text) => text.includes(value));
  for (const name of ['webhook_url', 'callback_url']) {
    const url = params[name];
    if (typeof url === 'string' && isAsked(url))
      throw new Refused(400, 'field_not_accepted', `A page cannot set ${name}.`);
  }
  const uploadId = async (value: unknown): Promise<unknown> => {
    if (typeof value !== 'string') {
      if (isPlain(value)) throw new Refused(400, 'upload_invalid', 'An upload field takes tickets of uploads.');
      return value;
    }
    const ticket = await tickets.open(value, { kind: 'upload', user });
    if (ticket) return ticket.id;
    if (isAsked(value)) throw badTicket();
    return value;
  };
  for (const [name, value] of Object.entries(params)) {
    if (!isUploadField(name) || value === undefined || value === null) continue;
    params[name] = Array.isArray(value) ? await Promise.all(value.map(uploadId)) : await uploadId(value);
  }
  return params;
}

/** JSON that is no string: a page cannot send a file in this way, and the app passes files of its own classes. */
function isPlain(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return value !== undefined;
  const prototype: unknown = Object.getPrototypeOf(value);
  return Array.isArray(value) || prototype === Object.prototype;
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

// What the proxy answers: JSON without secrets, never cached, and errors as `{ code, message }`.

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

interface Progress {
  readonly job: Job;
  readonly etaMs?: number | undefined;
  readonly progress?: number | undefined;
}

/** What a page gets when it asks how far a job is. */
export interface WatchAnswer {
  /** The status of the job. */
  readonly status: string;
  /** Whether the status is final. */
  readonly final: boolean;
  /** Milliseconds to the end, as far as the SDK has learned how long such jobs take. */
  readonly etaMs?: number | undefined;
  /** How much of the job is done, from 0 to 1. */
  readonly progress?: number | undefined;
  /** Tokens charged, or quoted until that is known. */
  readonly tokens?: number | undefined;
  /** The ticket of the finished file, for `file?t=`. */
  readonly file?: string | undefined;
  /** Why the job has no file. */
  readonly error?: { readonly code: string; readonly message: string } | undefined;
  /** Milliseconds after which to ask again, where requests are not held open. */
  readonly againMs?: number | undefined;
}

/** The same for every user of the job: without the ticket of the file. A final one without an error has a file. */
export type Told = Omit<WatchAnswer, 'file' | 'againMs'>;

export function toldOf({ job, etaMs, progress }: Progress): Told {
  const { status } = job;
  // The service may report 0 tokens charged while a job runs.
  const tokens = (isFinal(job) ? job.finalTokenCost : undefined) ?? job.quotedTokenCost;
  if (isCompleted(job)) return { status, final: true, etaMs: 0, progress: 1, tokens };
  if (!isFinal(job) || status === 'completed') return { status, final: false, etaMs, progress, tokens };
  const { code, message } = failureOf(new JobFailedError(`The job ended as ${status}.`, { job }));
  return { status, final: true, tokens, error: { code, message } };
}
