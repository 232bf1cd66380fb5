import { endsWait, isRateLimited, isStrayPage, MAX_WITHOUT_FILE_MS } from '../rules/failure-kind.js';
import { ENDED, type JobProgress, readPauseMs } from '../rules/read-order.js';
import { type Clock, randomOf, steady, wallOf } from '../runtime/clock.js';
import { setAndEvict } from '../runtime/set-and-evict.js';
import { isFinal, isSettled, type Job } from '../schemas/job.js';
import type { JobDurations } from '../store/learned-values.js';
import type { JobNotification } from './notifications.js';
import { type PollLimits, PollQueue } from './poll-queue.js';
import { EAGER_POLLS, JobRhythms, type JobSubscriber, type NewWait, type PolledJob } from './polled-job.js';

/** Reads under way at most: enough at any usual delay also under lifted limits. */
const MAX_POLLS_IN_FLIGHT = 256;
/** After so many reads the event loop gets a turn, because an answer may come without one. */
const POLLS_PER_TURN = 64;
/** Announcements of jobs that nobody waits for yet: a webhook may come before the answer to its create. */
const MAX_NOTIFICATIONS = 256;
/** A notification that is repeated has its job read so long after the last read. */
const REPEATED_MS = 2_500;
/** A verified event waits this long for a read, and then ends the wait itself. */
const EVENT_DELAY_MS = 2_000;
/** On Workers a request may end without a word: what its wait has begun is waited for no longer than this. */
const ABANDONED_MS = 5_000;
/** Jobs that are read for their charge alone, at most. */
const MAX_CHARGE_JOBS = 10_000;
const DEFAULT_MAX_RETRY_AFTER_MS = 120_000;

/** Why a read is broken off that must be made again. Copies of the package share it. */
export const RESTART = Symbol.for('gen-client.poll-again');

interface PollResult {
  readonly job: Job;
  readonly progress: JobProgress;
  readonly isRead: boolean;
  /** If true, the job has been completed without its file for too long. */
  readonly isFileMissing: boolean;
}

/**
 * Decides for all waits of one account which job is read when, and by whom.
 *
 * A job rests for its natural interval after each read and is due then. Due jobs are read at the pace of the limit in
 * force, in the order of `rankOf`. What one wait reads, all waits on that job see. But no wait relies on another: each
 * reads and sleeps in the context of its own caller, and a turn that is not taken goes to the next one. On Workers, where
 * nothing of another request may be used, each wait takes its turn by itself when it looks again.
 */
export class PollScheduler {
  readonly #clock: Clock;
  readonly #rhythms: JobRhythms;
  readonly #entries = new Map<string, PolledJob>();
  /** The jobs of which only the charge is to be read. */
  readonly #chargeOnly = new Map<string, PolledJob>();
  readonly #resting = new Set<PolledJob>();
  readonly #announced = new Map<string, JobNotification>();
  /** One queue for all waits whose reads go through the same rate limits. Its pace goes on while nobody waits. */
  readonly #queues = new WeakMap<PollLimits, PollQueue<PolledJob>>();
  /** The queues that may have jobs which are due. */
  readonly #busy = new Set<PollQueue<PolledJob>>();
  #inFlight = 0;
  #polledInTurn = 0;
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
  get pollsForCharge(): boolean {
    return !this.#clock.perRequest && this.#chargeOnly.size < MAX_CHARGE_JOBS;
  }

