import { systemClock } from '../../runtime/clock.js';
import { systemRandom } from '../../runtime/random.js';
import { signWebhook } from '../../webhooks/index.js';
import { messageOf } from '../wording.js';
import type { Check } from './checks.js';

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
