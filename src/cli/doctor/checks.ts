import {
  APIError,
  AuthenticationError,
  ConnectionError,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
  ServerError,
  TimeoutError,
} from '../../errors/index.js';
import { isRateLimited } from '../../rules/fate.js';
import { WEBHOOK_TOLERANCE_S as WINDOW_S } from '../../rules/limits.js';
import { systemClock, systemRandom } from '../../runtime/clock.js';
import { type Fields, isFields } from '../../schemas/envelope.js';
import { signWebhook } from '../../webhooks/index.js';
import { messageOf } from '../errors.js';
import { answerWithin } from '../session.js';
import type { Observe, Seen } from './observer.js';

/** How a check came out. */
export type CheckStatus = 'ok' | 'warning' | 'failed' | 'skipped';

/** One thing that was looked at. */
export interface Check {
  readonly name: 'service' | 'clock' | 'key' | 'scopes' | 'webhook';
  readonly status: CheckStatus;
  /** What was seen, and what to do about it. */
  readonly message: string;
  readonly [fact: string]: unknown;
}

/** Says how a check came out. */
const about =
  (name: Check['name']) =>
  (status: CheckStatus, message: string, facts: Fields = {}): Check => ({ name, status, message, ...facts });

const NOTED_SKEW_S = 30;

/** Whether the service answers GET /v1/models, which needs no key. */
export function checkService({ status, data, durationMs, error }: Seen): Check {
  const says = about('service');
  if (isRateLimited(error)) {
    return says('failed', `GET /v1/models answers 429. ${comeBack(error.retryAfterMs)}`, { httpStatus: status });
  }
  const list = isFields(data) ? data.models : undefined;
  const models = Array.isArray(list) ? list.length : 0;
  if (models > 0)
    return says('ok', `It answers in ${Math.round(durationMs)} ms and lists ${models} models.`, { models });
  if (ConnectionError.isInstance(error) || TimeoutError.isInstance(error)) {
    return says('failed', `No answer: ${messageOf(error)}`);
  }
  const what = status === undefined ? messageOf(error) : `GET /v1/models answers ${status} without a list of models.`;
  return says('failed', `${what} Is this the base URL of the service?`, { httpStatus: status });
}

/** This machine's clock against the service's, as its Date header tells it. */
export function checkClock({ headers, at }: Seen): Check {
  const says = about('clock');
  const date = Date.parse(headers.date ?? '');
  if (Number.isNaN(date)) return says('skipped', 'The service sends no Date header.');
  // The header has whole seconds.
  const skewS = Math.round((at - date - 500) / 1000);
  const off = Math.abs(skewS);
  const direction = skewS < 0 ? 'behind' : 'ahead of';
  const message = `This machine is ${off} s ${direction} the service; webhooks are refused from ${WINDOW_S} s on.`;
  if (off >= WINDOW_S) return says('failed', `${message} Set the clock.`, { skewS });
  return says(off >= NOTED_SKEW_S ? 'warning' : 'ok', message, { skewS });
}

