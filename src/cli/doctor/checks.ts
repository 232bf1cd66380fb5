import { MODELS, modelCapabilities } from '../../catalog.js';
import { APIError } from '../../errors/index.js';
import { isRateLimited } from '../../rules/fate.js';
import { WEBHOOK_TOLERANCE_S as WINDOW_S } from '../../rules/limits.js';
import { systemClock, systemRandom } from '../../runtime/clock.js';
import type { Fields } from '../../schemas/envelope.js';
import { signWebhook } from '../../webhooks/index.js';
import { messageOf } from '../errors.js';
import type { Observe, Seen } from './observer.js';
import { aliasOf, recordsIn } from './open-points.js';

/** How a check came out. */
export type CheckStatus = 'ok' | 'warning' | 'failed' | 'skipped';

/** One thing that was looked at. */
export interface Check {
  readonly name: 'service' | 'clock' | 'catalog' | 'key' | 'scopes' | 'dispatch' | 'limits' | 'webhook';
  readonly status: CheckStatus;
  /** What was seen, and what to do about it. */
  readonly message: string;
  readonly [fact: string]: unknown;
}

const NOTED_SKEW_S = 30;

/** Whether the service answers GET /v1/models, which needs no key. */
export function checkService({ status, body, durationMs, error }: Seen): Check {
  const name = 'service';
  if (status === undefined) return { name, status: 'failed', message: `No answer: ${messageOf(error)}` };
  if (isRateLimited(error)) {
    return {
      name,
      status: 'failed',
      message: `GET /v1/models answers 429. ${comeBack(error.retryAfterMs)}`,
      httpStatus: status,
    };
  }
  const models = recordsIn(body, 'models').length;
  if (status !== 200 || models === 0) {
    const message = `GET /v1/models answers ${status} without a list of models. Is this the base URL of the service?`;
    return { name, status: 'failed', message, httpStatus: status };
  }
  return {
    name,
    status: 'ok',
    message: `It answers in ${Math.round(durationMs)} ms and lists ${models} models.`,
    models,
  };
}

/** This machine's clock against the service's, as its Date header tells it. */
export function checkClock({ headers, at }: Seen): Check {
  const name = 'clock';
  const date = Date.parse(headers.get('date') ?? '');
  if (Number.isNaN(date)) return { name, status: 'skipped', message: 'The service sends no Date header.' };
  // The header has whole seconds.
  const skewS = Math.round((at - date - 500) / 1000);
  const off = Math.abs(skewS);
  const direction = skewS < 0 ? 'behind' : 'ahead of';
  const message = `This machine is ${off} s ${direction} the service; webhooks are refused from ${WINDOW_S} s on.`;
  if (off >= WINDOW_S) return { name, status: 'failed', message: `${message} Set the clock.`, skewS };
  return { name, status: off >= NOTED_SKEW_S ? 'warning' : 'ok', message, skewS };
}

/** The models of this version against those that the service lists. */
export function checkCatalog({ body }: Seen): Check {
  const name = 'catalog';
  const records = new Map(recordsIn(body, 'models').map((record) => [aliasOf(record), record]));
  const missing = Object.keys(MODELS).filter((alias) => !records.has(alias));
  const unknown = [...records.keys()].filter((alias) => modelCapabilities(alias) === undefined);
  const changed = [...records].flatMap(([alias, record]) => changesOf(alias, record));
  if (missing.length + unknown.length + changed.length === 0) {
    return { name, status: 'ok', message: 'The service lists the models that this version knows.' };
  }
  const parts = [
    missing.length > 0 ? `not listed: ${missing.join(', ')}` : '',
    unknown.length > 0 ? `unknown to this version: ${unknown.join(', ')}` : '',
    ...changed,
  ];
  const message = `The service's models differ: ${parts.filter((part) => part !== '').join('; ')}.`;
  return { name, status: 'warning', message, missing, unknown, changed };
}

function changesOf(alias: string, record: Fields): string[] {
  const known: Fields = { ...modelCapabilities(alias) };
  return ['durations', 'resolutions'].flatMap((field) => {
    const [here, there] = [known[field], record[field]];
    if (!Array.isArray(here) || !Array.isArray(there) || String(here) === String(there)) return [];
    return [`${alias} has ${field} ${there.join(' ')}, not ${here.join(' ')}`];
  });
}

