import { type Clock, steady } from '../clock.js';
import { RateLimitError } from '../errors/index.js';
import { isSettled, type Job } from '../schemas/job.js';
import { Pace, type ReadLimiter } from './pace.js';
import { backoffMs, PollOrder, rhythmOf } from './poll-order.js';
import { type Entry, type Miss, RESTART, type Step, type Turns, Watch, type WatchOptions } from './watch.js';

/** Reads under way at most: enough at any usual delay, and hanging ones leave room for others. */
const READS_AT_ONCE = 32;
/** Announcements of jobs that nobody waits for yet: a webhook may come before the answer to its create. */
const REMEMBERED = 256;
/** How often an announced job is read at short intervals when a read does not show its end yet. */
const EAGER_READS = 4;
/** A `createdAt` before that says more about the two clocks than about the job. */
const OLDEST_MS = 3_600_000;
/** From this share of announced completions on, polls are half as frequent. */
const TRUSTED = 0.5;
/** On Workers a request may end without a word: what its wait has begun is waited for no longer than this. */
const LOST_MS = 5_000;

/**
 * Decides for all waits of one account which job is read when, and by whom.
 *
 * A job rests for its natural interval after each read and is due then. Due jobs are read at the pace of the limit in
 * force, in the order of {@link PollOrder}. What one wait reads, all waits on that job see. But no wait relies on
 * another: each reads and sleeps in the context of its own caller, and a turn that is not taken goes to the next one. On
 * Workers, where nothing of another request may be used, each wait takes its turn by itself when it looks again.
 */