/** Whether the key is taken, as the answer to an unknown job tells. */
export function keyCheck({ status, error }: Seen, hasKey: boolean): Check {
  const says = about('key');
  if (!hasKey) return says('failed', 'GEN_API_KEY is not set.');
  const code = APIError.isInstance(error) ? error.code : undefined;
  if (AuthenticationError.isInstance(error)) return says('failed', 'The key is wrong or revoked.', { code });
  if (code === 'account_not_active') {
    return says('failed', 'The account is suspended. Contact the support of the service.', { code });
  }
  if (NotFoundError.isInstance(error) || code === 'scope_missing') return says('ok', 'The key is valid.');
  if (isRateLimited(error)) {
    return says('failed', `The key could not be checked: 429. ${comeBack(error.retryAfterMs)}`, { code });
  }
  return says('failed', `An unknown job was answered with ${status ?? messageOf(error)}.`, { code });
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

/** Reads, and requests that the document says can only be refused: no field that a job, a character or an upload needs is in them. */
const OPERATIONS = [
  ['GET', '/v1/characters'],
  ['GET', '/v1/voices'],
  ['POST', '/v1/characters'],
  ['POST', '/v1/images'],
  ['POST', '/v1/videos'],
  ['POST', '/v1/video-edits'],
  ['DELETE', '/v1/characters/{id}'],
  ['POST', '/v1/uploads'],
  ['DELETE', '/v1/uploads/{id}'],
] as const;

/** Asks for what the key may do, where the answers so far have not told. */
export async function permissionsOf(observe: Observe, known: Readonly<Record<string, Seen>>): Promise<Permission[]> {
  const permissions = Object.entries(known).map(([operation, seen]) => permissionIn(operation, seen));
  for (const [method, path] of OPERATIONS) {
    const request = { method, path: path.replace('{id}', NO_ID), ...(method === 'POST' && { body: {} }) };
    const seen = await observe((client, options) => client.request(request, options));
    permissions.push(permissionIn(`${method} ${path}`, seen));
  }
  return permissions;
}

/** Errors that come before the service has looked at the key's scopes. */
const TELLS_NOTHING = [AuthenticationError, PermissionDeniedError, RateLimitError, ServerError];

function permissionIn(operation: string, { status, error }: Seen): Permission {
  const code = APIError.isInstance(error) ? error.code : undefined;
  if (code === 'scope_missing') return { operation, allowed: false, code };
  const isTold = status !== undefined && !TELLS_NOTHING.some((kind) => kind.isInstance(error));
  return { operation, allowed: isTold ? true : undefined, code };
}

/** What the key may not do. */
export function checkScopes(permissions: readonly Permission[]): Check {
  const says = about('scopes');
  const operations = (wanted: boolean | undefined) =>
    permissions.flatMap(({ operation, allowed }) => (allowed === wanted ? [operation] : [])).join(', ');
  const [denied, untold] = [operations(false), operations(undefined)];
  if (denied !== '') return says('warning', `The key may not: ${denied}.`, { permissions });
  if (untold !== '') return says('warning', `The answers do not tell of: ${untold}.`, { permissions });
  return says('ok', 'The key may do everything that this package calls.', { permissions });
}

function comeBack(retryAfterMs: number | undefined): string {
  const when = retryAfterMs ? `${Math.ceil(retryAfterMs / 1000)} s` : 'a minute';
  return `The rate limit of the account is used up. Run this command again in ${when}.`;
}

/** A receiver to try. */
export interface Receiver {
  readonly url: string;
  readonly secret: string | undefined;
  readonly signal: AbortSignal;
}

const PING_TIMEOUT_MS = 10_000;
const OLD_S = 301;
/** No receiver does anything for this type: those of the service begin with "job.". */
const PING_TYPE = 'doctor.ping';

/**
 * Sends a receiver an event that is signed, one that is forged and one that is old, all of a type that means nothing to it. A
 * good receiver takes the first and refuses the others.
 */
export async function checkWebhook({ url, secret, signal }: Receiver): Promise<Check> {
  const says = about('webhook');
  if (secret === undefined) return says('failed', 'GEN_WEBHOOK_SECRET is not set, so no event can be signed.');
  const id = `evt_doctor_${systemRandom.uuid()}`;
  const event = { object: 'event', id, type: PING_TYPE, created: new Date(systemClock.now()).toISOString(), data: {} };
  const stamp = Math.floor(systemClock.now() / 1000);
  const send = async (options: { readonly secret: string; readonly timestamp: number }) => {
    const init = { method: 'POST', ...(await signWebhook(event, options)), redirect: 'manual' } as const;
    return answerWithin(PING_TIMEOUT_MS, signal, async (signal) => {
      const response = await fetch(url, { ...init, signal });
      await response.body?.cancel();
      return response;
    });
  };
  const begun = systemClock.now();
  const signed = await send({ secret, timestamp: stamp }).catch((error: unknown) => {
    signal.throwIfAborted();
    return error instanceof Error && error.cause instanceof Error ? error.cause : error;
  });
  if (!(signed instanceof Response)) return says('failed', `${url} does not answer: ${messageOf(signed)}`);
  const { status } = signed;
  const facts = { url, httpStatus: status, durationMs: Math.round(systemClock.now() - begun) };
  if (!signed.ok) {
    return says('failed', `A signed event was answered with ${status}. Does it have the same secret?`, facts);
  }
  const isTaken = async (options: { readonly secret: string; readonly timestamp: number }) => {
    const response = await send(options).catch(() => undefined);
    signal.throwIfAborted();
    return response?.ok === true;
  };
  const taken: string[] = [];
  if (await isTaken({ secret: `not ${secret}`, timestamp: stamp })) taken.push('a forged event');
  if (await isTaken({ secret, timestamp: stamp - OLD_S })) taken.push('an event of 301 s ago');
  if (taken.length > 0) return says('failed', `The receiver also takes ${taken.join(' and ')}. Verify events.`, facts);
  const message = `A signed event was answered with ${status} in ${facts.durationMs} ms; a forged and an old one were refused.`;
  if (isPublic(url)) return says('ok', message, facts);
  return says('warning', `${message} The service itself needs a public https URL.`, facts);
}

/** Whether the service can reach it, as far as the name tells. */
function isPublic(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  const isPrivate =
    /^(localhost|.*\.(local|internal|localhost)|127\..*|10\..*|192\.168\..*|169\.254\..*|172\.(1[6-9]|2\d|3[01])\..*|\[.*\])$/;
  return protocol === 'https:' && !isPrivate.test(hostname);
}
