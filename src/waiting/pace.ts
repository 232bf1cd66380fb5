import type { LaneLimiter, LaneSnapshot, RateLimiter } from '../limits/rate-limiter.js';
import { DOCUMENTED_LIMITS, READ_SHARE } from '../rules/limits.js';
import type { Clock } from '../runtime/clock.js';

/** The limiter that reads go through, if there is one, or how it is without. */
export type ReadLimiter = (RateLimiter & Partial<LaneLimiter>) | 'documented' | 'off';

/** What the pace needs to know of the rate limit of reads. */
type ReadLane = Pick<LaneSnapshot, 'limit' | 'windowMs' | 'nextFreeMs'>;

const DOCUMENTED: ReadLane = { ...DOCUMENTED_LIMITS['jobs.get'], nextFreeMs: 0 };
const OFF: ReadLane = { limit: Number.POSITIVE_INFINITY, windowMs: 1, nextFreeMs: 0 };

/**
 * Lets reads out at the waits' share of the limit in force. The limiter tells the limit, so one that is set, lifted or
 * changed later is followed. One that cannot tell, or fails, is taken for the documented limit.
 */
export class Pace {
  readonly #clock: Clock;
  readonly #limiter: ReadLimiter;
  /** Reads saved up while it is quiet, so that few jobs are read without delay. */
  #saved = Number.POSITIVE_INFINITY;
  #countedAt: number;
  #heldUntil = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, limiter: ReadLimiter) {
    this.#clock = clock;
    this.#limiter = limiter;
    this.#countedAt = clock.now();
  }

  /**
   * Milliseconds until a read may go out. Of the saved reads some are kept for `urgent` ones: a webhook is followed up at
   * once also while polls queue. `reading`: reads under way; when the lane is full, one at a time waits in it.
   */
  waitMs(urgent: boolean, reading: number): number {
    const now = this.#clock.now();
    const { limit, windowMs, nextFreeMs } = this.#lane();
    const heldMs = Math.max(0, this.#heldUntil - now);
    if (limit === Number.POSITIVE_INFINITY) return heldMs;
    const perMs = (READ_SHARE * limit) / windowMs;
    // With the share this stays within the limit in any window: 105 + 12 of 120.
    const most = Math.max(1, Math.floor(limit / 10));
    this.#saved = Math.min(most, this.#saved + Math.max(0, now - this.#countedAt) * perMs);
    this.#countedAt = now;
    const short = (urgent ? 1 : 1 + Math.floor(most / 3)) - this.#saved;
    // Whatever is a billionth short is rounding, and would make a timer of no length.
    const paceMs = short > 1e-9 ? short / perMs : 0;
    const laneMs = reading > 0 ? nextFreeMs : 0;
    return Math.max(heldMs, paceMs, laneMs);
  }

  /** Milliseconds until a read is free after `ahead` others, also in the rate limit itself. */
  freeInMs(ahead: number): number {
    const { limit, windowMs, nextFreeMs } = this.#lane();
    const aheadMs = limit === Number.POSITIVE_INFINITY ? 0 : (ahead * windowMs) / (READ_SHARE * limit);
    return Math.max(this.waitMs(true, 0) + aheadMs, nextFreeMs);
  }

  /** Counts one read. */
  take(): void {
    this.#saved--;
  }

  /** Lets nothing out for `ms` milliseconds: the limit was reached all the same, by others. */
  hold(ms: number): void {
    this.#heldUntil = Math.max(this.#heldUntil, this.#clock.now() + ms);
  }

  #lane(): ReadLane {
    if (this.#limiter === 'off') return OFF;
    if (this.#limiter === 'documented') return DOCUMENTED;
    try {
      return readLaneOf(this.#limiter) ?? DOCUMENTED;
    } catch {
      return DOCUMENTED;
    }
  }
}

/** The limit as the limiter tells it. It may be the caller's own, so nothing of the answer is taken for granted. */
function readLaneOf(limiter: RateLimiter & Partial<LaneLimiter>): ReadLane | undefined {
  const lane: Partial<LaneSnapshot> | undefined = limiter.lane
    ? limiter.lane('jobs.get')
    : limiter.snapshot?.()?.['jobs.get'];
  const { limit = Number.NaN, windowMs = Number.NaN, nextFreeMs = 0 } = lane ?? {};
  const isUsable = limit === Number.POSITIVE_INFINITY || (limit >= 1 && windowMs > 0);
  return isUsable ? { limit, windowMs, nextFreeMs: nextFreeMs > 0 ? nextFreeMs : 0 } : undefined;
}
