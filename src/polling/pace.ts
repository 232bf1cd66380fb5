import type { Clock } from '../clock.js';

/** The documented reads of jobs a minute (spec: Limits). */
const READS_PER_MS = 120 / 60_000;
/** The watcher's share of them: the rest stays free for the caller's own reads. */
const SHARE = 0.875;
/**
 * Reads saved up while it is quiet, so that few jobs are read without delay. With the share they stay below the limit in
 * any minute: 105 + 12 < 120.
 */
const SAVED = 12;
/** Of those, kept for jobs whose end was announced: a webhook is followed up at once also while polls queue. */
const KEPT = 4;

/** Reads per millisecond that all waits under one account share. */
export const POLLS_PER_MS = READS_PER_MS * SHARE;

/** Lets reads out at the watcher's share of the limit, whichever limiter the client has. */
export class Pace {
  readonly #clock: Clock;
  #saved = SAVED;
  #countedAt: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#countedAt = clock.now();
  }

  /** Milliseconds until a read may go out. */
  waitMs(urgent: boolean): number {
    const now = this.#clock.now();
    if (now > this.#countedAt) {
      this.#saved = Math.min(SAVED, this.#saved + (now - this.#countedAt) * POLLS_PER_MS);
      this.#countedAt = now;
    }
    const short = (urgent ? 1 : 1 + KEPT) - this.#saved;
    // Whatever is a billionth short is rounding, and would make a timer of no length.
    return short > 1e-9
      ? Math.max(this.#countedAt - now, 0) + short / POLLS_PER_MS
      : Math.max(this.#countedAt - now, 0);
  }

  /** Counts one read. */
  take(): void {
    this.#saved--;
  }

  /** Lets nothing out for `ms` milliseconds: the limit was met all the same, by others. */
  hold(ms: number): void {
    this.#countedAt = Math.max(this.#countedAt, this.#clock.now() + ms);
  }
}
