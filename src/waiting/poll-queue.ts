// The jobs that are due for a read: which one is next, and when.

import { type Rate, type RateLimitName, READ_SHARE } from '../rules/limits.js';
import { type Candidate, type Model, rankOf } from '../rules/read-order.js';

export interface Ranked extends Candidate {
  dueMs: number;
  /** What is known of the jobs of its model; all of them share it. */
  of: { model: Model };
  /** Above 0 when it was announced as final: so many reads follow at short intervals. */
  eager: number;
  /** Whether nobody waits for the read: it is made when no other is due. */
  readonly isChargeOnly: boolean;
}

export interface PollLimits {
  look(name: RateLimitName): Rate & {
    /** Milliseconds until a slot is free; 0 when one is. */
    readonly nextFreeMs: number;
  };
}

export const NO_LIMITS: PollLimits = { look: () => ({ limit: Number.POSITIVE_INFINITY, windowMs: 1, nextFreeMs: 0 }) };

/** The longest that a rate limit is left alone after a 429. */
const MAX_HOLD_MS = 60_000;

/** The jobs that are due under one rate limit. They are let out at the waits' share of it. */
export class PollQueue<E extends Ranked> {
  readonly #limits: PollLimits;
  readonly #urgent = new Set<E>();
  readonly #due = new Set<E>();
  readonly #chargeOnly = new Set<E>();
  /** Reads saved up while it is quiet, so that few jobs are read without delay. */
  #savedPolls = Number.POSITIVE_INFINITY;
  #countedAtMs: number;
  #heldUntilMs = Number.NEGATIVE_INFINITY;

  constructor(limits: PollLimits, now: number) {
    this.#limits = limits;
    this.#countedAtMs = now;
  }

  add(entry: E): void {
    const due = entry.isChargeOnly ? this.#chargeOnly : this.#due;
    (entry.eager > 0 ? this.#urgent : due).add(entry);
  }

  remove(entry: E): void {
    this.#urgent.delete(entry);
    this.#due.delete(entry);
    this.#chargeOnly.delete(entry);
  }

  /** Takes out the job to read now; the milliseconds until there is one, or undefined where none is due. `reading`: reads under way. */
  next(now: number, reading: number): E | number | undefined {
    let entry: E | undefined = this.#urgent.values().next().value;
    const urgentMs = entry ? this.#waitMs(now, true, reading) : Number.POSITIVE_INFINITY;
    if (urgentMs > 0) {
      if (this.#due.size + this.#chargeOnly.size === 0) return entry && urgentMs;
      const waitMs = this.#waitMs(now, false, reading);
      if (waitMs > 0) return Math.min(urgentMs, waitMs);
      entry = this.#first(now);
    }
    if (entry === undefined) return undefined;
    this.#savedPolls--;
    this.remove(entry);
    return entry;
  }

  /** Takes a read for a job that is not in the queue. False where none is free. */
  tryTake(now: number, isUrgent: boolean): boolean {
    if (this.#waitMs(now, isUrgent, 0) > 0) return false;
    this.#savedPolls--;
    return true;
  }

  /** Milliseconds until an urgent read is free after those that are due, also in the rate limit itself. */
  freeInMs(now: number): number {
    const { limit, windowMs, nextFreeMs } = this.#limits.look('jobs.get');
    const ahead = this.#due.size + this.#urgent.size;
    const aheadMs = limit === Number.POSITIVE_INFINITY ? 0 : (ahead * windowMs) / (READ_SHARE * limit);
    return Math.max(this.#waitMs(now, true, 0) + aheadMs, nextFreeMs);
  }

  /** Lets nothing out for as long as a 429 asks, a minute at most: the limit was reached all the same, by others. */
  hold(now: number, askedMs: number): void {
    this.#heldUntilMs = Math.max(this.#heldUntilMs, now + Math.min(askedMs, MAX_HOLD_MS));
  }

  /**
   * Milliseconds until a read may go out. Of the saved reads some are kept for urgent ones: a webhook is followed up at
   * once also while polls queue. When the limit is reached, one read at a time waits in it.
   */
  #waitMs(now: number, isUrgent: boolean, reading: number): number {
    const { limit, windowMs, nextFreeMs } = this.#limits.look('jobs.get');
    const heldMs = Math.max(0, this.#heldUntilMs - now);
    if (limit === Number.POSITIVE_INFINITY) return heldMs;
    const perMs = (READ_SHARE * limit) / windowMs;
    // With the share this stays within the limit in any window: 105 + 12 of 120.
    const most = Math.max(1, Math.floor(limit / 10));
    this.#savedPolls = Math.min(most, this.#savedPolls + Math.max(0, now - this.#countedAtMs) * perMs);
    this.#countedAtMs = now;
    const short = (isUrgent ? 1 : 1 + Math.floor(most / 3)) - this.#savedPolls;
    // Whatever is a billionth short is rounding, and would make a timer of no length.
    const paceMs = short > 1e-9 ? short / perMs : 0;
    return Math.max(heldMs, paceMs, reading > 0 ? nextFreeMs : 0);
  }

  /** The job with the highest rank, or else one that nobody waits for. Without a limit the order does not matter. */
  #first(now: number): E | undefined {
    const [first] = this.#due;
    if (this.#limits.look('jobs.get').limit === Number.POSITIVE_INFINITY)
      return first ?? this.#chargeOnly.values().next().value;
    let best: E | undefined;
    let bestRank = Number.NEGATIVE_INFINITY;
    for (const entry of this.#due) {
      const rank = rankOf(entry.of.model, entry, now);
      if (rank > bestRank) [best, bestRank] = [entry, rank];
    }
    return best ?? this.#chargeOnly.values().next().value;
  }
}
