import { markPassing } from '../../errors/gen-error.js';
import { GenError, RateLimitError } from '../../errors/index.js';
import { isRateLimited } from '../../rules/fate.js';
import { callObserver, reasonOf } from '../../runtime/callbacks.js';
import { abortable, onAbort } from '../../runtime/deadline.js';
import { show } from '../../schemas/show.js';
import type { AnyLimiter, LaneWait, Release } from '../../store/rate-limiter.js';
import type { Call, Core, Layer, Slot } from '../call.js';
import { askKey } from './attempt.js';

/** How long a 429 that does not say how long pauses its lane. */
const UNSTATED_PAUSE_MS = 1_000;
/** How long a limiter that does not say whether a slot is free may take to grant one under `rateLimit: 'throw'`. */
const GRANT_GRACE_MS = 250;

/** Whether the call waits for its lane in the account's own limiter. */
export function waitsInLane({ lane, core: { config } }: Call<unknown>): boolean {
  return lane !== undefined && config.limiter === undefined && config.rateLimit === 'wait';
}

/**
 * Takes a slot of the call's lane before the attempt, and releases it when the headers of the response have come: the
 * window of a slot begins there. A 429 pauses the lane before its slot is given to the next call.
 */
export const inLane: Layer = async (call, next) => {
  const { core } = call;
  // Whose limits count is not known before a key function has been asked.
  const isKnown = !core.config.rotates || core.limiter() !== undefined;
  const secret = isKnown ? undefined : await askKey(call);
  const limiter = core.limiter();
  if (!limiter) return next(call);
  let release: Release | undefined = await slotIn(limiter, call);
  const slot: Slot = {
    isUsed: false,
    end() {
      // As used from the moment at which the request goes out, unless the service did not count it.
      release?.(this.isUsed ? undefined : 'unused');
      release = undefined;
    },
  };
  try {
    return await next({ ...call, turn: { ...call.turn, secret, slot } });
  } catch (error) {
    pauseLane(limiter, call, error);
    throw error;
  } finally {
    slot.end();
  }
};

/** Throws a RateLimitError where the lane of a call that never waits is full. Takes no slot. */
export async function requireRoom(call: Call<unknown>): Promise<void> {
  const { core, lane } = call;
  const limiter = lane === undefined || core.config.rateLimit === 'off' ? undefined : core.limiter();
  if (limiter) (await takeSlot(limiter, call))('unused');
}

/** Takes a slot, at once if one is free. */
async function slotIn(limiter: AnyLimiter, call: Call<unknown>): Promise<Release> {
  try {
    const free = call.neverWaits ? await takeSlot(limiter, call) : freeSlot(limiter, call);
    return typeof free === 'function' ? free : await queued(limiter, call);
  } catch (cause) {
    if (call.signal?.aborted || GenError.isInstance(cause)) throw cause;
    const error = new GenError(`limiter failed: ${reasonOf(cause)}`, { cause });
    // It is asked again before the next attempt, so it does not end a wait.
    markPassing(error);
    throw error;
  }
}

/** Waits for a slot. The time that it takes is noted for the listeners. */
async function queued(limiter: AnyLimiter, call: Call<unknown>): Promise<Release> {
  const { core, trace } = call;
  const observer = core.observer();
  const onWait = observer && ((wait: LaneWait) => observer.wait({ callId: trace?.callId ?? '', ...wait }));
  const startMs = core.clock.now();
  try {
    return await waitForSlot(limiter, call, onWait);
  } finally {
    if (trace) trace.laneWaitMs += core.clock.now() - startMs;
  }
}

/** Pauses the lane for everyone on it, unless the 429 asks for more than a call would wait: then each call gets its own. */
function pauseLane(limiter: AnyLimiter, { core, lane }: Call<unknown>, error: unknown): void {
  if (lane === undefined || !isRateLimited(error)) return;
  const { retryAfterMs = UNSTATED_PAUSE_MS } = error;
  if (retryAfterMs > core.config.maxRetryAfterMs) return;
  callObserver(
    () => limiter.pause(lane, retryAfterMs),
    (reason) => core.warn(`limiter.pause failed: ${reason}`),
  );
}

