import { isRateLimited } from '../rules/fate.js';
import { ENDED } from '../rules/lengths.js';
import { readPauseMs } from '../rules/order.js';
import { type Clock, randomOf, steady, wallOf } from '../runtime/clock.js';
import { keepLast } from '../runtime/keep-last.js';
import { isSettled, type Job } from '../schemas/job.js';
import type { JobLengths } from '../shared/facts.js';
import { DueHeap } from './due-heap.js';
import { EAGER_READS, JobRhythms } from './job-rhythms.js';
import { type ReadLimiter, type ReadQueue, ReadQueues } from './read-queue.js';
import { type Entry, endByEvent, HEARD, type Miss, type Notice, RESTART, type Watch, type WatchStep } from './watch.js';

/** Reads under way at most: enough at any usual delay also under lifted limits. */
const READS_AT_ONCE = 256;
/** After so many reads the event loop gets a turn, because an answer may come without one. */
const READS_PER_TURN = 64;
/** Announcements of jobs that nobody waits for yet: a webhook may come before the answer to its create. */
const REMEMBERED_NOTICES = 256;
/** A notice that is repeated has its job read so long after the last read. */
const REPEATED_MS = 2_500;
/** On Workers a request may end without a word: what its wait has begun is waited for no longer than this. */
const LOST_MS = 5_000;
/** The longest that a lane is left alone after a 429. */
const LONGEST_HOLD_MS = 60_000;

/**
 * Decides for all waits of one account which job is read when, and by whom.
 *
 * A job rests for its natural interval after each read and is due then. Due jobs are read at the pace of the limit in
 * force, in the order of `rankOf`. What one wait reads, all waits on that job see. But no wait relies on another: each
 * reads and sleeps in the context of its own caller, and a turn that is not taken goes to the next one. On Workers, where
 * nothing of another request may be used, each wait takes its turn by itself when it looks again.
 */
export class JobWatcher {
  readonly #clock: Clock;
  readonly #rhythms: JobRhythms;
  readonly #entries = new Map<string, Entry>();
  readonly #resting = new DueHeap<Entry>();
  /** The waits by their time limits. */
  readonly #deadlines = new DueHeap<Watch>();
  readonly #announced = new Map<string, Notice>();
  readonly #queues: ReadQueues<Entry>;
  /** Jobs of which an event was verified, and that are read before it ends their waits. */
  readonly #ending = new Set<Entry>();
  #reading = 0;
  /** Reads since the event loop had a turn. */
  #readInTurn = 0;
  #turnIsPlanned = false;
  #stopTimer: (() => void) | undefined;

  constructor(clock: Clock, random: () => number = randomOf(clock).next, lengths?: JobLengths) {
    this.#clock = steady(clock);
    this.#queues = new ReadQueues(this.#clock);
    this.#rhythms = new JobRhythms(wallOf(clock), random, lengths);
  }

  /** Whether a wait is open. */
  get busy(): boolean {
    return this.#entries.size > 0;
  }

