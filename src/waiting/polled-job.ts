// A job that is waited for: what is known of it, how often it is read, and how far it is.
import { ENDED, type JobProgress, learned, modelKey, newModel, progressOf } from '../rules/read-order.js';
import type { Clock } from '../runtime/clock.js';
import { isCompleted, isSettled, type Job } from '../schemas/job.js';
import type { JobDurations } from '../store/learned-values.js';
import type { PollQueue, Ranked } from './poll-queue.js';

export interface PolledJob extends Ranked {
  readonly id: string;
  job: Job | undefined;
  /** Its class in the learned lengths, where its create is known. */
  readonly lengthClass: string | undefined;
  sinceMs: number;
  lastReadMs: number;
  /** Its waits. The first one reads; one whose read failed goes to the end. */
  readonly subscribers: JobSubscriber[];
  /** Grows with each read that showed the job. */
  version: number;
  /** The wait whose turn it is to read, or that reads. */
  reader: JobSubscriber | undefined;
  readerSinceMs: number;
  failures: number;
  /** Failed polls in a row that were answered with a page. */
  pages: number;
  /** When the last poll ended. */
  lastPollMs: number;
  /** When a poll first returned the job completed but without its file. */
  filelessSinceMs: number | undefined;
  lastError: unknown;
  /** The best announcement of its end so far. Each kind makes the job urgent once. */
  announcement: 'hint' | 'verified' | undefined;
  /** If true, its duration was learned. */
  isLearned: boolean;
  /** What a verified event says of the completed job, and from when on that ends the waits which take it. */
  event: { readonly job: Job; readonly atMs: number; readonly stopTimer?: (() => void) | undefined } | undefined;
}

export interface NewWait {
  readonly id: string;
  readonly job: Job | undefined;
  /** Milliseconds between two reads; the shortest of all waits on the job counts. */
  readonly pollIntervalMs?: number | undefined;
  /** Longest Retry-After of a failed read that is waited for, in milliseconds. @default 120_000 */
  readonly maxRetryAfterMs?: number | undefined;
  /** Whether its caller has the end of the job already, and only the charge is to be read. */
  readonly isChargeOnly?: boolean | undefined;
  readonly wait: {
    wake(): void;
    /** Breaks off its read, which has to be made again. */
    restart(): void;
  };
}

export interface JobSubscriber extends Pick<NewWait, 'pollIntervalMs' | 'maxRetryAfterMs' | 'wait'> {
  readonly entry: PolledJob;
  readonly queue: PollQueue<PolledJob>;
  progress: number | undefined;
  version: number;
  askedMs: number;
}

/** A `createdAt` before that says more about the two clocks than about the job. */
const MAX_AGE_MS = 3_600_000;
/** A job that was announced, and that the first read does not show as ended, is read again after this, and twice it. */
const EAGER_MS = 1_000;

/** How often an announced job is read at short intervals when a read does not show its end yet. */
export const EAGER_POLLS = 4;

/** How often the jobs of an account are read, and how long they take: learned from what the reads show. */
export class JobRhythms {
  readonly #wall: Clock;
  readonly #random: () => number;
  readonly #lengths: JobDurations | undefined;
  readonly #models = new Map<string, Ranked['of']>();

  /** `wall` shows the time of day, for the age of a job. */
  constructor(wall: Clock, random: () => number, lengths: JobDurations | undefined) {
    this.#wall = wall;
    this.#random = random;
    this.#lengths = lengths;
  }

  /** The job of a first wait: when it is read for the first time. */
  begin(
    { id, job, pollIntervalMs, isChargeOnly = false }: Pick<NewWait, 'id' | 'job' | 'isChargeOnly' | 'pollIntervalMs'>,
    now: number,
  ): PolledJob {
    const ageMs = this.#ageMs(job);
    const of = this.#modelOf(job);
    // Of a bare id nothing is known: it may be done already.
    const firstMs = pollIntervalMs ?? (job ? this.#spread(of.model.rhythm.firstMs) - ageMs : 0);
    return {
      id,
      job,
      of,
      isChargeOnly,
      lengthClass: this.#lengths?.classOf(id),
      subscribers: [],
      sinceMs: now - ageMs,
      lastReadMs: now,
      dueMs: now + firstMs,
      eager: 0,
      version: 0,
      reader: undefined,
      readerSinceMs: now,
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

  /** How long the job rests until its next read. */
  intervalMs({ subscribers, of, eager }: PolledJob): number {
    const own = subscribers.reduce(
      (ms, { pollIntervalMs = ms }) => Math.min(ms, pollIntervalMs),
      Number.POSITIVE_INFINITY,
    );
    const natural = own < Number.POSITIVE_INFINITY ? own : this.#spread(of.model.rhythm.intervalMs);
    return eager > 0 ? Math.min(natural, EAGER_MS * 2 ** (EAGER_POLLS - eager)) : natural;
  }

  pollSucceeded(entry: PolledJob, job: Job, now: number): void {
    if (entry.job === undefined) entry.sinceMs = now - this.#ageMs(job);
    if (entry.job?.modelId !== job.modelId || entry.job?.mediaType !== job.mediaType) entry.of = this.#modelOf(job);
    entry.job = job;
    // A read for the charge alone comes long after the end, and teaches nothing.
    if (entry.isChargeOnly) return;
    const hasEnded = isSettled(job);
    const tookMs = hasEnded ? Date.parse(job.completedAt ?? '') - Date.parse(job.createdAt ?? '') : Number.NaN;
    const ageMs = tookMs >= 0 ? tookMs : now - entry.sinceMs;
    const hasCompleted = isCompleted(job);
    // A job that failed says nothing of how long the others take: many are refused at once.
    if (hasCompleted || !hasEnded) entry.of.model = learned(entry.of.model, ageMs, hasCompleted);
    if (hasCompleted) this.completed(entry, job, ageMs);
  }

  /** The job has completed after `ms` milliseconds. It teaches that once. */
  completed(entry: PolledJob, job: Job, ms: number): void {
    if (entry.isLearned) return;
    entry.isLearned = true;
    this.#lengths?.learn(modelKey(job), ms);
    if (entry.lengthClass !== undefined) this.#lengths?.learn(entry.lengthClass, ms);
  }

  progressOf(subscriber: JobSubscriber, job: Job, now: number): JobProgress {
    if (isSettled(job)) return ENDED;
    const { sinceMs, lengthClass } = subscriber.entry;
    const lengthMs = this.#lengths?.expectedMs(lengthClass ?? modelKey(job));
    const reported = progressOf(lengthMs, now - sinceMs, subscriber.progress);
    subscriber.progress = reported.progress;
    return reported;
  }

  #modelOf(job: Job | undefined): Ranked['of'] {
    const key = modelKey(job);
    const record = this.#models.get(key) ?? { model: newModel(job) };
    this.#models.set(key, record);
    return record;
  }

  #ageMs(job: Job | undefined): number {
    const created = Date.parse(job?.createdAt ?? '');
    return created > 0 ? Math.min(Math.max(0, this.#wall.now() - created), MAX_AGE_MS) : 0;
  }

  #spread(ms: number): number {
    return ms * (1 + this.#random() / 5);
  }
}
