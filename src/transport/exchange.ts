import { sleep } from '../clock.js';
import { APIError, ConnectionError, TimeoutError } from '../errors/index.js';
import type { Attempt, Wiring } from './attempt.js';
import { type AttemptGuard, createAttemptGuard } from './attempt-guard.js';
import { type Call, eventOf } from './call.js';
import { documentedStatus, requestIdOf } from './decode-error.js';
import { type Entry, type Release, takeSlot, waitForSlot } from './lane-gate.js';
import { type RetryPlan, withRetries } from './retry-policy.js';
import { scrubCause, scrubText } from './scrub.js';
import { follow, NetworkFailure } from './send-attempt.js';

/** How long a 429 that does not say how long holds up its lane. */
const UNSTATED_PAUSE_MS = 1_000;

/** Reads the answer of an attempt; throws what the attempt has failed with. */
export type Read<T> = (response: Response, attempt: Attempt) => Promise<T>;

/** Sends the call until an attempt is read without an error or the policy gives up. */
export async function exchange<T>(wiring: Wiring, call: Call, read: Read<T>): Promise<T> {
  call.signal?.throwIfAborted();
  try {
    // Most calls succeed at once and need no more than this.
    return await attemptOnce(wiring, { call, number: 1, notBefore: 0 }, read);
  } catch (first) {
    return retried(wiring, call, { read, first });
  }
}

/** Sends the call again after its `first` failure, as long as the policy wants it. */
function retried<T>(
  wiring: Wiring,
  call: Call,
  { read, first }: { readonly read: Read<T>; readonly first: unknown },
): Promise<T> {
  const { config, clock, observer } = wiring;
  const { maxRetries, repeatable, signal } = call;
  let notBefore = 0;
  let sent = 1;
  const pause = async (plan: RetryPlan, error: Error) => {
    if (!plan.limited) {
      observer?.retry({ ...eventOf(call, sent), delayMs: plan.delayMs, error });
      return sleep(clock, plan.delayMs, signal);
    }
    // The account's own limiter holds up the lane by itself; another one may not.
    if (!(holdsLane(wiring, call) && APIError.isInstance(error) && error.retryAfterMs)) {
      notBefore = clock.now() + plan.delayMs;
    }
  };
  const attempt = (number: number) => {
    if (number === 1) return Promise.reject(first);
    sent = number;
    return attemptOnce(wiring, { call, number, notBefore }, read);
  };
  const { maxRetryAfterMs, rateLimit } = config;
  return withRetries(attempt, {
    maxRetries,
    maxRetryAfterMs,
    waits: rateLimit !== 'throw',
    repeatable,
    signal,
    pause,
  });
}

function holdsLane({ config }: Wiring, call: Call): boolean {
  return call.lane !== undefined && !config.limiter && config.rateLimit === 'wait';
}

interface Turn {
  readonly call: Call;
  readonly number: number;
  /** The time before which the service wants no more. */
  readonly notBefore: number;
}

async function attemptOnce<T>(wiring: Wiring, turn: Turn, read: Read<T>): Promise<T> {
  const { call, number } = turn;
  const { clock, observer, ring } = wiring;
  let key = needsKeyFirst(wiring, call) ? await firstKey(wiring, turn) : undefined;
  const entered = enter(wiring, turn);
  let slot = entered instanceof Promise ? await entered : entered;
  const release = () => {
    slot?.();
    slot = undefined;
  };
  let guard: AttemptGuard | undefined;
  let start: number | undefined;
  let response: Response | undefined;
  let failure: unknown;
  try {
    const waitMs = turn.notBefore - clock.now();
    if (waitMs > 0) {
      observer?.wait({ lane: call.lane, waitMs, queued: 0, reason: 'pause' });
      await sleep(clock, waitMs, call.signal);
    }
    guard = newGuard(wiring, turn);
    const asked = call.isPublic || !call.toService ? undefined : (key ?? ring.ask(call));
    key = typeof asked === 'object' ? await guard.race(asked) : asked;
    start = clock.now();
    observer?.request(eventOf(call, number));
    const attempt = { call, number, guard, secret: key };
    response = await follow(wiring, attempt);
    release();
    const result = await read(response, attempt);
    if (call.streams) guard = undefined;
    return result;
  } catch (error) {
    failure = error;
    if (error instanceof NetworkFailure) {
      failure = guard?.signal.aborted
        ? guard.signal.reason
        : asConnectionError(error, { ...turn, secret: ring.last() });
    }
    pauseLane(wiring, call, failure);
    throw failure;
  } finally {
    release();
    guard?.end();
    if (observer && start !== undefined) {
      const event = { status: response?.status, requestId: response && requestIdOf(response.headers), error: failure };
      observer.response({ ...eventOf(call, number), ...event, durationMs: clock.now() - start });
    }
  }
}

