import type { Clock } from '../clock.js';
import { RateLimitError } from '../errors/index.js';
import type { LaneLimiter, RateLimiter } from '../limits/rate-limiter.js';
import type { Observer } from './observe.js';

/** A call that wants a slot. */
export interface Entry {
  readonly lane: string;
  readonly method: string;
  readonly url: string;
  readonly idempotencyKey: string | undefined;
  readonly attempts: number;
  readonly signal: AbortSignal | undefined;
  readonly clock: Clock;
}

/** Lets a slot go. */
export type Release = () => void;

/** The limiter's own abilities, where it has more than the port asks for. */
type AnyLimiter = RateLimiter & Partial<LaneLimiter>;

/** How long a limiter that cannot say whether a slot is free is given to grant one under `rateLimit: 'throw'`. */
const GRACE_MS = 250;

/** Waits for a slot; gives the function that lets it go. */
export function waitForSlot(limiter: AnyLimiter, entry: Entry, observer?: Observer): Release | Promise<Release> {
  const { lane, signal } = entry;
  const taken = limiter.tryAcquire?.(lane);
  if (typeof taken === 'function') return taken;
  const slot = limiter.acquire(lane, signal, observer && ((wait) => observer.wait(wait)));
  return signal ? untilAbort(slot, signal) : slot;
}

/** Takes a slot that is free now, or throws a RateLimitError that says when one will be. */
export async function takeSlot(limiter: AnyLimiter, entry: Entry): Promise<Release> {
  const taken = limiter.tryAcquire ? limiter.tryAcquire(entry.lane) : await briefly(limiter, entry);
  if (typeof taken === 'function') return taken;
  const { lane, method, url, idempotencyKey, attempts } = entry;
  const when = taken === undefined ? '' : ` A slot is free in ${Math.ceil(taken)} ms.`;
  throw new RateLimitError(`The limit of ${lane} is used up; nothing was sent.${when}`, {
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

/** A limiter that forgets its signal must not hold up an abort; a slot that comes too late is let go. */
function untilAbort(slot: Promise<Release>, signal: AbortSignal): Promise<Release> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    const settled = () => signal.removeEventListener('abort', abort);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    slot.finally(settled).then((release) => (signal.aborted ? release() : resolve(release)), reject);
  });
}

async function briefly(limiter: RateLimiter, { lane, clock }: Entry): Promise<Release | undefined> {
  const patience = new AbortController();
  const cancel = clock.after(GRACE_MS, () => patience.abort());
  try {
    return await untilAbort(limiter.acquire(lane, patience.signal), patience.signal);
  } catch (error) {
    if (patience.signal.aborted) return undefined;
    throw error;
  } finally {
    cancel();
  }
}
