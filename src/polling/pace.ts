import type { Clock } from '../clock.js';
import { DOCUMENTED_LIMITS } from '../limits/in-process-limiter.js';
import type { LaneLimiter, LaneSnapshot, RateLimiter } from '../limits/rate-limiter.js';

/** The limiter that reads go through, if there is one, or how it is without. */
export type ReadLimiter = (RateLimiter & Partial<LaneLimiter>) | 'documented' | 'off';

/** The share of the limit that waits use. The rest is left for the caller's own reads. */
const SHARE = 7 / 8;

/**
 * Lets reads out at the waits' share of the limit in force. The limiter tells the limit, so one that is set, lifted or
 * changed later is followed. One that cannot tell is taken for the documented limit.
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
    const perMs = (SHARE * limit) / windowMs;
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

  /** Counts one read. */
  take(): void {
    this.#saved--;
  }

  /** Lets nothing out for `ms` milliseconds: the limit was reached all the same, by others. */
  hold(ms: number): void {
    this.#heldUntil = Math.max(this.#heldUntil, this.#clock.now() + ms);
  }

  #lane(): Pick<LaneSnapshot, 'limit' | 'windowMs' | 'nextFreeMs'> {
    if (this.#limiter === 'off') return { limit: Number.POSITIVE_INFINITY, windowMs: 1, nextFreeMs: 0 };
    const lane = this.#limiter === 'documented' ? undefined : this.#limiter.snapshot?.()['jobs.get'];
    // A limiter of an older copy of the package tells less.
    return lane?.limit === undefined ? { ...DOCUMENTED_LIMITS['jobs.get'], nextFreeMs: 0 } : lane;
  }
}
