// The jobs that wait for a read: those that rest, by their time, and those that are due, by their rank and the pace.

import { endsWait, isRateLimited } from '../rules/fate.js';
import { DOCUMENTED_LIMITS, type Lane, type LaneLimit, READ_SHARE } from '../rules/limits.js';
import { type Candidate, type Model, rankOf, readPauseMs } from '../rules/read-order.js';

/** Something that is due at a time. */
interface Due {
  dueMs: number;
  /** Where it is in the heap; -1 outside. The heap sets it. */
  place: number;
}

/** A queue by time: the first one due is at hand, and each can be taken out. Every step costs the logarithm of the length. */
export class DueHeap<T extends Due> {
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

/** What the queue needs to know of the rate limit of reads. */
interface ReadLane extends LaneLimit {
  /** Milliseconds until a slot is free; 0 when one is. */
  readonly nextFreeMs: number;
}

/** The rate limits that reads go through, if there are any, or how it is without. */
export type ReadLimits = { look(lane: Lane): ReadLane } | 'documented' | 'off';

const DOCUMENTED: ReadLane = { ...DOCUMENTED_LIMITS['jobs.get'], nextFreeMs: 0 };
const OFF: ReadLane = { limit: Number.POSITIVE_INFINITY, windowMs: 1, nextFreeMs: 0 };

/** Reads that nobody waits for, at most. */
const LATER_READS = 10_000;
/** One that fails is made again after a pause that doubles from this one up to a minute: for five minutes in all. */
const LATER_PAUSE_MS = 10_000;
const LATER_TRIES = 8;
/** The longest that a lane is left alone after a 429. */
const LONGEST_HOLD_MS = 60_000;

/** A read that nobody waits for. */
export interface LaterRead {
  readonly id: string;
  /** Rejects where it does not show the end of the job. */
  read(): Promise<unknown>;
  /** Milliseconds that the service asks to wait in an error. */
  askedMs(error: unknown): number;
  /** Called where it is given up. */
  lost(): void;
}

interface KeptRead extends Due {
  readonly later: LaterRead;
  failures: number;
}

/** What is known of the jobs of one model; all of them share it. */
export interface ModelRecord {
  model: Model;
}

/** A job that can be due. */
export interface Ranked extends Candidate, Due {
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

/** What is to be read now: a job, or something that nobody waits for. Where there is nothing, when there is. */
interface NextRead<E> {
  readonly entry?: E | undefined;
  readonly later?: ((now: () => number) => Promise<void>) | undefined;
  /** Milliseconds until something may be read; `Infinity` when nothing is due. */
  readonly waitMs: number;
}

/**
 * The jobs that are due under one rate limit. They are let out at the waits' share of it.
 *
 * Looking for the next job costs one pass through them, and that pass gives many: a read costs the same however many jobs
 * wait.
 */
export class ReadQueue<E extends Ranked> {
  /** Waits that read here. */
  waits = 0;
  readonly #limits: ReadLimits;
  /** Reads that nobody waits for, by job: they are made when no other read is due. */
  readonly #later = new Map<string, KeptRead>();
  /** Those that have failed, until they are made again. */
  readonly #laterResting = new DueHeap<KeptRead>();
  readonly #due = new Set<E>();
  readonly #urgent = new Set<E>();
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

  /** Whether there is nothing to read here, now or later. */
  get isIdle(): boolean {
    return this.waits + this.#later.size === 0 && this.#laterResting.first === undefined;
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

  /** Takes out what is to be read now. `reading`: reads under way. */
  next(now: number, reading: number): NextRead<E> {
    const restsMs = this.#laterResting.first ? this.#laterRestsMs(now) : Number.POSITIVE_INFINITY;
    const [urgent] = this.#urgent;
    let waitMs = urgent ? this.#waitMs(now, true, reading) : Number.POSITIVE_INFINITY;
    const isUrgent = waitMs <= 0;
    if (!isUrgent && this.#due.size + this.#later.size > 0) {
      waitMs = Math.min(waitMs, this.#waitMs(now, false, reading));
    }
    if (waitMs > 0) return { waitMs: Math.min(waitMs, restsMs) };
    this.#saved--;
    const entry = isUrgent ? urgent : this.#first(now);
    if (entry) {
      this.remove(entry);
      return { entry, waitMs: 0 };
    }
    const [[id, kept] = ['']] = this.#later;
    this.#later.delete(id);
    return { later: kept && ((time) => this.#make(kept, time)), waitMs: 0 };
  }

  /** Takes a read for a job that is not in the queue. False where none is free. */
  takes(now: number, isUrgent: boolean): boolean {
    if (this.#waitMs(now, isUrgent, 0) > 0) return false;
    this.#saved--;
    return true;
  }

  /** Adds a read that nobody waits for. False where there are too many. */
  addLater(later: LaterRead): boolean {
    if (this.#later.size >= LATER_READS) return false;
    this.#later.set(later.id, { later, failures: 0, dueMs: 0, place: -1 });
    return true;
  }

  /** Makes a read that nobody waits for, and keeps one that has failed for another time, unless that cannot help. */
  async #make(kept: KeptRead, time: () => number): Promise<void> {
    const { later } = kept;
    try {
      await later.read();
    } catch (error) {
      kept.failures++;
      if (endsWait(error) || kept.failures === LATER_TRIES) return later.lost();
      const askedMs = later.askedMs(error);
      if (isRateLimited(error)) this.hold(time(), askedMs);
      kept.dueMs = time() + readPauseMs(LATER_PAUSE_MS, kept.failures, askedMs);
      this.#laterResting.put(kept);
    }
  }

  /** Takes those that have rested among the others. Gives the milliseconds until the next one has. */
  #laterRestsMs(now: number): number {
    for (let kept = this.#laterResting.first; kept; kept = this.#laterResting.first) {
      if (kept.dueMs > now) return kept.dueMs - now;
      this.#laterResting.remove(kept);
      this.#later.set(kept.later.id, kept);
    }
    return Number.POSITIVE_INFINITY;
  }

  /** Milliseconds until an urgent read is free after those that are due, also in the rate limit itself. */
  freeInMs(now: number): number {
    const { limit, windowMs, nextFreeMs } = readLaneOf(this.#limits);
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
   * once also while polls queue. When the lane is full, one read at a time waits in it.
   */
  #waitMs(now: number, isUrgent: boolean, reading: number): number {
    const { limit, windowMs, nextFreeMs } = readLaneOf(this.#limits);
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

  /** The job with the highest rank. */
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

function readLaneOf(limits: ReadLimits): ReadLane {
  if (typeof limits === 'object') return limits.look('jobs.get');
  return limits === 'off' ? OFF : DOCUMENTED;
}
