import { GenError } from '../../errors/index.js';
import { markPassing } from '../../errors/marks.js';
import type { AnyLimiter, LaneWait, Release } from '../../limits/rate-limiter.js';
import { isRateLimited } from '../../rules/fate.js';
import { reasonOf } from '../../runtime/callbacks.js';
import type { Call, Layer, Slot } from '../call.js';
import { takeSlot, waitForSlot } from '../lane-gate.js';
import { askKey } from './attempt.js';

/** How long a 429 that does not say how long pauses its lane. */
const UNSTATED_PAUSE_MS = 1_000;

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
  const slot = slotOf(await slotIn(limiter, call));
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
    const free = call.neverWaits ? await takeSlot(limiter, call) : limiter.tryAcquire?.(call.lane ?? '');
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

/** Releases once: as used from the moment at which the request goes out, unless the service did not count it. */
function slotOf(taken: Release): Slot {
  let release: Release | undefined = taken;
  return {
    isUsed: false,
    end() {
      release?.(this.isUsed ? undefined : 'unused');
      release = undefined;
    },
  };
}

/** Pauses the lane for everyone on it, unless the 429 asks for more than a call would wait: then each call is told. */
function pauseLane(limiter: AnyLimiter, { core, lane }: Call<unknown>, error: unknown): void {
  if (lane === undefined || !isRateLimited(error)) return;
  const { retryAfterMs = UNSTATED_PAUSE_MS } = error;
  if (retryAfterMs <= core.config.maxRetryAfterMs) limiter.pause(lane, retryAfterMs);
}