  /** Begins a wait. */
  join(watch: Watch, id: string, { job, limiter }: { job: Job | undefined; limiter: ReadLimiter }): void {
    if (this.#clock.perRequest) this.#forgetLost();
    const now = this.#clock.now();
    const queue = this.#queues.of(limiter);
    const known = this.#entries.get(id);
    const entry = known ?? this.#rhythms.entryOf(watch, { id, job, now });
    if (known) known.watches.push(watch);
    else {
      this.#entries.set(id, entry);
      this.#resting.put(entry);
    }
    queue.waits++;
    watch.entry = entry;
    watch.queue = queue;
    watch.version = entry.version;
    watch.askedMs = now;
    // On Workers a timer belongs to the request that waits.
    if (!this.#clock.perRequest) watch.dueMs = now + watch.takeTimer();
    if (watch.dueMs < Number.POSITIVE_INFINITY) this.#deadlines.put(watch);
    const notice = this.#announced.get(id);
    if (notice && this.#announced.delete(id)) this.#announce(entry, notice);
    if (watch.pollIntervalMs !== undefined) this.#rest(entry, Math.min(entry.dueMs, now + watch.pollIntervalMs));
    this.#planTurn();
  }

  /** What the wait has to do now. */
  next(watch: Watch): WatchStep {
    const entry = this.#entryOf(watch);
    const now = this.#clock.now();
    watch.askedMs = now;
    if (entry.job && entry.version > watch.version) {
      watch.version = entry.version;
      return { kind: 'look', job: entry.job, progress: this.#rhythms.progressOf(watch, entry.job, now), isRead: true };
    }
    const { event } = entry;
    if (event && watch.takesEvents && event.atMs <= now) return this.#endedBy(entry, event.job);
    if (this.#clock.perRequest) this.#takeTurn(entry, watch);
    if (entry.reader !== watch || entry.reading) return { kind: 'sleep' };
    entry.reading = new AbortController();
    return { kind: 'read', stop: entry.reading };
  }

  /** The wait's read has shown this job. */
  seen(watch: Watch, job: Job): void {
    const entry = this.#entryOf(watch);
    this.#readingEnded(entry, watch);
    const now = this.#clock.now();
    this.#rhythms.seen(entry, job, now);
    entry.version++;
    entry.lastReadMs = now;
    entry.failures = 0;
    entry.lastError = undefined;
    if (isSettled(job)) {
      if (entry.heard === HEARD.nothing) this.#rhythms.wasAnnounced(false);
      this.#forget(entry);
    } else {
      if (entry.eager > 0) entry.eager--;
      this.#rest(entry, now + this.#rhythms.intervalMs(entry));
    }
    for (const other of entry.watches) if (other !== watch) other.wake();
    this.#planTurn();
  }

  /** The wait's read has failed. */
  missed(watch: Watch, { error, ends, askedMs }: Miss): void {
    const entry = this.#entryOf(watch);
    this.#readingEnded(entry, watch);
    const now = this.#clock.now();
    if (error === RESTART) {
      this.#rest(entry, now);
    } else if (!ends) {
      entry.lastReadMs = now;
      entry.failures++;
      entry.lastError = error;
      if (isRateLimited(error)) watch.queue?.pace.hold(Math.min(askedMs, LONGEST_HOLD_MS));
      // Another wait on the job may have a client that works.
      entry.watches.push(...entry.watches.splice(entry.watches.indexOf(watch), 1));
      this.#rest(entry, now + readPauseMs(this.#rhythms.intervalMs(entry), entry.failures, askedMs));
    }
    this.#planTurn();
  }

  /** Ends the wait. */
  leave(watch: Watch): void {
    const { entry, queue } = watch;
    const place = entry?.watches.indexOf(watch) ?? -1;
    if (!entry || !queue || place < 0) return;
    const now = this.#clock.now();
    const isItsTurn = entry.reader === watch;
    const isDue = isItsTurn || (entry.reader === undefined && entry.dueMs <= now);
    queue.waits--;
    this.#deadlines.remove(watch);
    if (place === 0) queue.remove(entry);
    entry.watches.splice(place, 1);
    this.#readingEnded(entry, watch);
    if (entry.watches.length === 0) this.#forget(entry);
    // Its turn goes to the next wait on the job.
    else if (isDue && this.#entries.get(entry.id) === entry) this.#rest(entry, now);
    this.#planTurn();
  }

  /** The job is said to have ended: it is read at once, or a verified event ends its waits. False where nobody waits for it. */
  notify(notice: Notice): boolean {
    const entry = this.#entries.get(notice.id);
    if (!entry) {
      if (!this.#announced.get(notice.id)?.isVerified) keepLast(this.#announced, notice.id, notice, REMEMBERED_NOTICES);
      return false;
    }
    this.#announce(entry, notice);
    this.#planTurn();
    return true;
  }

  /** Makes a read that nobody waits for when one is free. False where that is impossible. */
  readLater(watch: Watch, id: string, read: () => Promise<unknown>): boolean {
    if (this.#clock.perRequest || !watch.queue) return false;
    watch.queue.addLater(id, read);
    this.#planTurn();
    return true;
  }

  #entryOf({ entry }: Watch): Entry {
    if (!entry) throw new TypeError('the wait has not begun');
    return entry;
  }

  #announce(entry: Entry, { event, isVerified }: Notice): void {
    const now = this.#clock.now();
    const heard = isVerified ? HEARD.event : HEARD.hint;
    if (heard <= entry.heard) {
      // A notice that is repeated again and again must not take the reads of other jobs.
      this.#rest(entry, Math.min(entry.dueMs, Math.max(now, entry.lastReadMs + REPEATED_MS)));
      return;
    }
    if (entry.heard === HEARD.nothing) this.#rhythms.wasAnnounced(true);
    entry.heard = heard;
    entry.eager = EAGER_READS;
    if (event) this.#ending.add(entry);
    if (event) entry.event = endByEvent(entry, event, now);
    this.#rest(entry, now);
    // A read that began before may hang, or show the job as it was.
    if (!this.#clock.perRequest) entry.reading?.abort(RESTART);
  }

  #endedBy(entry: Entry, job: Job): WatchStep {
    if (entry.heard !== HEARD.learned) this.#rhythms.completed(entry, job, this.#clock.now() - entry.sinceMs);
    entry.heard = HEARD.learned;
    return { kind: 'look', job, progress: ENDED, isRead: false };
  }

  /** On Workers: this wait reads when the job is due, unless another one does so right now. */
  #takeTurn(entry: Entry, watch: Watch): void {
    const now = this.#clock.now();
    const isTaken = entry.reader !== undefined && now - entry.readerSinceMs < LOST_MS;
    if (entry.dueMs > now || isTaken || (watch.queue?.pace.waitMs(entry.eager > 0, 0) ?? 0) > 0) return;
    if (entry.reader) this.#readingEnded(entry, entry.reader);
    watch.queue?.pace.take();
    this.#grant(entry, watch);
  }

  #grant(entry: Entry, watch: Watch): void {
    entry.reader = watch;
    entry.readerSinceMs = this.#clock.now();
    this.#reading++;
    watch.wake();
  }

  /** Several changes of one tick share a turn. */
  #planTurn(): void {
    if (this.#turnIsPlanned || this.#clock.perRequest || this.#readInTurn >= READS_PER_TURN) return;
    this.#turnIsPlanned = true;
    Promise.resolve().then(() => {
      this.#turnIsPlanned = false;
      this.#turn();
    });
  }

  /** Gives turns to due jobs and sets the one timer, which exists only while there is something to read. */
  #turn(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    const now = this.#clock.now();
    for (let watch = this.#deadlines.first; watch && watch.dueMs <= now; watch = this.#deadlines.first) {
      this.#deadlines.remove(watch);
      watch.expire();
    }
    let nextMs = Math.min(this.#endByEvents(now), (this.#deadlines.first?.dueMs ?? Number.POSITIVE_INFINITY) - now);
    for (let entry = this.#resting.first; entry && entry.dueMs <= now; entry = this.#resting.first) {
      this.#resting.remove(entry);
      entry.watches[0]?.queue?.add(entry);
    }
    nextMs = Math.min(nextMs, (this.#resting.first?.dueMs ?? Number.POSITIVE_INFINITY) - now);
    for (const queue of this.#queues.busy) {
      this.#serve(queue, now);
      if (this.#reading < READS_AT_ONCE) nextMs = Math.min(nextMs, queue.waitMs(this.#reading));
      if (queue.isIdle) this.#queues.busy.delete(queue);
    }
    if (this.#readInTurn >= READS_PER_TURN) nextMs = 0;
    if (nextMs === Number.POSITIVE_INFINITY) return;
    const next = () => {
      this.#readInTurn = 0;
      this.#turn();
    };
    // Reads that nobody waits for do not keep a process alive.
    this.#stopTimer = this.#clock.after(nextMs, next, { isIdle: !this.busy });
  }

  #serve(queue: ReadQueue<Entry>, now: number): void {
    while (this.#reading < READS_AT_ONCE && this.#readInTurn < READS_PER_TURN) {
      const entry = queue.take(now, this.#reading);
      const [watch] = entry?.watches ?? [];
      const later = entry ? undefined : queue.takeLater(this.#reading);
      if (!later && !(entry && watch)) return;
      this.#readInTurn++;
      if (entry && watch) this.#grant(entry, watch);
      else if (later) this.#make(later);
    }
  }

  #make(read: () => Promise<unknown>): void {
    this.#reading++;
    read().finally(() => {
      this.#reading--;
      this.#planTurn();
    });
  }

  /** Ends the waits whose time for a read has passed. Gives the milliseconds until the next one. */
  #endByEvents(now: number): number {
    let nextMs = Number.POSITIVE_INFINITY;
    for (const entry of this.#ending) {
      const leftMs = (entry.event?.atMs ?? now) - now;
      if (leftMs > 0) {
        nextMs = Math.min(nextMs, leftMs);
        continue;
      }
      this.#ending.delete(entry);
      if (entry.watches.every(({ takesEvents }) => takesEvents)) this.#forget(entry);
      for (const watch of entry.watches) if (watch.takesEvents) watch.wake();
      if (entry.reader?.takesEvents) entry.reading?.abort(RESTART);
    }
    return nextMs;
  }

  /** The job rests until then, unless it is being read. */
  #rest(entry: Entry, dueMs: number): void {
    entry.dueMs = dueMs;
    if (entry.reader || entry.watches.length === 0) return;
    entry.watches[0]?.queue?.remove(entry);
    this.#resting.put(entry);
  }

  #forget(entry: Entry): void {
    if (this.#entries.get(entry.id) === entry) this.#entries.delete(entry.id);
    this.#resting.remove(entry);
    this.#ending.delete(entry);
    entry.watches[0]?.queue?.remove(entry);
  }

  #readingEnded(entry: Entry, watch: Watch): void {
    if (entry.reader !== watch) return;
    this.#reading--;
    entry.reading = undefined;
    entry.reader = undefined;
  }

  /** On Workers: drops the waits whose request has ended without a word. */
  #forgetLost(): void {
    const longAgo = this.#clock.now() - 20 * LOST_MS;
    for (const { watches } of this.#entries.values())
      for (const watch of [...watches]) if (watch.askedMs < longAgo) this.leave(watch);
  }
}
