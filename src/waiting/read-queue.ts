import type { LaneLimiter, LaneSnapshot, RateLimiter } from '../limits/rate-limiter.js';
import { DOCUMENTED_LIMITS, READ_SHARE } from '../rules/limits.js';
import { type Candidate, type Model, rankOf } from '../rules/order.js';
import type { Clock } from '../runtime/clock.js';
import { keepLast } from '../runtime/keep-last.js';

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
class Pace {
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

/** Reads that nobody waits for, at most. The first ones are given up. */
const LATER_READS = 10_000;
const LATER_TRIES = 3;

/** What is known of the jobs of one model; all of them share it. */
export interface ModelRecord {
  model: Model;
}

/** A job that can be due. */
export interface Ranked extends Candidate {
  of: ModelRecord;
  /** Its rank when the jobs that are due were last ranked. */
  rank: number;
  /** Above 0 when it was announced as final: so many reads follow at short intervals. */
  eager: number;
}

/** So many of the jobs that are due are ranked together. */
const RANKED = 32;
/** A ranking is used for so long; jobs that are due since then are in the next one. */
const RANKED_FOR_MS = 250;

/**
 * The jobs that are due on one limiter. Looking for the next one costs one pass through them, and that pass gives many: a
 * read costs the same however many jobs wait.
 */
export class ReadQueue<E extends Ranked> {
  readonly pace: Pace;
  /** Waits that read here. */
  waits = 0;
  /** Reads that nobody waits for, by job: they are made when no other read is due. */
  readonly #later = new Map<string, () => Promise<unknown>>();
  readonly #due = new Set<E>();
  readonly #urgent = new Set<E>();
  /** The best of those that are due, the first one last. */
  #ranked: E[] = [];
  #rankedAtMs = Number.NEGATIVE_INFINITY;

  constructor(pace: Pace) {
    this.pace = pace;
  }

  /** Jobs that are due. */
  get length(): number {
    return this.#due.size + this.#urgent.size;
  }

  /** Whether there is nothing to read here, now or later. */
  get isIdle(): boolean {
    return this.waits + this.#later.size === 0;
  }

  /** The job is due. */
  add(entry: E): void {
    (entry.eager > 0 ? this.#urgent : this.#due).add(entry);
  }

  /** The job is not due any more. */
  remove(entry: E): void {
    this.#due.delete(entry);
    this.#urgent.delete(entry);
  }

  /** Takes out the job to be read now; undefined when none may be read now. `reading`: reads under way. */
  take(now: number, reading: number): E | undefined {
    const [urgent] = this.#urgent;
    if (urgent && this.pace.waitMs(true, reading) <= 0) return this.#take(urgent);
    if (this.#due.size === 0 || this.pace.waitMs(false, reading) > 0) return undefined;
    return this.#take(this.#first(now));
  }

  /** Adds a read that nobody waits for. One that fails is made again, three times in all. */
  addLater(id: string, read: () => Promise<unknown>, tries = LATER_TRIES): void {
    const attempt = () => read().catch(() => tries > 1 && this.addLater(id, read, tries - 1));
    keepLast(this.#later, id, attempt, LATER_READS);
  }

  /** Takes out a read that nobody waits for, where no other read is due and one is free. */
  takeLater(reading: number): (() => Promise<unknown>) | undefined {
    if (this.length > 0 || this.#later.size === 0 || this.pace.waitMs(false, reading) > 0) return undefined;
    const [[id, read] = []] = this.#later;
    if (id !== undefined) this.#later.delete(id);
    this.pace.take();
    return read;
  }

  /** Milliseconds until a job that is due may be read. */
  waitMs(reading: number): number {
    const urgentMs = this.#urgent.size > 0 ? this.pace.waitMs(true, reading) : Number.POSITIVE_INFINITY;
    const hasOthers = this.#due.size + this.#later.size > 0;
    return Math.min(urgentMs, hasOthers ? this.pace.waitMs(false, reading) : Number.POSITIVE_INFINITY);
  }

  #take(entry: E | undefined): E | undefined {
    if (!entry) return undefined;
    this.remove(entry);
    this.pace.take();
    return entry;
  }

  #first(now: number): E | undefined {
    if (now - this.#rankedAtMs > RANKED_FOR_MS) this.#ranked = [];
    for (;;) {
      if (this.#ranked.length === 0) this.#rank(now);
      const entry = this.#ranked.pop();
      if (entry === undefined || this.#due.has(entry)) return entry;
    }
  }

  /** One pass: each job is compared with the worst of the best. */
  #rank(now: number): void {
    const best: E[] = [];
    for (const entry of this.#due) {
      entry.rank = rankOf(entry.of.model, entry, now);
      if (best.length === RANKED && entry.rank <= (best[0]?.rank ?? 0)) continue;
      if (best.length === RANKED) best.shift();
      let place = best.length;
      while (place > 0 && (best[place - 1]?.rank ?? 0) >= entry.rank) place--;
      best.splice(place, 0, entry);
    }
    this.#ranked = best;
    this.#rankedAtMs = now;
  }
}

/** Stand for what is not a limiter. */
const NAMED = { documented: {}, off: {} } as const;

/** One queue for all waits whose reads go through one limiter. Its pace goes on while nobody waits. */
export class ReadQueues<E extends Ranked> {
  /** Those with something to read, now or later. */
  readonly busy = new Set<ReadQueue<E>>();
  readonly #clock: Clock;
  readonly #known = new WeakMap<object, ReadQueue<E>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The queue of a limiter. */
  of(limiter: ReadLimiter): ReadQueue<E> {
    const key = typeof limiter === 'string' ? NAMED[limiter] : limiter;
    const queue = this.#known.get(key) ?? new ReadQueue<E>(new Pace(this.#clock, limiter));
    this.#known.set(key, queue);
    this.busy.add(queue);
    return queue;
  }
}
