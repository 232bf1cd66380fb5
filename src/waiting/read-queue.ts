// The jobs that wait for a read: those that rest, by their time, and those that are due, by their rank and the pace.

import { type Rate, type RateLimitName, READ_SHARE } from '../rules/limits.js';
import { type Candidate, type Model, rankOf } from '../rules/read-order.js';

/** A job that is to be read. */
export interface Ranked extends Candidate {
  /** When it is due. */
  dueMs: number;
  /** Where it is in the heap of those that rest; -1 outside. The heap sets it. */
  place: number;
  /** What is known of the jobs of its model; all of them share it. */
  of: { model: Model };
  /** Its rank when the jobs that are due were last ranked. */
  rank: number;
  /** Above 0 when it was announced as final: so many reads follow at short intervals. */
  eager: number;
  /** Whether nobody waits for the read: it is made when no other is due. */
  readonly isLater: boolean;
}

/** A queue by time: the first one due is at hand, and each can be taken out. Every step costs the logarithm of the length. */
export class DueHeap<T extends Ranked> {
  readonly #items: T[] = [];

  /** The one that is due first. */
  get first(): T | undefined {
    return this.#items[0];
  }

  /** Puts it in, or in its new place after its time has changed. */
  put(item: T): void {
    if (item.place < 0) item.place = this.#items.push(item) - 1;
    this.#settle(item);
  }

  /** Takes it out, if it is in. */
  remove(item: T): void {
    const { place } = item;
    if (place < 0) return;
    item.place = -1;
    const last = this.#items.pop();
    if (last === undefined || last === item) return;
    this.#items[place] = last;
    last.place = place;
    this.#settle(last);
  }

  /** Moves it up while it is due before the one above, else down while one below is due before it. */
  #settle(item: T): void {
    const items = this.#items;
    for (;;) {
      const { place } = item;
      const above = items[(place - 1) >> 1];
      const left = items[2 * place + 1];
      const right = items[2 * place + 2];
      const least = right !== undefined && left !== undefined && right.dueMs < left.dueMs ? right : left;
      let other: T;
      if (above !== undefined && above.dueMs > item.dueMs) other = above;
      else if (least !== undefined && least.dueMs < item.dueMs) other = least;
      else return;
      item.place = other.place;
      other.place = place;
      items[item.place] = item;
      items[place] = other;
    }
  }
}

/** The rate limits that reads go through. */
export interface ReadLimits {
  look(name: RateLimitName): Rate & {
    /** Milliseconds until a slot is free; 0 when one is. */
    readonly nextFreeMs: number;
  };
}

/** Reads without a limit. */
export const NO_LIMITS: ReadLimits = { look: () => ({ limit: Number.POSITIVE_INFINITY, windowMs: 1, nextFreeMs: 0 }) };

/** The longest that a rate limit is left alone after a 429. */
const LONGEST_HOLD_MS = 60_000;
/** So many of the jobs that are due are ranked together. */
const RANKED = 32;
/** A ranking is used for so long; jobs that are due since then are in the next one. */
const RANKED_FOR_MS = 250;

/**
 * The jobs that are due under one rate limit. They are let out at the waits' share of it.
 *
 * Looking for the next job costs one pass through them, and that pass gives many: a read costs the same however many jobs
 * wait.
 */
export class ReadQueue<E extends Ranked> {
  readonly #limits: ReadLimits;
  readonly #urgent = new Set<E>();
  readonly #due = new Set<E>();
  readonly #later = new Set<E>();
  /** The best of those that are due, the first one last. */
  #ranked: E[] = [];
  #rankedAtMs = Number.NEGATIVE_INFINITY;
  /** Reads saved up while it is quiet, so that few jobs are read without delay. */
  #saved = Number.POSITIVE_INFINITY;
  #countedAtMs: number;
  #heldUntilMs = Number.NEGATIVE_INFINITY;

  constructor(limits: ReadLimits, now: number) {
    this.#limits = limits;
    this.#countedAtMs = now;
  }

  /** The job is due. */
  add(entry: E): void {
    const due = entry.isLater ? this.#later : this.#due;
    (entry.eager > 0 ? this.#urgent : due).add(entry);
  }

  /** The job is not due any more. */
  remove(entry: E): void {
    this.#urgent.delete(entry);
    this.#due.delete(entry);
    this.#later.delete(entry);
  }

  /** Takes out the job to read now; the milliseconds until there is one, or undefined where none is due. `reading`: reads under way. */
  next(now: number, reading: number): E | number | undefined {
    let entry: E | undefined = this.#urgent.values().next().value;
    const urgentMs = entry ? this.#waitMs(now, true, reading) : Number.POSITIVE_INFINITY;
    if (urgentMs > 0) {
      if (this.#due.size + this.#later.size === 0) return entry && urgentMs;
      const waitMs = this.#waitMs(now, false, reading);
      if (waitMs > 0) return Math.min(urgentMs, waitMs);
      entry = this.#first(now);
    }
    if (entry === undefined) return undefined;
    this.#saved--;
    this.remove(entry);
    return entry;
  }

  /** Takes a read for a job that is not in the queue. False where none is free. */
  takes(now: number, isUrgent: boolean): boolean {
    if (this.#waitMs(now, isUrgent, 0) > 0) return false;
    this.#saved--;
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
    this.#heldUntilMs = Math.max(this.#heldUntilMs, now + Math.min(askedMs, LONGEST_HOLD_MS));
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
    this.#saved = Math.min(most, this.#saved + Math.max(0, now - this.#countedAtMs) * perMs);
    this.#countedAtMs = now;
    const short = (isUrgent ? 1 : 1 + Math.floor(most / 3)) - this.#saved;
    // Whatever is a billionth short is rounding, and would make a timer of no length.
    const paceMs = short > 1e-9 ? short / perMs : 0;
    return Math.max(heldMs, paceMs, reading > 0 ? nextFreeMs : 0);
  }

  /** The job with the highest rank, or else one that nobody waits for. */
  #first(now: number): E | undefined {
    if (now - this.#rankedAtMs > RANKED_FOR_MS) this.#ranked = [];
    for (;;) {
      if (this.#ranked.length === 0) this.#rank(now);
      const entry = this.#ranked.pop();
      if (entry === undefined) return this.#later.values().next().value;
      if (this.#due.has(entry)) return entry;
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
