import { type Clock, steady } from '../clock.js';
import { RateLimitError, ResponseError } from '../errors/index.js';
import { isFinal, type Job } from '../schemas/job.js';
import { Forecast } from './forecast.js';
import { Heap } from './heap.js';
import { Pace, POLLS_PER_MS } from './pace.js';
import { backoffMs, endsWait, meanChance, rhythmOf, type Stretch, whenWorth } from './poll-schedule.js';
import type { Entry, Watch } from './watch.js';

/** Reads under way at most: enough at any usual delay, and hanging ones leave room for others. */
const READS_AT_ONCE = 32;
/** Announcements of jobs nobody waits for yet that are kept: a webhook may come before the answer to its create. */
const REMEMBERED = 256;
const EAGER_READS = 4;
/** Due times brought up to date at each turn: all of them every few reads, or in part of a round where there are thousands. */
const RECONSIDERED = 16;
/**
 * With the price that the sum of the roots gives, just enough reads would be asked for if jobs never ended. They do, and
 * with a dearer read those that have probably ended come first, which need no second one; found by simulation, where any
 * factor from 3 to 30 does about as well.
 */
const DEARER = 8;
/** A `createdAt` before that says more about the two clocks than about the job. */
const OLDEST_MS = 3_600_000;
/** From this share of announced completions on, polls are half as frequent. */
const TRUSTED = 0.5;

/**
 * Reads the jobs of one account for all who wait on them.
 *
 * A job rests for its natural interval after each read, then its turn comes. Turns are taken at the pace of the account's
 * budget in the order of their due times. While there is budget to spare every job is read when it has rested; beyond it
 * the due times decide. They lie apart in proportion to the square root of the time the job is still expected to take,
 * which for a given budget makes the mean delay of noticing least; and no due time is infinite, so nobody starves.
 */
export class JobWatcher {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #pace: Pace;
  readonly #entries = new Map<string, Entry>();
  readonly #resting = new Heap<Entry>();
  readonly #ready = new Heap<Entry>();
  readonly #forecast = new Forecast();
  readonly #announced = new Set<string>();
  #reading = 0;
  #load = 0;
  #trust = 0;
  #cursor = 0;
  #disarm: (() => void) | undefined;

  constructor(clock: Clock, random: () => number = Math.random) {
    this.#clock = steady(clock);
    this.#random = random;
    this.#pace = new Pace(this.#clock);
  }

  /** Whether anybody waits. */
  get busy(): boolean {
    return this.#entries.size > 0;
  }

