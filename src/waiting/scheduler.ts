import { endsWait, isRateLimited, isStrayPage, MAX_WITHOUT_FILE_MS } from '../rules/failure-kind.js';
import { ENDED, type JobProgress, pollPauseMs } from '../rules/polling.js';
import { type Clock, randomOf, steady, wallOf } from '../runtime/clock.js';
import { setAndEvict } from '../runtime/set-and-evict.js';
import { isObject } from '../schemas/envelope.js';
import { isFinal, isSettled, type Job } from '../schemas/job.js';
import type { JobDurations } from '../store/learned-values.js';
import type { JobNotification } from './notifications.js';
import { type PollLimits, PollQueue } from './poll-queue.js';
import { EAGER_POLLS, type JobSubscriber, JobTimings, type NewWait, type PolledJob } from './polled-job.js';

/** Maximum polls in flight, enough for typical latencies even without a rate limit. */
const MAX_POLLS_IN_FLIGHT = 256;
/** Maximum polls per event-loop turn, because responses can arrive without yielding to the event loop. */
const POLLS_PER_TURN = 64;
/** Maximum announcements stored for jobs without a wait. A webhook can arrive before the create's response. */
const MAX_NOTIFICATIONS = 256;
/** Minimum delay between a poll and another one that a repeated notification triggers. */
const MIN_REPEAT_MS = 2_500;
/** Delay before a verified event ends a wait. A poll during the delay returns more details. */
const EVENT_DELAY_MS = 2_000;
/** Age at which a poll counts as abandoned, because on Workers a request can end without cleanup. */
const ABANDONED_MS = 5_000;
/** Maximum jobs polled only for their charge. */
const MAX_CHARGE_JOBS = 10_000;
const DEFAULT_MAX_RETRY_AFTER_MS = 120_000;

/** Abort reason of a poll that is retried. Shared by copies of the package. */
export const RESTART = Symbol.for('gen-client.restart-poll');

interface PollResult {
  readonly job: Job;
  readonly progress: JobProgress;
  readonly isPolled: boolean;
  readonly isFileMissing: boolean;
}

/**
 * Schedules the polls of all waits of one account.
 *
 * A job is due one poll interval after its last poll. Due jobs are polled at the rate limit's pace, in the order of `rankOf`,
 * and all waits on the job get the result. Each wait polls and sleeps in its caller's context. If one ends, the job's next
 * wait polls. On Workers, requests can't share I/O objects, so each wait checks whether its job is due.
 */
export class PollScheduler {
  readonly #clock: Clock;
  readonly #timings: JobTimings;
  readonly #entries = new Map<string, PolledJob>();
  readonly #chargeOnly = new Map<string, PolledJob>();
  readonly #notDue = new Set<PolledJob>();
  readonly #announced = new Map<string, JobNotification>();
  /** One queue per set of rate limits. It retains its pace while there are no waits. */
  readonly #queues = new WeakMap<PollLimits, PollQueue<PolledJob>>();
  /** Queues that may contain due jobs. */
  readonly #busy = new Set<PollQueue<PolledJob>>();
  #inFlight = 0;
  #polledInTurn = 0;
  #turnIsPlanned = false;
  #stopTimer: (() => void) | undefined;

  constructor(clock: Clock, random: () => number = randomOf(clock).next, durations?: JobDurations) {
    this.#clock = steady(clock);
    this.#timings = new JobTimings(wallOf(clock), random, durations);
  }

  get busy(): boolean {
    return this.#entries.size > 0;
  }

  /** If true, another job can be polled only for its charge. */
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
    const entry = entries.get(id) ?? this.#timings.begin(start, now);
    const options = { wait, pollIntervalMs, maxRetryAfterMs };
    const subscriber = { ...options, entry, queue, progress: undefined, version: entry.version, checkedMs: now };
    entry.subscribers.push(subscriber);
    if (entry.subscribers.length === 1) {
      entries.set(id, entry);
      this.#notDue.add(entry);
    }
    const notification = isChargeOnly ? undefined : this.#announced.get(id);
    if (notification && this.#announced.delete(id)) this.#announce(entry, notification);
    if (pollIntervalMs !== undefined) this.#delayUntil(entry, Math.min(entry.dueMs, now + pollIntervalMs));
    this.#planTurn();
    return subscriber;
  }

