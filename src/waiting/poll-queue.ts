import { POLL_SHARE, type Rate, type RateLimitName } from '../rules/limits.js';
import { type Candidate, type JobStats, rankOf } from '../rules/polling.js';

export interface Ranked extends Candidate {
  dueMs: number;
  /** Statistics of the model, shared by all of its jobs. */
  shared: { stats: JobStats };
  /** Remaining polls at short intervals after the job's end was announced. */
  eager: number;
  /** If true, no wait needs the result. The job is polled when no other is due. */
  readonly isChargeOnly: boolean;
}

export interface PollLimits {
  peek(name: RateLimitName): Rate & {
    /** Milliseconds until a slot is free, or 0. */
    readonly nextFreeMs: number;
  };
}

export const NO_LIMITS: PollLimits = { peek: () => ({ limit: Number.POSITIVE_INFINITY, windowMs: 1, nextFreeMs: 0 }) };

/** Longest pause after a 429. */
const MAX_PAUSE_MS = 60_000;

/** Queue of the due jobs under one rate limit. Polls get a share of the limit, which sets the queue's pace. */
export class PollQueue<E extends Ranked> {
  readonly #limits: PollLimits;
  readonly #urgent = new Set<E>();
  readonly #due = new Set<E>();
  readonly #chargeOnly = new Set<E>();
  /** Polls saved while few jobs are due. They allow a burst without delay. */
  #savedPolls = Number.POSITIVE_INFINITY;
  #countedAtMs: number;
  #pausedUntilMs = Number.NEGATIVE_INFINITY;

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

  /**
   * Removes and returns the job to poll now. Otherwise, returns the milliseconds until a poll is allowed, or undefined
   * if no job is due.
   */
  next(now: number, pollsInFlight: number): E | number | undefined {
    let entry: E | undefined = this.#urgent.values().next().value;
    const urgentMs = entry ? this.#waitMs(now, true, pollsInFlight) : Number.POSITIVE_INFINITY;
    if (urgentMs > 0) {
      if (this.#due.size + this.#chargeOnly.size === 0) return entry && urgentMs;
      const waitMs = this.#waitMs(now, false, pollsInFlight);
      if (waitMs > 0) return Math.min(urgentMs, waitMs);
      entry = this.#first(now);
    }
    if (entry === undefined) return undefined;
    this.#savedPolls--;
    this.remove(entry);
    return entry;
  }

  /** Uses a poll for a job outside the queue. Returns false if none is available. */
  tryAcquire(now: number, isUrgent: boolean): boolean {
    if (this.#waitMs(now, isUrgent, 0) > 0) return false;
    this.#savedPolls--;
    return true;
  }

  /** Returns the milliseconds until an urgent poll can be sent after those of all due jobs, including the wait for a slot. */
  freeInMs(now: number): number {
    const { limit, windowMs, nextFreeMs } = this.#limits.peek('jobs.get');
    const dueJobs = this.#due.size + this.#urgent.size;
    const aheadMs = limit === Number.POSITIVE_INFINITY ? 0 : (dueJobs * windowMs) / (POLL_SHARE * limit);
    return Math.max(this.#waitMs(now, true, 0) + aheadMs, nextFreeMs);
  }

  /** Pauses all polls for at most one minute after a 429, because other clients or processes have used up the limit. */
  pause(now: number, requestedMs: number): void {
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, now + Math.min(requestedMs, MAX_PAUSE_MS));
  }

  /**
   * Returns the milliseconds until a poll may be sent. Some saved polls are reserved for urgent jobs, so a webhook
   * triggers a poll even if others queue. When the limit is reached, one poll at a time waits for a slot.
   */
  #waitMs(now: number, isUrgent: boolean, pollsInFlight: number): number {
    const { limit, windowMs, nextFreeMs } = this.#limits.peek('jobs.get');
    const pausedMs = Math.max(0, this.#pausedUntilMs - now);
    if (limit === Number.POSITIVE_INFINITY) return pausedMs;
    const pollsPerMs = (POLL_SHARE * limit) / windowMs;
    // This burst and the polls' share together stay within the limit in any window.
    const burst = Math.max(1, Math.floor(limit / 10));
    this.#savedPolls = Math.min(burst, this.#savedPolls + Math.max(0, now - this.#countedAtMs) * pollsPerMs);
    this.#countedAtMs = now;
    const missingPolls = (isUrgent ? 1 : 1 + Math.floor(burst / 3)) - this.#savedPolls;
    // Ignore rounding errors, which would start a timer of almost zero length.
    const paceMs = missingPolls > 1e-9 ? missingPolls / pollsPerMs : 0;
    return Math.max(pausedMs, paceMs, pollsInFlight > 0 ? nextFreeMs : 0);
  }

  /**
   * Returns the job with the highest rank, or a charge-only job if no other is due. Without a limit, the order doesn't matter.
   */
  #first(now: number): E | undefined {
    const [first] = this.#due;
    if (this.#limits.peek('jobs.get').limit === Number.POSITIVE_INFINITY)
      return first ?? this.#chargeOnly.values().next().value;
    let best: E | undefined;
    let bestRank = Number.NEGATIVE_INFINITY;
    for (const entry of this.#due) {
      const rank = rankOf(entry.shared.stats, entry, now);
      if (rank > bestRank) [best, bestRank] = [entry, rank];
    }
    return best ?? this.#chargeOnly.values().next().value;
  }
}
