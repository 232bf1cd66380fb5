import { isRateLimited } from '../rules/fate.js';
import { ENDED, readPauseMs } from '../rules/read-order.js';
import { type Clock, randomOf, steady, wallOf } from '../runtime/clock.js';
import { keepLast } from '../runtime/keep-last.js';
import { isSettled, type Job } from '../schemas/job.js';
import type { JobLengths } from '../store/facts.js';
import type { Notice } from './notices.js';
import { DueHeap, type LaterRead, ReadQueue } from './read-queue.js';
import {
  EAGER_READS,
  type Entry,
  endByEvent,
  HEARD,
  JobRhythms,
  type JobSubscriber,
  type NewWait,
  RESTART,
  type ScheduledStep,
} from './waited-job.js';

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

/** Stand for rate limits that are no object. */
const NAMED = { documented: {}, off: {} } as const;

/** A read that failed. */
interface Miss {
  readonly error: unknown;
  /** Whether the wait will not read again. */
  readonly ends: boolean;
  /** How long the service asks to wait, in milliseconds; 0 where it does not. */
  readonly askedMs: number;
}

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
  readonly #announced = new Map<string, Notice>();
  /** One queue for all waits whose reads go through the same rate limits. Its pace goes on while nobody waits. */
  readonly #queues = new WeakMap<object, ReadQueue<Entry>>();
  /** The queues with something to read, now or later. */
  readonly #busy = new Set<ReadQueue<Entry>>();
  /** Jobs of which an event was verified, and that are read before it ends their waits. */
  readonly #ending = new Set<Entry>();
  #reading = 0;
  /** Reads since the event loop had a turn. */
  #readInTurn = 0;
  #turnIsPlanned = false;
  #stopTimer: (() => void) | undefined;

  constructor(clock: Clock, random: () => number = randomOf(clock).next, lengths?: JobLengths) {
    this.#clock = steady(clock);
    this.#rhythms = new JobRhythms(wallOf(clock), random, lengths);
  }

  /** Whether a wait is open. */
  get busy(): boolean {
    return this.#entries.size > 0;
  }

  /** Begins a wait. */
  join({ id, job, limits, ...options }: NewWait): JobSubscriber {
    if (this.#clock.perRequest) this.#forgetLost();
    const { pollIntervalMs } = options;
    const now = this.#clock.now();
    const key = typeof limits === 'string' ? NAMED[limits] : limits;
    const queue = this.#queues.get(key) ?? new ReadQueue(limits, now);
    this.#queues.set(key, queue);
    this.#busy.add(queue);
    queue.waits++;
    const entry = this.#entries.get(id) ?? this.#rhythms.entryOf(id, job, now, pollIntervalMs);
    const subscriber = { ...options, entry, queue, share: undefined, version: entry.version, askedMs: now };
    entry.subscribers.push(subscriber);
    if (entry.subscribers.length === 1) {
      this.#entries.set(id, entry);
      this.#resting.put(entry);
    }
    const notice = this.#announced.get(id);
    if (notice && this.#announced.delete(id)) this.#announce(entry, notice);
    if (pollIntervalMs !== undefined) this.#rest(entry, Math.min(entry.dueMs, now + pollIntervalMs));
    this.#planTurn();
    return subscriber;
  }

  /** What the wait has to do now. */
  next(subscriber: JobSubscriber): ScheduledStep {
    const { entry } = subscriber;
    const now = this.#clock.now();
    subscriber.askedMs = now;
    if (entry.job && entry.version > subscriber.version) {
      subscriber.version = entry.version;
      return {
        kind: 'look',
        job: entry.job,
        progress: this.#rhythms.progressOf(subscriber, entry.job, now),
        isRead: true,
      };
    }
    if (entry.event && entry.event.atMs <= now) {
      const { job } = entry.event;
      if (entry.heard !== HEARD.learned) this.#rhythms.completed(entry, job, now - entry.sinceMs);
      entry.heard = HEARD.learned;
      return { kind: 'look', job, progress: ENDED, isRead: false };
    }
    if (this.#clock.perRequest) this.#takeTurn(subscriber, now);
    if (entry.reader !== subscriber || entry.reading) return { kind: 'sleep' };
    entry.reading = new AbortController();
    return { kind: 'read', stop: entry.reading };
  }

  /** The wait's read has shown this job. */
  seen(subscriber: JobSubscriber, job: Job): void {
    const { entry } = subscriber;
    this.#readingEnded(subscriber);
    const now = this.#clock.now();
    this.#rhythms.seen(entry, job, now);
    entry.version++;
    entry.lastReadMs = now;
    entry.failures = 0;
    entry.lastError = undefined;
    if (isSettled(job)) this.#forget(entry);
    else {
      if (entry.eager > 0) entry.eager--;
      this.#rest(entry, now + this.#rhythms.intervalMs(entry));
    }
    for (const other of entry.subscribers) if (other !== subscriber) other.wait.wake();
    this.#planTurn();
  }

  /** The wait's read has failed. */
  missed(subscriber: JobSubscriber, { error, ends, askedMs }: Miss): void {
    const { entry } = subscriber;
    this.#readingEnded(subscriber);
    const now = this.#clock.now();
    if (error === RESTART) {
      this.#rest(entry, now);
    } else if (!ends) {
      entry.lastReadMs = now;
      entry.failures++;
      entry.lastError = error;
      if (isRateLimited(error)) subscriber.queue.hold(now, askedMs);
      // Another wait on the job may have a client that works.
      entry.subscribers.push(...entry.subscribers.splice(entry.subscribers.indexOf(subscriber), 1));
      this.#rest(entry, now + readPauseMs(this.#rhythms.intervalMs(entry), entry.failures, askedMs));
    }
    this.#planTurn();
  }

  /** Ends the wait. */
  leave(subscriber: JobSubscriber): void {
    const { entry, queue } = subscriber;
    const place = entry.subscribers.indexOf(subscriber);
    if (place < 0) return;
    const now = this.#clock.now();
    const isDue = entry.reader === subscriber || (entry.reader === undefined && entry.dueMs <= now);
    queue.waits--;
    if (place === 0) queue.remove(entry);
    entry.subscribers.splice(place, 1);
    this.#readingEnded(subscriber);
    if (entry.subscribers.length === 0) this.#forget(entry);
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
  readLater({ queue }: JobSubscriber, later: LaterRead): boolean {
    if (this.#clock.perRequest || !queue.addLater(later)) return false;
    this.#busy.add(queue);
    this.#planTurn();
    return true;
  }

  #announce(entry: Entry, { event, isVerified }: Notice): void {
    const now = this.#clock.now();
    const heard = isVerified ? HEARD.event : HEARD.hint;
    if (heard <= entry.heard) {
      // A notice that is repeated again and again must not take the reads of other jobs.
      this.#rest(entry, Math.min(entry.dueMs, Math.max(now, entry.lastReadMs + REPEATED_MS)));
      return;
    }
    if (entry.heard === HEARD.nothing) this.#rhythms.announced();
    entry.heard = heard;
    entry.eager = EAGER_READS;
    if (event) this.#ending.add(entry);
    if (event) entry.event = endByEvent(entry, event, now);
    this.#rest(entry, now);
    // A read that began before may hang, or show the job as it was.
    if (!this.#clock.perRequest) entry.reading?.abort(RESTART);
  }

  /** On Workers: this wait reads when the job is due, unless another one does so right now. */
  #takeTurn(subscriber: JobSubscriber, now: number): void {
    const { entry } = subscriber;
    const isTaken = entry.reader !== undefined && now - entry.readerSinceMs < LOST_MS;
    if (entry.dueMs > now || isTaken || !subscriber.queue.takes(now, entry.eager > 0)) return;
    if (entry.reader) this.#readingEnded(entry.reader);
    this.#grant(subscriber, now);
  }

  #grant(subscriber: JobSubscriber, now: number): void {
    subscriber.entry.reader = subscriber;
    subscriber.entry.readerSinceMs = now;
    this.#reading++;
    subscriber.wait.wake();
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
    let nextMs = this.#ending.size > 0 ? this.#endByEvents(now) : Number.POSITIVE_INFINITY;
    for (let entry = this.#resting.first; entry; entry = this.#resting.first) {
      if (entry.dueMs > now) {
        nextMs = Math.min(nextMs, entry.dueMs - now);
        break;
      }
      this.#resting.remove(entry);
      entry.subscribers[0]?.queue.add(entry);
    }
    for (const queue of this.#busy) {
      nextMs = Math.min(nextMs, this.#serve(queue, now));
      if (queue.isIdle) this.#busy.delete(queue);
    }
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
  #serve(queue: ReadQueue<Entry>, now: number): number {
    while (this.#reading < READS_AT_ONCE && this.#readInTurn < READS_PER_TURN) {
      const { entry, later, waitMs } = queue.next(now, this.#reading);
      const [subscriber] = entry?.subscribers ?? [];
      if (waitMs > 0) return waitMs;
      this.#readInTurn++;
      if (subscriber) this.#grant(subscriber, now);
      if (!later) continue;
      this.#reading++;
      later(this.#clock.now).finally(() => {
        this.#reading--;
        // One that has failed is made again.
        this.#busy.add(queue);
        this.#planTurn();
      });
    }
    return Number.POSITIVE_INFINITY;
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
      this.#forget(entry);
      for (const { wait } of entry.subscribers) wait.wake();
      entry.reading?.abort(RESTART);
    }
    return nextMs;
  }

  /** The job rests until then, unless it is being read. */
  #rest(entry: Entry, dueMs: number): void {
    entry.dueMs = dueMs;
    if (entry.reader || entry.subscribers.length === 0) return;
    entry.subscribers[0]?.queue.remove(entry);
    this.#resting.put(entry);
  }

  #forget(entry: Entry): void {
    if (this.#entries.get(entry.id) === entry) this.#entries.delete(entry.id);
    this.#resting.remove(entry);
    this.#ending.delete(entry);
    entry.subscribers[0]?.queue.remove(entry);
  }

  #readingEnded(subscriber: JobSubscriber): void {
    if (subscriber.entry.reader !== subscriber) return;
    this.#reading--;
    subscriber.entry.reading = undefined;
    subscriber.entry.reader = undefined;
  }

  /** On Workers: drops the waits whose request has ended without a word. */
  #forgetLost(): void {
    const longAgo = this.#clock.now() - 20 * LOST_MS;
    for (const { subscribers } of this.#entries.values())
      for (const subscriber of [...subscribers]) if (subscriber.askedMs < longAgo) this.leave(subscriber);
  }
}
