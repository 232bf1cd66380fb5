// The bodies of answers. Where the document leaves their form open, the shapes decide (see world/shapes.ts).
import { reasonOf } from '../../runtime/callbacks.js';
import { Refusal, type RefusalDetails } from '../service/request.js';
import type { Shapes } from '../world/shapes.js';

/** What an error answer is made of. */
export interface ErrorAnswer extends RefusalDetails {
  readonly status: number;
  readonly code: string;
  readonly message: string;
}

/** A success: the documented envelope. */
export function succeed(data: Record<string, unknown>, headers: Record<string, string> = {}): Response {
  return Response.json({ success: true, data }, { headers });
}

/** A success whose body the document leaves open beside what is in it. */
export function succeedBare(data: Record<string, unknown>, headers: Record<string, string> = {}): Response {
  return Response.json(data, { headers });
}

/** The answer to a call that leaves nothing to tell: a body, or none. */
export function acknowledge(data: Record<string, unknown>, { empty }: Shapes): Response {
  return empty === 'none' ? new Response(null, { status: 204 }) : succeed(data);
}

/** A list of records under its name. `key` is the field that identifies a record. */
export function succeedList(
  { name, key, records }: { name: string; key: string; records: readonly Record<string, unknown>[] },
  { list }: Shapes,
): Response {
  if (list === 'bare') return Response.json(records);
  if (list === 'array') return Response.json({ success: true, data: records });
  if (list === 'items' || list === 'results') return succeed({ [list]: records });
  const byId = () => Object.fromEntries(records.map((record) => [String(record[key]), record]));
  return succeed({ [name]: list === 'map' ? byId() : records });
}

/** An error answer. */
export function errorResponse(answer: ErrorAnswer, { error }: Shapes): Response {
  const { status, code, message, data, retryAfterS } = answer;
  const headers = retryAfterS === undefined ? {} : { 'retry-after': String(retryAfterS) };
  const body = ENVELOPES[error](code, message);
  const rest = error === 'data' && data !== undefined ? { data: { ...body.data, ...data } } : data && { data };
  return Response.json({ ...body, ...rest }, { status, headers });
}

/** The answer to whatever was thrown: a refusal as it is, anything else as `internal_error`. */
export function answerTo(error: unknown, shapes: Shapes): { response: Response; code: string } {
  const isRefusal = error instanceof Refusal;
  const code = isRefusal ? error.code : 'internal_error';
  const message = isRefusal ? error.message : `The sandbox failed: ${reasonOf(error)}`;
  const details = isRefusal ? error.details : {};
  const status = isRefusal ? error.status : 500;
  return { response: errorResponse({ status, code, message, ...details }, shapes), code };
}

interface Envelope {
  readonly data?: object;
  readonly [field: string]: unknown;
}

const ENVELOPES: Readonly<Record<Shapes['error'], (code: string, message: string) => Envelope>> = {
  object: (code, message) => ({ success: false, error: { code, message } }),
  code: (code, message) => ({ success: false, error: code, message }),
  flat: (code, message) => ({ code, message }),
  data: (code, message) => ({ success: false, data: { code, message } }),
  errors: (code, message) => ({ success: false, errors: [{ code, message }] }),
  detail: (code, message) => ({ detail: { code, message } }),
};