  /** Returns the wait's next step: use a result, poll, or sleep. */
  next(subscriber: JobSubscriber): PollResult | 'poll' | 'sleep' {
    const { entry } = subscriber;
    const now = this.#clock.now();
    subscriber.checkedMs = now;
    if (entry.job && entry.version > subscriber.version) {
      const { job, version } = entry;
      subscriber.version = version;
      const isFileMissing = now - (entry.filelessSinceMs ?? now) >= MAX_WITHOUT_FILE_MS;
      return { job, progress: this.#timings.progressOf(subscriber, job, now), isPolled: true, isFileMissing };
    }
    if (entry.event && entry.event.atMs <= now) {
      const { job } = entry.event;
      this.#timings.completed(entry, job, now - entry.sinceMs);
      return { job, progress: ENDED, isPolled: false, isFileMissing: false };
    }
    if (this.#clock.perRequest) this.#pollIfDue(subscriber, now);
    return entry.poller === subscriber ? 'poll' : 'sleep';
  }

  pollSucceeded(subscriber: JobSubscriber, job: Job): void {
    const { entry } = subscriber;
    this.#endPoll(subscriber);
    const now = this.#clock.now();
    this.#timings.pollSucceeded(entry, job, now);
    entry.version++;
    entry.idleSinceMs = now;
    entry.lastPollMs = now;
    entry.failures = 0;
    entry.pages = 0;
    entry.lastError = undefined;
    entry.filelessSinceMs = isFinal(job) && !isSettled(job) ? (entry.filelessSinceMs ?? now) : undefined;
    if (isSettled(job)) this.#drop(entry);
    else {
      if (entry.eager > 0) entry.eager--;
      this.#delayUntil(entry, now + this.#timings.intervalMs(entry));
    }
    for (const other of entry.subscribers) if (other !== subscriber) other.wait.wake();
    this.#planTurn();
  }

  /** Records a failed poll. Returns true if the error ends the wait. */
  pollFailed(subscriber: JobSubscriber, error: unknown): boolean {
    const { entry, queue, maxRetryAfterMs } = subscriber;
    const pages = isStrayPage(error) ? entry.pages + 1 : 0;
    const isTerminal = endsWait(error, pages);
    this.#endPoll(subscriber);
    const now = this.#clock.now();
    if (error !== RESTART) Object.assign(entry, { lastPollMs: now, pages });
    if (error === RESTART) this.#delayUntil(entry, now);
    else if (!isTerminal) {
      const requestedMs = retryAfterOf(error, maxRetryAfterMs);
      entry.idleSinceMs = now;
      entry.failures++;
      entry.lastError = error;
      if (isRateLimited(error)) queue.pause(now, requestedMs);
      // Another wait on the job may have a client that can reach the service.
      entry.subscribers.push(...entry.subscribers.splice(entry.subscribers.indexOf(subscriber), 1));
      this.#delayUntil(entry, now + pollPauseMs(this.#timings.intervalMs(entry), entry.failures, requestedMs));
    }
    this.#planTurn();
    return isTerminal;
  }

  /** Returns true if the last poll ended at least one poll interval ago, for example because the process was suspended. */
  isOutdated({ entry }: JobSubscriber): boolean {
    return this.#clock.now() - entry.lastPollMs >= this.#timings.intervalMs(entry);
  }

  /** Returns true if the wait's poll started at least one poll interval ago. */
  hasStalled(subscriber: JobSubscriber): boolean {
    const { entry } = subscriber;
    return entry.poller === subscriber && this.#clock.now() - entry.pollSinceMs >= this.#timings.intervalMs(entry);
  }

  leave(subscriber: JobSubscriber): void {
    const { entry } = subscriber;
    const index = entry.subscribers.indexOf(subscriber);
    if (index < 0) return;
    entry.subscribers.splice(index, 1);
    this.#endPoll(subscriber);
    if (entry.subscribers.length === 0) this.#drop(entry);
    // The job's next wait polls.
    else if (this.#entriesOf(entry).get(entry.id) === entry) this.#delayUntil(entry, entry.dueMs);
    this.#planTurn();
  }

  /**
   * Handles a notification that a job has ended: polls the job, and ends its waits if the notification has the completed
   * job. Returns false if the job has no wait.
   */
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
      // Repeated notifications must not use up the polls of other jobs.
      this.#delayUntil(entry, Math.min(entry.dueMs, Math.max(now, entry.idleSinceMs + MIN_REPEAT_MS)));
      return;
    }
    entry.announcement = isVerified ? 'verified' : 'hint';
    entry.eager = EAGER_POLLS;
    if (event) this.#endByEvent(entry, event, now);
    if (this.#entries.get(entry.id) !== entry) return;
    this.#delayUntil(entry, now);
    // A poll that started earlier may hang, or return an outdated state.
    if (!this.#clock.perRequest) entry.poller?.wait.restart();
  }

  /** Ends the waits with a verified event: after a delay for a poll, or immediately if no poll is available. */
  #endByEvent(entry: PolledJob, event: Job, now: number): void {
    const [subscriber] = entry.subscribers;
    const isFree = subscriber !== undefined && subscriber.queue.freeInMs(now) <= EVENT_DELAY_MS;
    const afterMs = isFree ? EVENT_DELAY_MS : 0;
    const { finalTokenCost: _, providerOutputExpiresAt: __, completedAt: ___, ...knownFields } = entry.job ?? event;
    const end = () => {
      this.#drop(entry);
      for (const { wait } of entry.subscribers) wait.wake();
      entry.poller?.wait.restart();
    };
    const isChargeOnly = isFree && !this.#clock.perRequest;
    const stopTimer = isChargeOnly ? this.#clock.after(afterMs, end) : undefined;
    entry.event = { job: { ...knownFields, ...event }, atMs: now + afterMs, stopTimer };
    // End the waits now, because another turn would waste a poll on the job.
    if (!isFree && !this.#clock.perRequest) end();
  }

  /** On Workers: polls if the job is due and no other wait is polling it. */
  #pollIfDue(subscriber: JobSubscriber, now: number): void {
    const { entry, queue } = subscriber;
    const isConflict = entry.poller !== undefined && now - entry.pollSinceMs < ABANDONED_MS;
    if (entry.dueMs > now || isConflict || !queue.tryAcquire(now, entry.eager > 0)) return;
    if (entry.poller) this.#endPoll(entry.poller);
    this.#grant(subscriber, now);
  }

  #grant(subscriber: JobSubscriber, now: number): void {
    subscriber.entry.poller = subscriber;
    subscriber.entry.pollSinceMs = now;
    this.#inFlight++;
    subscriber.wait.wake();
  }

  /** Plans a turn. Changes in the same tick share it. */
  #planTurn(): void {
    if (this.#turnIsPlanned || this.#clock.perRequest || this.#polledInTurn >= POLLS_PER_TURN) return;
    this.#turnIsPlanned = true;
    Promise.resolve().then(() => {
      this.#turnIsPlanned = false;
      this.#runTurn();
    });
  }

  /** Polls due jobs, and sets the timer for the next turn if there are more jobs. */
  #runTurn(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    const now = this.#clock.now();
    let nextMs = Number.POSITIVE_INFINITY;
    for (const entry of this.#notDue) {
      if (entry.dueMs > now) {
        nextMs = Math.min(nextMs, entry.dueMs - now);
        continue;
      }
      this.#notDue.delete(entry);
      const [subscriber] = entry.subscribers;
      if (subscriber) this.#busy.add(subscriber.queue);
      subscriber?.queue.add(entry);
    }
    for (const queue of this.#busy) nextMs = Math.min(nextMs, this.#serve(queue, now));
    if (this.#polledInTurn >= POLLS_PER_TURN) nextMs = 0;
    if (nextMs === Number.POSITIVE_INFINITY) return;
    const runNextTurn = () => {
      this.#polledInTurn = 0;
      this.#runTurn();
    };
    // Charge-only polls don't keep the process alive.
    this.#stopTimer = this.#clock.after(nextMs, runNextTurn, { isIdle: this.#entries.size === 0 });
  }

  /** Starts all polls that are allowed. Returns the milliseconds until the next one. */
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

  /** Sets when the job is due. If a poll is in flight, the job is not scheduled until the poll ends. */
  #delayUntil(entry: PolledJob, dueMs: number): void {
    entry.dueMs = dueMs;
    if (entry.poller) return;
    for (const queue of this.#busy) queue.remove(entry);
    this.#notDue.add(entry);
  }

  #drop(entry: PolledJob): void {
    const entries = this.#entriesOf(entry);
    if (entries.get(entry.id) === entry) entries.delete(entry.id);
    entry.event?.stopTimer?.();
    this.#notDue.delete(entry);
    for (const queue of this.#busy) queue.remove(entry);
  }

  #entriesOf({ isChargeOnly }: Pick<NewWait, 'isChargeOnly'>): Map<string, PolledJob> {
    return isChargeOnly ? this.#chargeOnly : this.#entries;
  }

  #endPoll(subscriber: JobSubscriber): void {
    if (subscriber.entry.poller !== subscriber) return;
    this.#inFlight--;
    subscriber.entry.poller = undefined;
  }

  /** On Workers: removes waits whose request ended without cleanup. */
  #dropAbandoned(): void {
    const oldestMs = this.#clock.now() - 20 * ABANDONED_MS;
    for (const { subscribers } of this.#entries.values())
      for (const subscriber of [...subscribers]) if (subscriber.checkedMs < oldestMs) this.leave(subscriber);
  }
}

function retryAfterOf(error: unknown, maxMs = DEFAULT_MAX_RETRY_AFTER_MS): number {
  const requestedMs: unknown = isObject(error) ? Reflect.get(error, 'retryAfterMs') : undefined;
  return typeof requestedMs === 'number' ? Math.min(requestedMs, maxMs) : 0;
}