/** Waits for a slot. Resolves with the function that releases it. */
function waitForSlot(limiter: AnyLimiter, call: Call<unknown>, onWait?: (wait: LaneWait) => void): Promise<Release> {
  const { signal } = call;
  const slot = askForSlot(limiter, call, signal, onWait);
  return signal ? orRelease(slot, signal) : slot;
}

/** Asks for a slot. A limiter that grants anything but a function is refused before the call is sent; nothing needs no release. */
async function askForSlot(
  limiter: AnyLimiter,
  { core, lane = '' }: Call<unknown>,
  signal: AbortSignal | undefined,
  onWait?: (wait: LaneWait) => void,
): Promise<Release> {
  const granted = await limiter.acquire(lane, signal, onWait);
  if (typeof granted === 'function') return safeRelease(granted, core);
  if (granted === undefined) return () => {};
  throw new GenError(
    `limiter.acquire must resolve with the function that releases the slot, not ${show(granted)}. Let it return one, for example () => {}.`,
  );
}

/** A slot that is free now, of a limiter that can tell. */
function freeSlot(limiter: AnyLimiter, { core, lane = '' }: Call<unknown>): Release | number | undefined {
  const free = limiter.tryAcquire?.(lane);
  return core.config.limiter && typeof free === 'function' ? safeRelease(free, core) : free;
}

/** A release that fails ends no call, because the job may exist by then. */
function safeRelease(release: Release, { warn }: Core): Release {
  const failed = (reason: string) => warn(`the release of a slot of limiter failed: ${reason}`);
  return (outcome) => callObserver(() => release(outcome), failed);
}

/** A limiter may ignore its signal, and an abort may come at the very turn in which a slot is granted. */
async function orRelease(slot: Promise<Release>, signal: AbortSignal): Promise<Release> {
  const release = await abortable(slot, signal, (late) => late('unused'));
  if (!signal.aborted) return release;
  release('unused');
  throw signal.reason;
}

/** Takes a slot that is free now, or throws a RateLimitError that says when one will be free. */
async function takeSlot(limiter: AnyLimiter, call: Call<unknown>): Promise<Release> {
  const { lane = '', method, url, idempotencyKey, turn } = call;
  const taken = limiter.tryAcquire
    ? freeSlot(limiter, call)
    : await (limiter.tryShared ? tryShared(limiter.tryShared(lane), call) : takeSoon(limiter, call));
  if (typeof taken === 'function') return taken;
  const when = taken === undefined ? '' : ` The next slot is free in ${Math.ceil(taken)} ms.`;
  throw new RateLimitError(`The limit of ${lane} is reached, so the call was not sent.${when}`, {
    status: 429,
    code: 'rate_limited',
    recovery: 'wait_and_retry',
    method,
    url,
    idempotencyKey,
    attempts: Math.max(0, turn.number - 1),
    retryAfterMs: taken,
  });
}

/** A slot that comes after an abort is given back. */
function tryShared(slot: Promise<Release | number>, { signal }: Call<unknown>): Promise<Release | number> {
  return abortable(slot, signal, (late) => (typeof late === 'function' ? late('unused') : undefined));
}

/** Gives up as soon as the limiter says how long the call would wait, and otherwise after a moment. */
async function takeSoon(limiter: AnyLimiter, call: Call<unknown>): Promise<Release | number | undefined> {
  const { signal, core } = call;
  const patience = new AbortController();
  const giveUp = () => patience.abort();
  let waitMs: number | undefined;
  const onWait = (wait: LaneWait) => {
    waitMs = wait.waitMs;
    giveUp();
  };
  const cancel = core.clock.after(GRANT_GRACE_MS, giveUp);
  const forget = onAbort(signal, giveUp);
  try {
    return await orRelease(askForSlot(limiter, call, patience.signal, onWait), patience.signal);
  } catch (error) {
    signal?.throwIfAborted();
    if (patience.signal.aborted) return waitMs;
    throw error;
  } finally {
    cancel();
    forget();
  }
}
