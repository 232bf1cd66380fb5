// What the proxy answers: JSON without secrets, never cached, and errors as `{ code, message }`.
import { InsufficientBalanceError, toHttp } from '../errors/index.js';
import { joinBytes } from '../runtime/bytes.js';
import type { Clock } from '../runtime/clock.js';
import { isFields } from '../schemas/envelope.js';

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

/** An error as the page gets it, and whether `onError` gets to know it. */
export interface PageFailure {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly isCallers: boolean;
}

/**
 * What a page is told about an error. The service's refusals of the app's own key and balance become 502 without their
 * code: a page must not learn what the app's account lacks.
 */
export function failureOf(error: unknown): PageFailure {
  if (error instanceof Refused) {
    const { status, code, message, headers } = error;
    return { status, code, message, headers, isCallers: true };
  }
  const told = toHttp(InsufficientBalanceError.isInstance(error) ? undefined : error);
  // `toHttp` gives this code to what concerns the app's own key.
  const isOwnAccount =
    InsufficientBalanceError.isInstance(error) || (told.code === 'service_error' && told.fault === 'app');
  if (isOwnAccount) {
    const message = 'The generation service is not available. Try again later.';
    return { status: 502, code: 'service_error', message, headers: {}, isCallers: false };
  }
  const { status, code, message, fault } = told;
  return { status, code, message, headers: {}, isCallers: fault === 'caller' };
}

/** Most bytes of a JSON body. */
const MOST_BODY_BYTES = 64 * 1024;
/** Most milliseconds that a JSON body may take. */
const BODY_MS = 10_000;

/** The JSON object that a page has sent. Refused before more than the bound is read. */
export async function pageBody(request: Request, clock: Clock): Promise<Record<string, unknown>> {
  const type = request.headers.get('content-type')?.split(';', 1)[0]?.trim().toLowerCase();
  if (type !== 'application/json') throw new Refused(415, 'json_required', 'Send JSON.');
  if (Number(request.headers.get('content-length') ?? 0) > MOST_BODY_BYTES) throw bodyTooLarge();
  const bytes = await readBounded(request, clock);
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    throw new Refused(400, 'invalid_json', 'The body is not JSON.');
  }
  if (!isFields(value)) throw new Refused(400, 'invalid_json', 'The body is not a JSON object.');
  refusePrototypes(value, 0);
  return value;
}

function bodyTooLarge(): Refused {
  return new Refused(413, 'body_too_large', 'The body is too large.');
}

async function readBounded(request: Request, clock: Clock): Promise<Uint8Array<ArrayBuffer>> {
  const reader = request.body?.getReader();
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  let isLate = false;
  const stopTimer = clock.after(BODY_MS, () => {
    isLate = true;
    reader?.cancel().catch(() => {});
  });
  try {
    for (;;) {
      const part = await reader?.read();
      if (isLate) throw new Refused(408, 'body_timeout', 'The body did not arrive in time.');
      if (!part || part.done) break;
      size += part.value.byteLength;
      if (size > MOST_BODY_BYTES) {
        await reader?.cancel().catch(() => {});
        throw bodyTooLarge();
      }
      chunks.push(part.value);
    }
  } finally {
    stopTimer();
  }
  return joinBytes(chunks);
}

const DEEPEST = 12;
const PROTOTYPES: readonly string[] = ['__proto__', 'constructor', 'prototype'];

/** `JSON.parse` makes such a name an own property, and a careless copy of the object makes it a prototype. */
function refusePrototypes(value: unknown, depth: number): void {
  if (typeof value !== 'object' || value === null) return;
  if (depth > DEEPEST) throw new Refused(400, 'invalid_json', 'The body is nested too deeply.');
  for (const [name, inner] of Object.entries(value)) {
    if (PROTOTYPES.includes(name)) throw new Refused(400, 'invalid_field', `The field ${name} is not accepted.`);
    refusePrototypes(inner, depth + 1);
  }
}