/** Whether the key is taken, as the answer to an unknown job tells. */
export function keyCheck({ status, error }: Seen, hasKey: boolean): Check {
  const name = 'key';
  if (!hasKey) return { name, status: 'failed', message: 'GEN_API_KEY is not set.' };
  const code = APIError.isInstance(error) ? error.code : undefined;
  if (status === 401) return { name, status: 'failed', message: 'The key is wrong or revoked.', code };
  if (code === 'account_not_active') {
    return { name, status: 'failed', message: 'The account is suspended. Contact the support of the service.', code };
  }
  if (status === 404 || code === 'scope_missing') return { name, status: 'ok', message: 'The key is valid.' };
  if (isRateLimited(error)) {
    return {
      name,
      status: 'failed',
      message: `The key could not be checked: 429. ${comeBack(error.retryAfterMs)}`,
      code,
    };
  }
  return { name, status: 'failed', message: `An unknown job was answered with ${status ?? messageOf(error)}.`, code };
}

/** Whether the key may do something. */
interface Permission {
  readonly operation: string;
  /** Undefined where the answer does not tell. */
  readonly allowed: boolean | undefined;
  /** The code of the answer. */
  readonly code?: string | undefined;
}

/** An id that nothing has. */
export const NO_ID = 'gen-client-doctor-none';

/** Requests that the document says can only be refused: no field that a job, a character or an upload needs is in them. */
const OPERATIONS: Readonly<Record<string, Parameters<Observe>[0]>> = {
  'POST /v1/images': (client, options) => client.request({ method: 'POST', path: '/v1/images', body: {} }, options),
  'POST /v1/videos': (client, options) => client.request({ method: 'POST', path: '/v1/videos', body: {} }, options),
  'POST /v1/video-edits': (client, options) =>
    client.request({ method: 'POST', path: '/v1/video-edits', body: {} }, options),
  'DELETE /v1/characters/{id}': (client, options) =>
    client.request({ method: 'DELETE', path: `/v1/characters/${NO_ID}` }, options),
  'POST /v1/uploads': (client, options) => client.request({ method: 'POST', path: '/v1/uploads', body: {} }, options),
  'DELETE /v1/uploads/{id}': (client, options) =>
    client.request({ method: 'DELETE', path: `/v1/uploads/${NO_ID}` }, options),
};

/** Asks for what the key may do, where the answers so far have not told. */
export async function permissionsOf(observe: Observe, known: Readonly<Record<string, Seen>>): Promise<Permission[]> {
  const permissions = Object.entries(known).map(([operation, seen]) => permissionIn(operation, seen));
  for (const [operation, call] of Object.entries(OPERATIONS)) {
    permissions.push(permissionIn(operation, await observe(call)));
  }
  return permissions;
}

function permissionIn(operation: string, { status, error }: Seen): Permission {
  const code = APIError.isInstance(error) ? error.code : undefined;
  if (code === 'scope_missing') return { operation, allowed: false, code };
  const isTold = status !== undefined && status < 500 && ![401, 403, 429].includes(status);
  return { operation, allowed: isTold ? true : undefined, code };
}

/** What the key may not do. */
export function checkScopes(permissions: readonly Permission[]): Check {
  const name = 'scopes';
  const denied = permissions.filter(({ allowed }) => allowed === false).map(({ operation }) => operation);
  const untold = permissions.filter(({ allowed }) => allowed === undefined).map(({ operation }) => operation);
  if (denied.length > 0) {
    return { name, status: 'warning', message: `The key may not: ${denied.join(', ')}.`, permissions };
  }
  if (untold.length > 0) {
    return { name, status: 'warning', message: `The answers do not tell of: ${untold.join(', ')}.`, permissions };
  }
  return { name, status: 'ok', message: 'The key may do everything that this package calls.', permissions };
}

/** Whether creates are paused, where a refused create has told. */
export function dispatchCheck(permissions: readonly Permission[]): Check {
  const isPaused = permissions.some(({ code }) => code === 'dispatch_disabled');
  return isPaused
    ? { name: 'dispatch', status: 'warning', message: 'The service has paused generation: creates answer 503.' }
    : {
        name: 'dispatch',
        status: 'ok',
        message: 'Creates reach the checks of the service; none was answered with dispatch_disabled.',
      };
}

/** The calls that the service answered with 429: what they would have shown is unknown. */
export function limitsCheck(limited: readonly (APIError | undefined)[]): Check {
  const name = 'limits';
  const errors = limited.filter((error) => error !== undefined);
  if (errors.length === 0) return { name, status: 'ok', message: 'No call was answered with 429.' };
  const longestMs = Math.max(...errors.map(({ retryAfterMs = 0 }) => retryAfterMs));
  const calls = [...new Set(errors.map(({ method, url }) => `${method} ${new URL(url ?? '').pathname}`))];
  const message = `Answered with 429: ${calls.join(', ')}. ${comeBack(longestMs)}`;
  return { name, status: 'warning', message, calls };
}