  join(limits: PollLimits, start: NewWait): JobSubscriber {
    const { id, pollIntervalMs, maxRetryAfterMs, wait, isChargeOnly } = start;
    if (this.#clock.perRequest) this.#dropAbandoned();
    const now = this.#clock.now();
    const queue = this.#queues.get(limits) ?? new PollQueue(limits, now);
    this.#queues.set(limits, queue);
    const entries = this.#entriesOf(start);
    const entry = entries.get(id) ?? this.#rhythms.begin(start, now);
    const known = { progress: undefined, version: entry.version, askedMs: now };
    const subscriber = { entry, queue, wait, pollIntervalMs, maxRetryAfterMs, ...known };
    entry.subscribers.push(subscriber);
    if (entry.subscribers.length === 1) {
      entries.set(id, entry);
      this.#resting.add(entry);
    }
    const notification = isChargeOnly ? undefined : this.#announced.get(id);
    if (notification && this.#announced.delete(id)) this.#announce(entry, notification);
    if (pollIntervalMs !== undefined) this.#rest(entry, Math.min(entry.dueMs, now + pollIntervalMs));
    this.#planTurn();
    return subscriber;
  }

  /** What the wait has to do now: look at the job, read it, or sleep. */
  next(subscriber: JobSubscriber): PollResult | 'read' | 'sleep' {
    const { entry } = subscriber;
    const now = this.#clock.now();
    subscriber.askedMs = now;
    if (entry.job && entry.version > subscriber.version) {
      const { job, version } = entry;
      subscriber.version = version;
      const isFileMissing = now - (entry.filelessSinceMs ?? now) >= MAX_WITHOUT_FILE_MS;
      return { job, progress: this.#rhythms.progressOf(subscriber, job, now), isRead: true, isFileMissing };
    }
    if (entry.event && entry.event.atMs <= now) {
      const { job } = entry.event;
      this.#rhythms.completed(entry, job, now - entry.sinceMs);
      return { job, progress: ENDED, isRead: false, isFileMissing: false };
    }
    if (this.#clock.perRequest) this.#pollIfDue(subscriber, now);
    return entry.reader === subscriber ? 'read' : 'sleep';
  }

  pollSucceeded(subscriber: JobSubscriber, job: Job): void {
    const { entry } = subscriber;
    this.#endPoll(subscriber);
    const now = this.#clock.now();
    this.#rhythms.pollSucceeded(entry, job, now);
    entry.version++;
    entry.lastReadMs = now;
    entry.lastPollMs = now;
    entry.failures = 0;
    entry.pages = 0;
    entry.lastError = undefined;
    entry.filelessSinceMs = isFinal(job) && !isSettled(job) ? (entry.filelessSinceMs ?? now) : undefined;
    if (isSettled(job)) this.#drop(entry);
    else {
      if (entry.eager > 0) entry.eager--;
      this.#rest(entry, now + this.#rhythms.intervalMs(entry));
    }
    for (const other of entry.subscribers) if (other !== subscriber) other.wait.wake();
    this.#planTurn();
  }

  /** The wait's read has failed. Whether that ends the wait: it will not read again. */
  pollFailed(subscriber: JobSubscriber, error: unknown): boolean {
    const { entry, queue, maxRetryAfterMs } = subscriber;
    const pages = isStrayPage(error) ? entry.pages + 1 : 0;
    const ends = endsWait(error, pages);
    this.#endPoll(subscriber);
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
      entry.subscribers.push(...entry.subscribers.splice(entry.subscribers.indexOf(subscriber), 1));
      this.#rest(entry, now + readPauseMs(this.#rhythms.intervalMs(entry), entry.failures, asked));
    }
    this.#planTurn();
    return ends;
  }

  /** Whether the last poll of the job ended a poll interval ago or longer: for example, its process slept. */
  isOutdated({ entry }: JobSubscriber): boolean {
    return this.#clock.now() - entry.lastPollMs >= this.#rhythms.intervalMs(entry);
  }

  /** Whether the wait's poll in flight is as old. */
  hasStalled(subscriber: JobSubscriber): boolean {
    const { entry } = subscriber;
    return entry.reader === subscriber && this.#clock.now() - entry.readerSinceMs >= this.#rhythms.intervalMs(entry);
  }

  leave(subscriber: JobSubscriber): void {
    const { entry } = subscriber;
    const at = entry.subscribers.indexOf(subscriber);
    if (at < 0) return;
    entry.subscribers.splice(at, 1);
    this.#endPoll(subscriber);
    if (entry.subscribers.length === 0) this.#drop(entry);
    // Its turn goes to the next wait on the job.
    else if (this.#entriesOf(entry).get(entry.id) === entry) this.#rest(entry, entry.dueMs);
    this.#planTurn();
  }

  /** The job is said to have ended: it is read at once, or a verified event ends its waits. False where nobody waits for it. */
  notify(notification: JobNotification): boolean {
    const entry = this.#entries.get(notification.id);
    if (!entry) {
      if (!this.#announced.get(notification.id)?.isVerified)
        setAndEvict(this.#announced, notification.id, notification, MAX_NOTIFICATIONS);
      return false;
    }
    this.#announce(entry, notification);
    this.#planTurn();
    return true;
  }

  #announce(entry: PolledJob, { event, isVerified = false }: JobNotification): void {
    const now = this.#clock.now();
    if (entry.announcement !== undefined && (entry.announcement === 'verified' || !isVerified)) {
      // A notification that is repeated again and again must not take the reads of other jobs.
      this.#rest(entry, Math.min(entry.dueMs, Math.max(now, entry.lastReadMs + REPEATED_MS)));
      return;
    }
    entry.announcement = isVerified ? 'verified' : 'hint';
    entry.eager = EAGER_POLLS;
    if (event) this.#endByEvent(entry, event, now);
    if (this.#entries.get(entry.id) !== entry) return;
    this.#rest(entry, now);
    // A read that began before may hang, or show the job as it was.
    if (!this.#clock.perRequest) entry.reader?.wait.restart();
  }

  /** A verified event ends the waits: at once, or after a while in which the job can be read. */
  #endByEvent(entry: PolledJob, event: Job, now: number): void {
    const [subscriber] = entry.subscribers;
    const isFree = subscriber !== undefined && subscriber.queue.freeInMs(now) <= EVENT_DELAY_MS;
    const afterMs = isFree ? EVENT_DELAY_MS : 0;
    const { finalTokenCost: _, providerOutputExpiresAt: __, completedAt: ___, ...known } = entry.job ?? event;
    const end = () => {
      this.#drop(entry);
      for (const { wait } of entry.subscribers) wait.wake();
      entry.reader?.wait.restart();
    };
    const isChargeOnly = isFree && !this.#clock.perRequest;
    const stopTimer = isChargeOnly ? this.#clock.after(afterMs, end) : undefined;
    entry.event = { job: { ...known, ...event }, atMs: now + afterMs, stopTimer };
    // At once: a turn in between would spend a read on it.
    if (!isFree && !this.#clock.perRequest) end();
  }

  /** On Workers: this wait reads when the job is due, unless another one does so right now. */
  #pollIfDue(subscriber: JobSubscriber, now: number): void {
    const { entry, queue } = subscriber;
    const isTaken = entry.reader !== undefined && now - entry.readerSinceMs < ABANDONED_MS;
    if (entry.dueMs > now || isTaken || !queue.tryTake(now, entry.eager > 0)) return;
    if (entry.reader) this.#endPoll(entry.reader);
    this.#grant(subscriber, now);
  }

  #grant(subscriber: JobSubscriber, now: number): void {
    subscriber.entry.reader = subscriber;
    subscriber.entry.readerSinceMs = now;
    this.#inFlight++;
    subscriber.wait.wake();
  }

  /** Several changes of one tick share a turn. */
  #planTurn(): void {
    if (this.#turnIsPlanned || this.#clock.perRequest || this.#polledInTurn >= POLLS_PER_TURN) return;
    this.#turnIsPlanned = true;
    Promise.resolve().then(() => {
      this.#turnIsPlanned = false;
      this.#runTurn();
    });
  }

  /** Gives turns to due jobs and sets the one timer, which exists only while there is something to read. */
  #runTurn(): void {
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
      const [subscriber] = entry.subscribers;
      if (subscriber) this.#busy.add(subscriber.queue);
      subscriber?.queue.add(entry);
    }
    for (const queue of this.#busy) nextMs = Math.min(nextMs, this.#serve(queue, now));
    if (this.#polledInTurn >= POLLS_PER_TURN) nextMs = 0;
    if (nextMs === Number.POSITIVE_INFINITY) return;
    const next = () => {
      this.#polledInTurn = 0;
      this.#runTurn();
    };
    // Reads that nobody waits for do not keep a process alive.
    this.#stopTimer = this.#clock.after(nextMs, next, { isIdle: this.#entries.size === 0 });
  }

  /** Reads what may be read. Gives the milliseconds until there is more. */
  #serve(queue: PollQueue<PolledJob>, now: number): number {
    while (this.#inFlight < MAX_POLLS_IN_FLIGHT && this.#polledInTurn < POLLS_PER_TURN) {
      const entry = queue.next(now, this.#inFlight);
      if (typeof entry === 'number') return entry;
      if (entry === undefined) {
        this.#busy.delete(queue);
        break;
      }
      this.#polledInTurn++;
      const [subscriber] = entry.subscribers;
      if (subscriber) this.#grant(subscriber, now);
    }
    return Number.POSITIVE_INFINITY;
  }

  /** The job rests until then, unless it is being read. */
  #rest(entry: PolledJob, dueMs: number): void {
    entry.dueMs = dueMs;
    if (entry.reader) return;
    for (const queue of this.#busy) queue.remove(entry);
    this.#resting.add(entry);
  }

  #drop(entry: PolledJob): void {
    const entries = this.#entriesOf(entry);
    if (entries.get(entry.id) === entry) entries.delete(entry.id);
    entry.event?.stopTimer?.();
    this.#resting.delete(entry);
    for (const queue of this.#busy) queue.remove(entry);
  }

  #entriesOf({ isChargeOnly }: Pick<NewWait, 'isChargeOnly'>): Map<string, PolledJob> {
    return isChargeOnly ? this.#chargeOnly : this.#entries;
  }

  #endPoll(subscriber: JobSubscriber): void {
    if (subscriber.entry.reader !== subscriber) return;
    this.#inFlight--;
    subscriber.entry.reader = undefined;
  }

  /** On Workers: drops the waits whose request has ended without a word. */
  #dropAbandoned(): void {
    const longAgo = this.#clock.now() - 20 * ABANDONED_MS;
    for (const { subscribers } of this.#entries.values())
      for (const subscriber of [...subscribers]) if (subscriber.askedMs < longAgo) this.leave(subscriber);
  }
}

function askedMs(error: unknown, most = DEFAULT_MAX_RETRY_AFTER_MS): number {
  const asked: unknown = typeof error === 'object' && error !== null ? Reflect.get(error, 'retryAfterMs') : undefined;
  return typeof asked === 'number' ? Math.min(asked, most) : 0;
}