  /** Begins to read the job for `watch`; gives the function that ends it. */
  watch(id: string, watch: Watch): () => void {
    const entry = this.#entries.get(id) ?? this.#enter(id, watch);
    entry.watches.add(watch);
    const { pollIntervalMs } = watch;
    if (pollIntervalMs !== undefined && entry.heap === this.#resting)
      this.#rest(entry, Math.min(entry.rank - this.#clock.now(), pollIntervalMs));
    this.#turn();
    return () => {
      if (entry.watches.delete(watch) && entry.watches.size === 0) this.#leave(entry);
    };
  }

  /** The job is said to be final: it is read at once. */
  notify(id: string): void {
    const entry = this.#entries.get(id);
    if (!entry) {
      if (this.#announced.size >= REMEMBERED) this.#announced.clear();
      this.#announced.add(id);
      return;
    }
    if (entry.eager === 0) this.#trust += (1 - this.#trust) * 0.3;
    entry.eager = EAGER_READS;
    if (!entry.reading) this.#rest(entry, 0);
    this.#turn();
  }

  #enter(id: string, { job, pollIntervalMs }: Watch): Entry {
    const now = this.#clock.now();
    const ageMs = Math.min(Math.max(0, now - (Date.parse(job?.createdAt ?? '') || now)), OLDEST_MS);
    const entry: Entry = {
      ...{ id, job, watches: new Set<Watch>(), sinceMs: now - ageMs, ageMs, rank: 0, place: -1, heap: undefined },
      ...{ reading: undefined, weight: 0, failures: 0, eager: this.#announced.delete(id) ? EAGER_READS : 0 },
    };
    this.#entries.set(id, entry);
    this.#weigh(entry);
    // Of a bare id nothing is known: it may be done already.
    const firstMs = pollIntervalMs ?? (job ? this.#spread(rhythmOf(job).firstMs) - ageMs : 0);
    this.#rest(entry, entry.eager ? 0 : firstMs);
    return entry;
  }

  #leave(entry: Entry): void {
    if (!this.#entries.delete(entry.id)) return;
    entry.heap?.remove(entry);
    entry.heap = undefined;
    this.#load -= entry.weight;
    if (this.#entries.size === 0) this.#load = 0;
    const { reading } = entry;
    if (reading) this.#done(entry);
    reading?.abort();
    this.#turn();
  }

  #place(entry: Entry, heap: Heap<Entry>, rank: number): void {
    entry.heap?.remove(entry);
    entry.heap = heap;
    entry.rank = rank;
    heap.add(entry);
  }

  #rest(entry: Entry, ms: number): void {
    this.#place(entry, this.#resting, this.#clock.now() + ms);
  }

  /** Sets what the job adds to the load, seen from now: the root of its mean chance to end before its turn may come. */
  #weigh(entry: Entry): void {
    entry.ageMs = this.#clock.now() - entry.sinceMs;
    const aheadMs = Math.max(this.#entries.size / POLLS_PER_MS, rhythmOf(entry.job).typicalMs);
    const weight = Math.sqrt(meanChance(this.#outlook(entry), aheadMs));
    this.#load += weight - entry.weight;
    entry.weight = weight;
  }

  /** When the job is due: were every read worth this price, all jobs together would ask for what the budget has. */
  #dueMs(entry: Entry): number {
    const price = (DEARER * (this.#load / POLLS_PER_MS) ** 2) / 2;
    return entry.sinceMs + entry.ageMs + whenWorth(this.#outlook(entry), price);
  }

  /** Brings the due times of some jobs up to date: the price has changed since theirs were set. */
  #reconsider(): void {
    const many = Math.min(RECONSIDERED, this.#ready.size);
    for (let count = 0; count < many; count++) {
      const entry = this.#ready.at(this.#cursor++);
      if (entry && entry.eager === 0) this.#place(entry, this.#ready, this.#dueMs(entry));
    }
  }

  #outlook({ job, ageMs }: Entry): Iterable<Stretch> {
    return this.#forecast.outlook(job, ageMs);
  }

  #spread(ms: number): number {
    return ms * (1 + this.#random() / 5) * (this.#trust > TRUSTED ? 2 : 1);
  }

  /** Reads whose turn it is and sets the one timer, which exists only while somebody waits. */
  #turn(): void {
    this.#disarm?.();
    this.#disarm = undefined;
    const now = this.#clock.now();
    for (let rested = this.#resting.first; rested && rested.rank <= now; rested = this.#resting.first)
      this.#place(rested, this.#ready, rested.eager ? Number.NEGATIVE_INFINITY : this.#dueMs(rested));
    let waitMs = this.#resting.first ? this.#resting.first.rank - now : Number.POSITIVE_INFINITY;
    for (let next = this.#ready.first; next && this.#reading < READS_AT_ONCE; next = this.#ready.first) {
      const paceMs = this.#pace.waitMs(next.eager > 0);
      if (paceMs > 0) {
        waitMs = Math.min(waitMs, paceMs);
        break;
      }
      void this.#read(next);
      this.#reconsider();
    }
    if (waitMs < Number.POSITIVE_INFINITY) this.#disarm = this.#clock.after(waitMs, () => this.#turn());
  }

  async #read(entry: Entry): Promise<void> {
    entry.heap?.remove(entry);
    entry.heap = undefined;
    const reading = new AbortController();
    entry.reading = reading;
    this.#reading++;
    this.#pace.take();
    const { eager } = entry;
    const [watch] = entry.watches;
    try {
      const job = await watch?.readJob(entry.id, reading.signal);
      if (!job) throw new ResponseError(`Job ${entry.id} was read without a result.`);
      if (entry.reading === reading) this.#seen(entry, job, eager);
    } catch (error) {
      // Nobody waits any more, or a watch's own listener threw after the job was taken out.
      if (entry.reading === reading) this.#missed(entry, error);
    }
  }

  #done(entry: Entry): void {
    entry.reading = undefined;
    this.#reading--;
  }

  #seen(entry: Entry, job: Job, eagerBefore: number): void {
    this.#done(entry);
    entry.job = job;
    entry.failures = 0;
    const watches = [...entry.watches];
    if (isFinal(job)) {
      this.#finished(entry, job);
    } else {
      const toMs = this.#clock.now() - entry.sinceMs;
      this.#forecast.saw(job, { fromMs: entry.ageMs, toMs, ended: false });
      this.#weigh(entry);
      // Announced while this read was under way: it may have been too early to show it.
      if (entry.eager === eagerBefore && entry.eager > 0) entry.eager--;
      this.#rest(entry, this.#intervalMs(entry));
    }
    for (const watch of watches) watch.onRead(job);
    this.#turn();
  }

  #finished(entry: Entry, job: Job): void {
    if (entry.eager === 0) this.#trust *= 0.7;
    const took = Date.parse(job.completedAt ?? '') - Date.parse(job.createdAt ?? '');
    const toMs = took >= 0 ? took : this.#clock.now() - entry.sinceMs;
    this.#forecast.saw(job, { fromMs: entry.ageMs, toMs, ended: true });
    this.#leave(entry);
  }

  #missed(entry: Entry, error: unknown): void {
    this.#done(entry);
    const ends = endsWait(error);
    const watches = [...entry.watches];
    if (ends) this.#leave(entry);
    else {
      entry.failures++;
      if (RateLimitError.isInstance(error)) this.#pace.hold(Math.min(error.retryAfterMs ?? 0, 60_000));
      this.#weigh(entry);
      this.#rest(entry, backoffMs(this.#intervalMs(entry), entry.failures, error));
    }
    for (const watch of watches) watch.onMiss(error, ends);
    this.#turn();
  }

  #intervalMs(entry: Entry): number {
    const own = Math.min(...[...entry.watches].map((watch) => watch.pollIntervalMs ?? Number.POSITIVE_INFINITY));
    const natural = own < Number.POSITIVE_INFINITY ? own : this.#spread(rhythmOf(entry.job).intervalMs);
    return entry.eager > 0 ? Math.min(natural, 1000 * 2 ** (EAGER_READS - entry.eager)) : natural;
  }
}