function comeBack(retryAfterMs: number | undefined): string {
  if (!retryAfterMs) return 'The rate limit of the account is used up. Run this command again in a minute.';
  return `The rate limit of the account is used up. Run this command again in ${Math.ceil(retryAfterMs / 1000)} s.`;
}

/** A receiver to try. */
export interface Receiver {
  readonly url: string;
  readonly secret: string | undefined;
  readonly signal: AbortSignal;
}

const PING_TIMEOUT_MS = 10_000;
const OLD_S = 301;
/** What receivers answer to an event whose signature is wrong. */
const EVENT_REFUSALS: readonly number[] = [400, 401, 403];
/** No receiver does anything for this type: those of the service begin with "job.". */
const PING_TYPE = 'doctor.ping';

interface SentEvent {
  readonly status: number | undefined;
  /** Whether the receiver has taken the event. */
  readonly isTaken: boolean;
  readonly ms: number;
  readonly error?: unknown;
}

/**
 * Sends a receiver an event that is signed, one that is forged and one that is old, all of a type that means nothing to it. A
 * good receiver takes the first and refuses the others.
 */
export async function checkWebhook({ url, secret, signal }: Receiver): Promise<Check> {
  const name = 'webhook';
  if (secret === undefined) {
    return { name, status: 'failed', message: 'GEN_WEBHOOK_SECRET is not set, so no event can be signed.' };
  }
  const id = `evt_doctor_${systemRandom.uuid()}`;
  const event = { object: 'event', id, type: PING_TYPE, created: new Date(systemClock.now()).toISOString(), data: {} };
  const stamp = Math.floor(systemClock.now() / 1000);
  const send = async (options: { readonly secret: string; readonly timestamp: number }) =>
    deliver(url, await signWebhook(event, options), signal);
  const signed = await send({ secret, timestamp: stamp });
  if (signed.status === undefined) {
    return { name, status: 'failed', message: `${url} does not answer: ${messageOf(signed.error)}` };
  }
  const facts = { url, httpStatus: signed.status, durationMs: Math.round(signed.ms) };
  if (!signed.isTaken) {
    const why = EVENT_REFUSALS.includes(signed.status) ? ' Does it have the same secret?' : '';
    return { name, status: 'failed', message: `A signed event was answered with ${signed.status}.${why}`, ...facts };
  }
  const forged = await send({ secret: `not ${secret}`, timestamp: stamp });
  const old = await send({ secret, timestamp: stamp - OLD_S });
  const taken = [forged.isTaken ? 'a forged event' : '', old.isTaken ? 'an event of 301 s ago' : ''].filter(Boolean);
  if (taken.length > 0) {
    return {
      name,
      status: 'failed',
      message: `The receiver also takes ${taken.join(' and ')}. Verify events.`,
      ...facts,
    };
  }
  const message = `A signed event was answered with ${signed.status} in ${facts.durationMs} ms; a forged and an old one were refused.`;
  if (isPublic(url)) return { name, status: 'ok', message, ...facts };
  return { name, status: 'warning', message: `${message} The service itself needs a public https URL.`, ...facts };
}

async function deliver(
  url: string,
  { body, headers }: { readonly body: string; readonly headers: Record<string, string> },
  signal: AbortSignal,
): Promise<SentEvent> {
  const begun = systemClock.now();
  const late = new AbortController();
  const cancel = systemClock.after(PING_TIMEOUT_MS, () =>
    late.abort(new Error(`no answer within ${PING_TIMEOUT_MS / 1000} s`)),
  );
  try {
    const either = AbortSignal.any([signal, late.signal]);
    const response = await fetch(url, { method: 'POST', body, headers, redirect: 'manual', signal: either });
    await response.body?.cancel();
    return { status: response.status, isTaken: response.ok, ms: systemClock.now() - begun };
  } catch (error) {
    signal.throwIfAborted();
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    return { status: undefined, isTaken: false, ms: systemClock.now() - begun, error: cause };
  } finally {
    cancel();
  }
}

/** Whether the service can reach it, as far as the name tells. */
function isPublic(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  const isPrivate =
    /^(localhost|.*\.(local|internal|localhost)|127\..*|10\..*|192\.168\..*|169\.254\..*|172\.(1[6-9]|2\d|3[01])\..*|\[.*\])$/;
  return protocol === 'https:' && !isPrivate.test(hostname);
}