/** The service's 429 holds up everyone on the lane, unless it asks for more than a call would wait: then each is told. */
function pauseLane({ config, ring }: Wiring, { lane }: Call, failure: unknown): void {
  if (lane === undefined || config.rateLimit === 'off') return;
  if (!APIError.isInstance(failure) || documentedStatus(failure) !== 429) return;
  const { retryAfterMs = UNSTATED_PAUSE_MS } = failure;
  if (retryAfterMs <= config.maxRetryAfterMs) (config.limiter ?? ring.known()?.limiter)?.pause(lane, retryAfterMs);
}

/** Whether a key function has to be asked before it is known whose limits count. */
function needsKeyFirst({ config, ring }: Wiring, { lane }: Call): boolean {
  return lane !== undefined && config.rateLimit !== 'off' && !config.limiter && config.rotates && !ring.known();
}

/** A slot of the call's lane: at once where one is free. */
function enter(
  { clock, config, observer, ring }: Wiring,
  { call, number }: Turn,
): Release | Promise<Release> | undefined {
  const { lane, method, shownUrl: url, idempotencyKey, signal } = call;
  const limiter = config.limiter ?? ring.known()?.limiter;
  if (lane === undefined || config.rateLimit === 'off' || !limiter) return undefined;
  const entry: Entry = { lane, method, url, idempotencyKey, attempts: number - 1, signal, clock };
  return config.rateLimit === 'throw' ? takeSlot(limiter, entry) : waitForSlot(limiter, entry, observer);
}

function firstKey(wiring: Wiring, turn: Turn): Promise<string> {
  const guard = newGuard(wiring, turn);
  const asked = async () => wiring.ring.ask(turn.call);
  return guard.race(asked()).finally(guard.end);
}

function newGuard({ clock }: Wiring, { call, number: attempts }: Turn): AttemptGuard {
  const { method, shownUrl: url, idempotencyKey, timeoutMs, signal } = call;
  const late = () =>
    new TimeoutError(`${method} ${url} gave no whole answer within ${timeoutMs} ms (timeoutMs).`, {
      method,
      url,
      idempotencyKey,
      attempts,
      timeoutMs,
    });
  return createAttemptGuard({ clock, timeoutMs, signal, late });
}

/** What a broken connection becomes, in whichever wording fetch has put it. */
export function asConnectionError(thrown: unknown, { call, number, secret }: Omit<Attempt, 'guard'>): ConnectionError {
  const { method, shownUrl: url, idempotencyKey } = call;
  const cause = scrubCause(thrown instanceof NetworkFailure ? thrown.cause : thrown, secret);
  const why = cause instanceof Error ? innermost(cause) : String(cause);
  return new ConnectionError(`${method} ${url} got no whole answer: ${scrubText(why, secret)}`, {
    method,
    url,
    idempotencyKey,
    attempts: number,
    cause,
  });
}

/** The message that says most: Node's "fetch failed" hides the reason in its cause. */
function innermost(error: Error): string {
  return error.cause instanceof Error ? innermost(error.cause) : error.message || error.name;
}
