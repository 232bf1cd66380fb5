import { RateLimitError } from '../errors/index.js';
import type { AnyLimiter, LaneWait, RateLimiter, Release } from '../limits/rate-limiter.js';
import { abortable, onAbort } from '../runtime/abort.js';
import type { Call } from './call.js';

/** How long a limiter that does not say whether a slot is free may take to grant one under `rateLimit: 'throw'`. */
const GRACE_MS = 250;

/** Waits for a slot. Resolves with the function that releases it. */
export function waitForSlot(
  limiter: AnyLimiter,
  { lane = '', signal }: Call<unknown>,
  onWait?: (wait: LaneWait) => void,
): Promise<Release> {
  const slot = limiter.acquire(lane, signal, onWait);
  return signal ? orRelease(slot, signal) : slot;
}

/** A limiter may ignore its signal, and an abort may come at the very turn in which a slot is granted. */
async function orRelease(slot: Promise<Release>, signal: AbortSignal): Promise<Release> {
  const release = await abortable(slot, signal, (late) => late('unused'));
  if (!signal.aborted) return release;
  release('unused');
  throw signal.reason;
}

/** Takes a slot that is free now, or throws a RateLimitError that says when one will be free. */
export async function takeSlot(limiter: AnyLimiter, call: Call<unknown>): Promise<Release> {
  const { lane = '', method, url, idempotencyKey, turn } = call;
  const taken = limiter.tryAcquire
    ? limiter.tryAcquire(lane)
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
async function takeSoon(
  limiter: RateLimiter,
  { lane = '', signal, core }: Call<unknown>,
): Promise<Release | number | undefined> {
  const patience = new AbortController();
  const giveUp = () => patience.abort();
  let waitMs: number | undefined;
  const onWait = (wait: LaneWait) => {
    waitMs = wait.waitMs;
    giveUp();
  };
  const cancel = core.clock.after(GRACE_MS, giveUp);
  const forget = onAbort(signal, giveUp);
  try {
    return await orRelease(limiter.acquire(lane, patience.signal, onWait), patience.signal);
  } catch (error) {
    signal?.throwIfAborted();
    if (patience.signal.aborted) return waitMs;
    throw error;
  } finally {
    cancel();
    forget();
  }
}
