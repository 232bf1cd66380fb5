import { endsWait, isRateLimited, isStrayPage, MAX_WITHOUT_FILE_MS } from '../rules/failure-kind.js';
import { ENDED, type JobProgress, readPauseMs } from '../rules/read-order.js';
import { type Clock, randomOf, steady, wallOf } from '../runtime/clock.js';
import { keepLast } from '../runtime/keep-last.js';
import { isFinal, isSettled, type Job } from '../schemas/job.js';
import type { JobDurations } from '../store/learned-values.js';
import type { Notice } from './notices.js';
import { type ReadLimits, ReadQueue } from './read-queue.js';
import { EAGER_READS, JobRhythms, type NewWait, type WaitedJob, type WaitPlace } from './waited-job.js';

/** Reads under way at most: enough at any usual delay also under lifted limits. */
const READS_AT_ONCE = 256;
/** After so many reads the event loop gets a turn, because an answer may come without one. */
const READS_PER_TURN = 64;
/** Announcements of jobs that nobody waits for yet: a webhook may come before the answer to its create. */
const REMEMBERED_NOTICES = 256;
/** A notice that is repeated has its job read so long after the last read. */
const REPEATED_MS = 2_500;
/** A verified event waits this long for a read, and then ends the wait itself. */
const EVENT_WAITS_MS = 2_000;
/** On Workers a request may end without a word: what its wait has begun is waited for no longer than this. */
const LOST_MS = 5_000;
/** Jobs that are read for their charge alone, at most. */
const LATER_JOBS = 10_000;
const DEFAULT_MAX_RETRY_AFTER_MS = 120_000;

/** Why a read is broken off that must be made again. Copies of the package share it. */
export const RESTART = Symbol.for('gen-client.read-again');

interface Shown {
  readonly job: Job;
  readonly progress: JobProgress;
  readonly isRead: boolean;
  /** If true, the job has been completed without its file for too long. */
  readonly hasLostFile: boolean;
}

/**
 * Decides for all waits of one account which job is read when, and by whom.
 *
 * A job rests for its natural interval after each read and is due then. Due jobs are read at the pace of the limit in
 * force, in the order of `rankOf`. What one wait reads, all waits on that job see. But no wait relies on another: each
 * reads and sleeps in the context of its own caller, and a turn that is not taken goes to the next one. On Workers, where
 * nothing of another request may be used, each wait takes its turn by itself when it looks again.
 */
export class ReadScheduler {
  readonly #clock: Clock;
  readonly #rhythms: JobRhythms;
  readonly #entries = new Map<string, WaitedJob>();
  /** The jobs of which only the charge is to be read. */
  readonly #later = new Map<string, WaitedJob>();
  readonly #resting = new Set<WaitedJob>();
  readonly #announced = new Map<string, Notice>();
  /** One queue for all waits whose reads go through the same rate limits. Its pace goes on while nobody waits. */
  readonly #queues = new WeakMap<ReadLimits, ReadQueue<WaitedJob>>();
  /** The queues that may have jobs which are due. */
  readonly #busy = new Set<ReadQueue<WaitedJob>>();
  #reading = 0;
  #readInTurn = 0;
  #turnIsPlanned = false;
  #stopTimer: (() => void) | undefined;

  constructor(clock: Clock, random: () => number = randomOf(clock).next, lengths?: JobDurations) {
    this.#clock = steady(clock);
    this.#rhythms = new JobRhythms(wallOf(clock), random, lengths);
  }

  get busy(): boolean {
    return this.#entries.size > 0;
  }

  /** Whether another job may be read for its charge alone. */
  get readsLater(): boolean {
    return !this.#clock.perRequest && this.#later.size < LATER_JOBS;
  }

