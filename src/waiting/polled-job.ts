import { ENDED, type JobProgress, newStats, progressOf, statsKey, withPoll } from '../rules/polling.js';
import type { Clock } from '../runtime/clock.js';
import { isCompleted, isSettled, type Job } from '../schemas/job.js';
import type { JobDurations } from '../store/learned-values.js';
import type { PollQueue, Ranked } from './poll-queue.js';

export interface PolledJob extends Ranked {
  readonly id: string;
  job: Job | undefined;
  /** Class of the job for learned durations, if its create is known. */
  readonly durationClass: string | undefined;
  sinceMs: number;
  idleSinceMs: number;
  /** Waits on the job. The first one polls, and moves to the end if the poll fails. */
  readonly subscribers: JobSubscriber[];
  /** Increases with each successful poll. */
  version: number;
  /** The wait that polls next, or is polling now. */
  poller: JobSubscriber | undefined;
  pollSinceMs: number;
  failures: number;
  /** Consecutive polls that returned an HTML page instead of the job. */
  pages: number;
  /** End of the last poll. */
  lastPollMs: number;
  /** Time when a poll first returned the job as completed but without its file. */
  filelessSinceMs: number | undefined;
  lastError: unknown;
  /** The most reliable announcement of the job's end. Each type makes the job urgent once. */
  announcement: 'hint' | 'verified' | undefined;
  isLearned: boolean;
  /** The completed job from a verified event. From `atMs` on, waits end with it. */
  event: { readonly job: Job; readonly atMs: number; readonly stopTimer?: (() => void) | undefined } | undefined;
}

export interface NewWait {
  readonly id: string;
  readonly job: Job | undefined;
  /** Poll interval in milliseconds. The shortest interval of all waits on the job applies. */
  readonly pollIntervalMs?: number | undefined;
  /** Longest `Retry-After` of a failed poll to wait for, in milliseconds. @default 120_000 */
  readonly maxRetryAfterMs?: number | undefined;
  /** If true, the outcome is known, and only the charge is missing. */
  readonly isChargeOnly?: boolean | undefined;
  readonly wait: {
    wake(): void;
    /** Aborts its poll, which is then retried. */
    restart(): void;
  };
}

export interface JobSubscriber extends Pick<NewWait, 'pollIntervalMs' | 'maxRetryAfterMs' | 'wait'> {
  readonly entry: PolledJob;
  readonly queue: PollQueue<PolledJob>;
  progress: number | undefined;
  version: number;
  checkedMs: number;
}

/** Maximum age of a job. An earlier `createdAt` suggests a clock difference. */
const MAX_AGE_MS = 3_600_000;
/** First short interval for an announced job that isn't final yet. It doubles after each poll. */
const EAGER_MS = 1_000;

/** Maximum polls at short intervals for an announced job that isn't final yet. */
export const EAGER_POLLS = 4;

/** Learns from polls how long an account's jobs take, and sets their poll intervals. */
export class JobTimings {
  readonly #wall: Clock;
  readonly #random: () => number;
  readonly #durations: JobDurations | undefined;
  readonly #stats = new Map<string, Ranked['shared']>();

  /** `wall` returns the time of day, for the age of a job. */
  constructor(wall: Clock, random: () => number, durations: JobDurations | undefined) {
    this.#wall = wall;
    this.#random = random;
    this.#durations = durations;
  }

  /** Creates the entry for a job's first wait, with the time of its first poll. */
  begin(
    { id, job, pollIntervalMs, isChargeOnly = false }: Pick<NewWait, 'id' | 'job' | 'isChargeOnly' | 'pollIntervalMs'>,
    now: number,
  ): PolledJob {
    const ageMs = this.#ageMs(job);
    const shared = this.#statsOf(job);
    // If only the ID is known, poll immediately, because the job may have ended.
    const firstMs = job ? (pollIntervalMs ?? this.#spread(shared.stats.timing.firstMs) - ageMs) : 0;
    return {
      id,
      job,
      shared,
      isChargeOnly,
      durationClass: this.#durations?.classOf(id),
      subscribers: [],
      sinceMs: now - ageMs,
      idleSinceMs: now,
      dueMs: now + firstMs,
      eager: 0,
      version: 0,
      poller: undefined,
      pollSinceMs: now,
      failures: 0,
      pages: 0,
      lastPollMs: Number.NEGATIVE_INFINITY,
      filelessSinceMs: undefined,
      lastError: undefined,
      announcement: undefined,
      isLearned: false,
      event: undefined,
    };
  }

  /** Returns the job's poll interval in milliseconds. */
  intervalMs({ subscribers, shared, eager }: PolledJob): number {
    const requestedMs = subscribers.reduce(
      (ms, { pollIntervalMs = ms }) => Math.min(ms, pollIntervalMs),
      Number.POSITIVE_INFINITY,
    );
    const normalMs =
      requestedMs < Number.POSITIVE_INFINITY ? requestedMs : this.#spread(shared.stats.timing.intervalMs);
    return eager > 0 ? Math.min(normalMs, EAGER_MS * 2 ** (EAGER_POLLS - eager)) : normalMs;
  }

  pollSucceeded(entry: PolledJob, job: Job, now: number): void {
    if (entry.job === undefined) entry.sinceMs = now - this.#ageMs(job);
    if (entry.job?.modelId !== job.modelId || entry.job?.mediaType !== job.mediaType) entry.shared = this.#statsOf(job);
    entry.job = job;
    // A charge-only poll happens long after the end, so it doesn't reveal the duration.
    if (entry.isChargeOnly) return;
    const hasEnded = isSettled(job);
    const durationMs = hasEnded ? Date.parse(job.completedAt ?? '') - Date.parse(job.createdAt ?? '') : Number.NaN;
    const ageMs = durationMs >= 0 ? durationMs : now - entry.sinceMs;
    const hasCompleted = isCompleted(job);
    // Ignore failed jobs, because many fail almost immediately.
    if (hasCompleted || !hasEnded) entry.shared.stats = withPoll(entry.shared.stats, ageMs, hasCompleted);
    if (hasCompleted) this.completed(entry, job, ageMs);
  }

  /** Learns the duration of a completed job, once. */
  completed(entry: PolledJob, job: Job, ms: number): void {
    if (entry.isLearned) return;
    entry.isLearned = true;
    this.#durations?.learn(statsKey(job), ms);
    if (entry.durationClass !== undefined) this.#durations?.learn(entry.durationClass, ms);
  }

  progressOf(subscriber: JobSubscriber, job: Job, now: number): JobProgress {
    if (isSettled(job)) return ENDED;
    const { sinceMs, durationClass } = subscriber.entry;
    const durationMs = this.#durations?.expectedMs(durationClass ?? statsKey(job));
    const estimate = progressOf(durationMs, now - sinceMs, subscriber.progress);
    subscriber.progress = estimate.progress;
    return estimate;
  }

  #statsOf(job: Job | undefined): Ranked['shared'] {
    const key = statsKey(job);
    const record = this.#stats.get(key) ?? { stats: newStats(job) };
    this.#stats.set(key, record);
    return record;
  }

  #ageMs(job: Job | undefined): number {
    const createdMs = Date.parse(job?.createdAt ?? '');
    return createdMs > 0 ? Math.min(Math.max(0, this.#wall.now() - createdMs), MAX_AGE_MS) : 0;
  }

  #spread(ms: number): number {
    return ms * (1 + this.#random() / 5);
  }
}
