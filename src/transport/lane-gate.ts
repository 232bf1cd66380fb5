import { abortable } from '../abort.js';
import type { Clock } from '../clock.js';
import { RateLimitError } from '../errors/index.js';
import type { LaneLimiter, LaneWait, RateLimiter, Release } from '../limits/rate-limiter.js';

/** A call that needs a slot of its lane. */
export interface SlotRequest {
  readonly lane: string;
  readonly method: string;
  readonly url: string;
  readonly idempotencyKey: string | undefined;
  readonly attempts: number;
  readonly signal: AbortSignal | undefined;
  readonly clock: Clock;
  /** Told when the call has to queue. */
  readonly onWait?: ((wait: LaneWait) => void) | undefined;
}

/** A limiter with whatever it can do beyond the port. */
type AnyLimiter = RateLimiter & Partial<LaneLimiter>;

/** How long a limiter that does not say whether a slot is free may take to grant one under `rateLimit: 'throw'`. */
const GRACE_MS = 250;

/** Waits for a slot. Gives the function that releases it. */
export function waitForSlot(limiter: AnyLimiter, request: SlotRequest): Release | Promise<Release> {
  const { lane, signal, onWait } = request;
  const taken = limiter.tryAcquire?.(lane);
  if (typeof taken === 'function') return taken;
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
export async function takeSlot(limiter: AnyLimiter, request: SlotRequest): Promise<Release> {
  const taken = limiter.tryAcquire ? limiter.tryAcquire(request.lane) : await takeSoon(limiter, request);
  if (typeof taken === 'function') return taken;
  const { lane, method, url, idempotencyKey, attempts } = request;
  const when = taken === undefined ? '' : ` The next slot is free in ${Math.ceil(taken)} ms.`;
  throw new RateLimitError(`The limit of ${lane} is reached, so the call was not sent.${when}`, {
    status: 429,
    code: 'rate_limited',
    recovery: 'wait_and_retry',
    method,
    url,
    idempotencyKey,
    attempts,
    retryAfterMs: taken,
  });
}

/** Gives up as soon as the limiter says how long the call would wait, and otherwise after a moment. */
async function takeSoon(
  limiter: RateLimiter,
  { lane, signal, clock }: SlotRequest,
): Promise<Release | number | undefined> {
  const patience = new AbortController();
  const giveUp = () => patience.abort();
  let waitMs: number | undefined;
  const onWait = (wait: LaneWait) => {
    waitMs = wait.waitMs;
    giveUp();
  };
  const cancel = clock.after(GRACE_MS, giveUp);
  signal?.addEventListener('abort', giveUp, { once: true });
  try {
    return await orRelease(limiter.acquire(lane, patience.signal, onWait), patience.signal);
  } catch (error) {
    signal?.throwIfAborted();
    if (patience.signal.aborted) return waitMs;
    throw error;
  } finally {
    cancel();
    signal?.removeEventListener('abort', giveUp);
  }
}