  join(limits: ReadLimits, start: NewWait): WaitPlace {
    const { id, pollIntervalMs, maxRetryAfterMs, wait, isLater } = start;
    if (this.#clock.perRequest) this.#forgetLost();
    const now = this.#clock.now();
    const queue = this.#queues.get(limits) ?? new ReadQueue(limits, now);
    this.#queues.set(limits, queue);
    const entries = this.#entriesOf(start);
    const entry = entries.get(id) ?? this.#rhythms.begin(start, now);
    const known = { progress: undefined, version: entry.version, askedMs: now };
    const place = { entry, queue, wait, pollIntervalMs, maxRetryAfterMs, ...known };
    entry.places.push(place);
    if (entry.places.length === 1) {
      entries.set(id, entry);
      this.#resting.add(entry);
    }
    const notice = isLater ? undefined : this.#announced.get(id);
    if (notice && this.#announced.delete(id)) this.#announce(entry, notice);
    if (pollIntervalMs !== undefined) this.#rest(entry, Math.min(entry.dueMs, now + pollIntervalMs));
    this.#planTurn();
    return place;
  }

  /** What the wait has to do now: look at the job, read it, or sleep. */
  next(place: WaitPlace): Shown | 'read' | 'sleep' {
    const { entry } = place;
    const now = this.#clock.now();
    place.askedMs = now;
    if (entry.job && entry.version > place.version) {
      const { job, version } = entry;
      place.version = version;
      const hasLostFile = now - (entry.filelessSinceMs ?? now) >= MAX_WITHOUT_FILE_MS;
      return { job, progress: this.#rhythms.progressOf(place, job, now), isRead: true, hasLostFile };
    }
    if (entry.event && entry.event.atMs <= now) {
      const { job } = entry.event;
      this.#rhythms.completed(entry, job, now - entry.sinceMs);
      return { job, progress: ENDED, isRead: false, hasLostFile: false };
    }
    if (this.#clock.perRequest) this.#takeTurn(place, now);
    return entry.reader === place ? 'read' : 'sleep';
  }

  pollSucceeded(place: WaitPlace, job: Job): void {
    const { entry } = place;
    this.#readingEnded(place);
    const now = this.#clock.now();
    this.#rhythms.pollSucceeded(entry, job, now);
    entry.version++;
    entry.lastReadMs = now;
    entry.lastPollMs = now;
    entry.failures = 0;
    entry.pages = 0;
    entry.lastError = undefined;
    entry.filelessSinceMs = isFinal(job) && !isSettled(job) ? (entry.filelessSinceMs ?? now) : undefined;
    if (isSettled(job)) this.#forget(entry);
    else {
      if (entry.eager > 0) entry.eager--;
      this.#rest(entry, now + this.#rhythms.intervalMs(entry));
    }
    for (const other of entry.places) if (other !== place) other.wait.wake();
    this.#planTurn();
  }

  /** The wait's read has failed. Whether that ends the wait: it will not read again. */
  pollFailed(place: WaitPlace, error: unknown): boolean {
    const { entry, queue, maxRetryAfterMs } = place;
    const pages = isStrayPage(error) ? entry.pages + 1 : 0;
    const ends = endsWait(error, pages);
    this.#readingEnded(place);
    const now = this.#clock.now();
    if (error !== RESTART) Object.assign(entry, { lastPollMs: now, pages });
    if (error === RESTART) this.#rest(entry, now);
    else if (!ends) {
      const asked = askedMs(error, maxRetryAfterMs);
      entry.lastReadMs = now;
      entry.failures++;
      entry.lastError = error;
      if (isRateLimited(error)) queue.hold(now, asked);
      // Another wait on the job may have a client that works.
      entry.places.push(...entry.places.splice(entry.places.indexOf(place), 1));
      this.#rest(entry, now + readPauseMs(this.#rhythms.intervalMs(entry), entry.failures, asked));
    }
    this.#planTurn();
    return ends;
  }

  /** Whether the last poll of the job ended a poll interval ago or longer: for example, its process slept. */
  isOutdated({ entry }: WaitPlace): boolean {
    return this.#clock.now() - entry.lastPollMs >= this.#rhythms.intervalMs(entry);
  }

  /** Whether the wait's poll in flight is as old. */
  hasStalled(place: WaitPlace): boolean {
    const { entry } = place;
    return entry.reader === place && this.#clock.now() - entry.readerSinceMs >= this.#rhythms.intervalMs(entry);
  }

  leave(place: WaitPlace): void {
    const { entry } = place;
    const at = entry.places.indexOf(place);
    if (at < 0) return;
    entry.places.splice(at, 1);
    this.#readingEnded(place);
    if (entry.places.length === 0) this.#forget(entry);
    // Its turn goes to the next wait on the job.
    else if (this.#entriesOf(entry).get(entry.id) === entry) this.#rest(entry, entry.dueMs);
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

  #announce(entry: WaitedJob, { event, isVerified = false }: Notice): void {
    const now = this.#clock.now();
    if (entry.announcement !== undefined && (entry.announcement === 'verified' || !isVerified)) {
      // A notice that is repeated again and again must not take the reads of other jobs.
      this.#rest(entry, Math.min(entry.dueMs, Math.max(now, entry.lastReadMs + REPEATED_MS)));
      return;
    }
    entry.announcement = isVerified ? 'verified' : 'hint';
    entry.eager = EAGER_READS;
    if (event) this.#endByEvent(entry, event, now);
    if (this.#entries.get(entry.id) !== entry) return;
    this.#rest(entry, now);
    // A read that began before may hang, or show the job as it was.
    if (!this.#clock.perRequest) entry.reader?.wait.restart();
  }

  /** A verified event ends the waits: at once, or after a while in which the job can be read. */
  #endByEvent(entry: WaitedJob, event: Job, now: number): void {
    const [place] = entry.places;
    const isFree = place !== undefined && place.queue.freeInMs(now) <= EVENT_WAITS_MS;
    const afterMs = isFree ? EVENT_WAITS_MS : 0;
    const { finalTokenCost: _, providerOutputExpiresAt: __, completedAt: ___, ...known } = entry.job ?? event;
    const end = () => {
      this.#forget(entry);
      for (const { wait } of entry.places) wait.wake();
      entry.reader?.wait.restart();
    };
    const isLater = isFree && !this.#clock.perRequest;
    const stopTimer = isLater ? this.#clock.after(afterMs, end) : undefined;
    entry.event = { job: { ...known, ...event }, atMs: now + afterMs, stopTimer };
    // At once: a turn in between would spend a read on it.
    if (!isFree && !this.#clock.perRequest) end();
  }

  /** On Workers: this wait reads when the job is due, unless another one does so right now. */
  #takeTurn(place: WaitPlace, now: number): void {
    const { entry, queue } = place;
    const isTaken = entry.reader !== undefined && now - entry.readerSinceMs < LOST_MS;
    if (entry.dueMs > now || isTaken || !queue.takes(now, entry.eager > 0)) return;
    if (entry.reader) this.#readingEnded(entry.reader);
    this.#grant(place, now);
  }

  #grant(place: WaitPlace, now: number): void {
    place.entry.reader = place;
    place.entry.readerSinceMs = now;
    this.#reading++;
    place.wait.wake();
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
    let nextMs = Number.POSITIVE_INFINITY;
    for (const entry of this.#resting) {
      if (entry.dueMs > now) {
        nextMs = Math.min(nextMs, entry.dueMs - now);
        continue;
      }
      this.#resting.delete(entry);
      const [place] = entry.places;
      if (place) this.#busy.add(place.queue);
      place?.queue.add(entry);
    }
    for (const queue of this.#busy) nextMs = Math.min(nextMs, this.#serve(queue, now));
    if (this.#readInTurn >= READS_PER_TURN) nextMs = 0;
    if (nextMs === Number.POSITIVE_INFINITY) return;
    const next = () => {
      this.#readInTurn = 0;
      this.#turn();
    };
    // Reads that nobody waits for do not keep a process alive.
    this.#stopTimer = this.#clock.after(nextMs, next, { isIdle: this.#entries.size === 0 });
  }

  /** Reads what may be read. Gives the milliseconds until there is more. */
  #serve(queue: ReadQueue<WaitedJob>, now: number): number {
    while (this.#reading < READS_AT_ONCE && this.#readInTurn < READS_PER_TURN) {
      const entry = queue.next(now, this.#reading);
      if (typeof entry === 'number') return entry;
      if (entry === undefined) {
        this.#busy.delete(queue);
        break;
      }
      this.#readInTurn++;
      const [place] = entry.places;
      if (place) this.#grant(place, now);
    }
    return Number.POSITIVE_INFINITY;
  }

  /** The job rests until then, unless it is being read. */
  #rest(entry: WaitedJob, dueMs: number): void {
    entry.dueMs = dueMs;
    if (entry.reader) return;
    for (const queue of this.#busy) queue.remove(entry);
    this.#resting.add(entry);
  }

  #forget(entry: WaitedJob): void {
    const entries = this.#entriesOf(entry);
    if (entries.get(entry.id) === entry) entries.delete(entry.id);
    entry.event?.stopTimer?.();
    this.#resting.delete(entry);
    for (const queue of this.#busy) queue.remove(entry);
  }

  #entriesOf({ isLater }: Pick<NewWait, 'isLater'>): Map<string, WaitedJob> {
    return isLater ? this.#later : this.#entries;
  }

  #readingEnded(place: WaitPlace): void {
    if (place.entry.reader !== place) return;
    this.#reading--;
    place.entry.reader = undefined;
  }

  /** On Workers: drops the waits whose request has ended without a word. */
  #forgetLost(): void {
    const longAgo = this.#clock.now() - 20 * LOST_MS;
    for (const { places } of this.#entries.values())
      for (const place of [...places]) if (place.askedMs < longAgo) this.leave(place);
  }
}

function askedMs(error: unknown, most = DEFAULT_MAX_RETRY_AFTER_MS): number {
  const asked: unknown = typeof error === 'object' && error !== null ? Reflect.get(error, 'retryAfterMs') : undefined;
  return typeof asked === 'number' ? Math.min(asked, most) : 0;
}