export class JobWatcher {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #order = new PollOrder();
  readonly #entries = new Map<string, Entry>();
  readonly #announced = new Set<string>();
  readonly #paces = new WeakMap<object, Pace>();
  /** How many waits go by each pace. */
  readonly #waitsBy = new Map<Pace, number>();
  readonly #documentedPace: Pace;
  readonly #noPace: Pace;
  readonly #turns: Turns = {
    next: (entry, watch) => this.#next(entry, watch),
    seen: (entry, watch, job) => this.#seen(entry, watch, job),
    missed: (entry, watch, miss) => this.#missed(entry, watch, miss),
    leave: (entry, watch) => this.#leave(entry, watch),
  };
  #reading = 0;
  #trust = 0;
  /** Whether a job may be announced: those have reads of their own. */
  #someAnnounced = false;
  #turnIsPlanned = false;
  #stopTimer: (() => void) | undefined;

  constructor(clock: Clock, random: () => number = Math.random) {
    this.#clock = steady(clock);
    this.#random = random;
    this.#documentedPace = new Pace(this.#clock, 'documented');
    this.#noPace = new Pace(this.#clock, 'off');
  }

  /** Whether anybody waits. */
  get busy(): boolean {
    return this.#entries.size > 0;
  }

  /** Begins a wait. */
  watch(id: string, options: WatchOptions): Watch {
    this.#forgetLost();
    const entry = this.#entries.get(id) ?? this.#enter(id, options);
    const { pollIntervalMs, limiter } = options;
    const watch = new Watch(this.#turns, entry, { pace: this.#paceOf(limiter), clock: this.#clock, pollIntervalMs });
    entry.watches.add(watch);
    this.#waitsBy.set(watch.pace, (this.#waitsBy.get(watch.pace) ?? 0) + 1);
    if (pollIntervalMs !== undefined) entry.dueMs = Math.min(entry.dueMs, this.#clock.now() + pollIntervalMs);
    this.#planTurn();
    return watch;
  }

  /** The job is said to be final: it is read at once. False where nobody waits for it. */
  notify(id: string): boolean {
    const entry = this.#entries.get(id);
    if (!entry) {
      if (this.#announced.size >= REMEMBERED) this.#announced.clear();
      this.#announced.add(id);
      return false;
    }
    const isNew = entry.eager === 0;
    if (isNew) this.#trust += (1 - this.#trust) * 0.3;
    entry.eager = EAGER_READS;
    this.#someAnnounced = true;
    entry.dueMs = this.#clock.now();
    // A read that began before may hang, or show the job as it was.
    if (isNew && !this.#clock.perRequest) entry.reading?.abort(RESTART);
    this.#planTurn();
    return true;
  }

  #enter(id: string, { job, pollIntervalMs }: WatchOptions): Entry {
    const now = this.#clock.now();
    const ageMs = Math.min(Math.max(0, now - (Date.parse(job?.createdAt ?? '') || now)), OLDEST_MS);
    const eager = this.#announced.delete(id) ? EAGER_READS : 0;
    // Of a bare id nothing is known: it may be done already.
    const firstMs = pollIntervalMs ?? (job ? this.#spread(rhythmOf(job).firstMs) - ageMs : 0);
    const entry: Entry = {
      id,
      job,
      watches: new Set(),
      sinceMs: now - ageMs,
      lastReadMs: now,
      dueMs: eager > 0 ? now : now + firstMs,
      version: 0,
      reader: undefined,
      readerSinceMs: now,
      reading: undefined,
      failures: 0,
      lastError: undefined,
      eager,
    };
    this.#entries.set(id, entry);
    this.#someAnnounced ||= eager > 0;
    return entry;
  }

  #next(entry: Entry, watch: Watch): Step {
    const now = this.#clock.now();
    watch.askedMs = now;
    if (entry.job && entry.version > watch.version) {
      watch.version = entry.version;
      return { kind: 'look', job: entry.job };
    }
    if (this.#clock.perRequest) this.#takeTurn(entry, watch);
    if (entry.reader !== watch || entry.reading) return { kind: 'sleep', ms: Number.POSITIVE_INFINITY };
    entry.reading = new AbortController();
    this.#reading++;
    return { kind: 'read', signal: entry.reading.signal };
  }

  /** On Workers: this wait reads when the job is due, unless another one does so right now. */
  #takeTurn(entry: Entry, watch: Watch): void {
    const now = this.#clock.now();
    const isTaken = entry.reader !== undefined && now - entry.readerSinceMs < LOST_MS;
    if (entry.dueMs > now || isTaken || watch.pace.waitMs(entry.eager > 0, 0) > 0) return;
    entry.reading = undefined;
    this.#grant(entry, watch);
  }

  #grant(entry: Entry, watch: Watch): void {
    entry.reader = watch;
    entry.readerSinceMs = this.#clock.now();
    watch.pace.take();
    watch.sleeper.wake();
  }

  /** Several changes of one tick share a turn. */
  #planTurn(): void {
    if (this.#turnIsPlanned || this.#clock.perRequest) return;
    this.#turnIsPlanned = true;
    Promise.resolve().then(() => {
      this.#turnIsPlanned = false;
      this.#turn();
    });
  }

  /** Gives turns to due jobs and sets the one timer, which exists only while somebody waits. */
  #turn(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    let waitMs = Number.POSITIVE_INFINITY;
    for (let reading = this.#reading; reading < READS_AT_ONCE; reading++) {
      const now = this.#clock.now();
      const { ready, nextMs } = this.#ready(now, reading);
      waitMs = nextMs;
      const entry = this.#order.first(ready, now);
      const [watch] = entry?.watches ?? [];
      if (!entry || !watch) break;
      this.#grant(entry, watch);
    }
    if (waitMs < Number.POSITIVE_INFINITY) this.#stopTimer = this.#clock.after(waitMs, () => this.#turn());
  }

  /** The jobs that may be read now, and the milliseconds until the next one may. */
  #ready(now: number, reading: number): { readonly ready: readonly Entry[]; readonly nextMs: number } {
    const ready: Entry[] = [];
    const paceMs = new Map<Pace, readonly [polled: number, announced: number]>();
    for (const pace of this.#waitsBy.keys())
      paceMs.set(pace, [pace.waitMs(false, reading), pace.waitMs(true, reading)]);
    // With thousands of jobs the pace is the limit, and looking at each of them has to wait until it lets a read out.
    let nextMs = Math.min(
      ...[...paceMs.values()].map(([polled, announced]) => (this.#someAnnounced ? announced : polled)),
    );
    if (nextMs > 0) return { ready, nextMs };
    nextMs = Number.POSITIVE_INFINITY;
    this.#someAnnounced = false;
    for (const entry of this.#entries.values()) {
      const [watch] = entry.watches;
      this.#someAnnounced ||= entry.eager > 0;
      if (entry.reader || !watch) continue;
      let ms = entry.dueMs - now;
      if (ms <= 0) ms = paceMs.get(watch.pace)?.[entry.eager > 0 ? 1 : 0] ?? 0;
      if (ms > 0) nextMs = Math.min(nextMs, ms);
      else ready.push(entry);
    }
    return { ready, nextMs };
  }

  #seen(entry: Entry, watch: Watch, job: Job): void {
    this.#readingEnded(entry, watch);
    const now = this.#clock.now();
    entry.job = job;
    entry.version++;
    entry.lastReadMs = now;
    entry.failures = 0;
    entry.lastError = undefined;
    if (isSettled(job)) {
      if (entry.eager === 0) this.#trust *= 0.7;
      const took = Date.parse(job.completedAt ?? '') - Date.parse(job.createdAt ?? '');
      this.#order.learn(job, took >= 0 ? took : now - entry.sinceMs, true);
      this.#entries.delete(entry.id);
    } else {
      this.#order.learn(job, now - entry.sinceMs, false);
      if (entry.eager > 0) entry.eager--;
      entry.dueMs = now + this.#intervalMs(entry);
    }
    for (const other of entry.watches) if (other !== watch) other.sleeper.wake();
    this.#planTurn();
  }

  #missed(entry: Entry, watch: Watch, { error, ends, mostAskedMs }: Miss): void {
    this.#readingEnded(entry, watch);
    const now = this.#clock.now();
    if (error === RESTART) {
      entry.dueMs = now;
    } else if (!ends) {
      entry.lastReadMs = now;
      entry.failures++;
      entry.lastError = error;
      const asked = askedMs(error, mostAskedMs);
      if (RateLimitError.isInstance(error)) watch.pace.hold(Math.min(asked, 60_000));
      entry.dueMs = now + backoffMs(this.#intervalMs(entry), entry.failures, asked);
      // Another wait on the job may have a client that works.
      entry.watches.delete(watch);
      entry.watches.add(watch);
    }
    this.#planTurn();
  }

  #readingEnded(entry: Entry, watch: Watch): void {
    if (entry.reader !== watch) return;
    if (entry.reading) this.#reading--;
    entry.reading = undefined;
    entry.reader = undefined;
  }

  #leave(entry: Entry, watch: Watch): void {
    if (!entry.watches.delete(watch)) return;
    const waits = (this.#waitsBy.get(watch.pace) ?? 1) - 1;
    if (waits > 0) this.#waitsBy.set(watch.pace, waits);
    else this.#waitsBy.delete(watch.pace);
    if (entry.reader === watch) {
      this.#readingEnded(entry, watch);
      // Its turn goes to the next wait on the job.
      entry.dueMs = Math.min(entry.dueMs, this.#clock.now());
    }
    if (entry.watches.size === 0 && this.#entries.get(entry.id) === entry) this.#entries.delete(entry.id);
    this.#planTurn();
  }

  #intervalMs({ watches, job, eager }: Entry): number {
    const own = Math.min(...[...watches].map((watch) => watch.pollIntervalMs ?? Number.POSITIVE_INFINITY));
    const natural = own < Number.POSITIVE_INFINITY ? own : this.#spread(rhythmOf(job).intervalMs);
    return eager > 0 ? Math.min(natural, 1000 * 2 ** (EAGER_READS - eager)) : natural;
  }

  #spread(ms: number): number {
    return ms * (1 + this.#random() / 5) * (this.#trust > TRUSTED ? 2 : 1);
  }

  /** One pace for all waits whose reads go through one limiter. */
  #paceOf(limiter: ReadLimiter): Pace {
    if (limiter === 'off') return this.#noPace;
    if (limiter === 'documented') return this.#documentedPace;
    const pace = this.#paces.get(limiter) ?? new Pace(this.#clock, limiter);
    this.#paces.set(limiter, pace);
    return pace;
  }

  /** On Workers: drops the waits whose request has ended without a word. */
  #forgetLost(): void {
    if (!this.#clock.perRequest) return;
    const longAgo = this.#clock.now() - 20 * LOST_MS;
    for (const [id, { watches }] of this.#entries) {
      for (const watch of watches) if (watch.askedMs < longAgo) watches.delete(watch);
      if (watches.size === 0) this.#entries.delete(id);
    }
  }
}

function askedMs(error: unknown, most: number): number {
  const asked: unknown = typeof error === 'object' && error !== null ? Reflect.get(error, 'retryAfterMs') : undefined;
  return typeof asked === 'number' ? Math.min(asked, most) : 0;
}
