import { type Candidate, type Model, rankOf } from '../rules/order.js';
import type { Clock } from '../runtime/clock.js';
import { keepLast } from '../runtime/keep-last.js';
import { Pace, type ReadLimiter } from './pace.js';

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
