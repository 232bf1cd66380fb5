// A job that is waited for: what is known of it, how often it is read, and how far it is.
import { ENDED, type JobProgress, learned, modelKey, newModel, progressOf } from '../rules/read-order.js';
import type { Clock } from '../runtime/clock.js';
import { isCompleted, isSettled, type Job } from '../schemas/job.js';
import type { JobLengths } from '../store/facts.js';
import type { ModelRecord, Ranked, ReadLimits, ReadQueue } from './read-queue.js';

/** A job that is waited for. */
export interface Entry extends Ranked {
  readonly id: string;
  /** The first one reads; one whose read failed goes to the end. */
  readonly subscribers: JobSubscriber[];
  job: Job | undefined;
  /** Its class in the learned lengths, where its create is known. */
  readonly lengthClass: string | undefined;
  /** Grows with each read that showed the job. */
  version: number;
  sinceMs: number;
  lastReadMs: number;
  /** The wait whose turn it is to read, or that reads. */
  reader: JobSubscriber | undefined;
  readerSinceMs: number;
  reading: AbortController | undefined;
  failures: number;
  lastError: unknown;
  /** The best announcement so far: each kind makes the job urgent once. */
  heard: Heard;
  /** What a verified event says of the completed job, and from when on that ends the waits which take it. */
  event: { readonly job: Job; readonly atMs: number } | undefined;
}

/** A wait that begins, as it tells the scheduler. */
export interface NewWait {
  readonly id: string;
  /** The job as far as it is known. */
  readonly job: Job | undefined;
  readonly limits: ReadLimits;
  /** Milliseconds between two reads; the shortest of all waits on the job counts. */
  readonly pollIntervalMs: number | undefined;
  /** Lets the wait ask what to do. */
  readonly wait: { wake(): void };
}

/** One wait, as the scheduler knows it. */
export interface JobSubscriber extends Pick<NewWait, 'pollIntervalMs' | 'wait'> {
  readonly entry: Entry;
  /** Where its reads are due. */
  readonly queue: ReadQueue<Entry>;
  /** The share of the job that was shown last. */
  share: number | undefined;
  /** The version of the job that the wait has seen. */
  version: number;
  /** When the wait last asked what to do. */
  askedMs: number;
}

/** Why a read is broken off that must be made again. */
export const RESTART = Symbol('read again');

/** What a wait has to do now. */
export type ScheduledStep =
  | { readonly kind: 'look'; readonly job: Job; readonly progress: JobProgress; readonly isRead: boolean }
  | { readonly kind: 'read'; readonly stop: AbortController }
  | { readonly kind: 'sleep' };

/** How the end of a job was announced: not at all, by a notice that may be wrong, or by a verified event, which ended a wait. */
export const HEARD = { nothing: 0, hint: 1, event: 2, learned: 3 } as const;
type Heard = (typeof HEARD)[keyof typeof HEARD];

/** A verified event waits this long for a read, and then ends the wait itself. */
const EVENT_WAITS_MS = 2_000;

/** What a verified event does with the waits of its job: it ends them at once, or after a while in which the job can be read. */
export function endByEvent({ job, subscribers }: Entry, event: Job, now: number): NonNullable<Entry['event']> {
  const [subscriber] = subscribers;
  const isFree = subscriber !== undefined && subscriber.queue.freeInMs(now) <= EVENT_WAITS_MS;
  const { finalTokenCost: _, providerOutputExpiresAt: __, completedAt: ___, ...known } = job ?? event;
  return { job: { ...known, ...event }, atMs: isFree ? now + EVENT_WAITS_MS : now };
}

/** A `createdAt` before that says more about the two clocks than about the job. */
const OLDEST_MS = 3_600_000;
/** From this share of announced completions on, polls are half as frequent. */
const TRUSTED = 0.5;
/** How much one completion counts for that share. */
const TRUST_STEP = 0.3;
/** A job that was announced, and that the first read does not show as ended, is read again after this, and twice it. */
const EAGER_MS = 1_000;

/** How often an announced job is read at short intervals when a read does not show its end yet. */
export const EAGER_READS = 4;

/** How often the jobs of an account are read, and how long they take: learned from what the reads show. */
export class JobRhythms {
  readonly #wall: Clock;
  readonly #random: () => number;
  readonly #lengths: JobLengths | undefined;
  readonly #models = new Map<string, ModelRecord>();
  /** The share of completions that webhooks have announced, the last ones above all. */
  #trust = 0;

  /** `wall` shows the time of day, for the age of a job. */
  constructor(wall: Clock, random: () => number, lengths: JobLengths | undefined) {
    this.#wall = wall;
    this.#random = random;
    this.#lengths = lengths;
  }

  /** The entry of a job's first wait: when it is read for the first time. */
  entryOf(id: string, job: Job | undefined, now: number, pollIntervalMs: number | undefined): Entry {
    const ageMs = this.#ageMs(job);
    const of = this.#modelOf(job);
    // Of a bare id nothing is known: it may be done already.
    const firstMs = pollIntervalMs ?? (job ? this.#spread(of.model.rhythm.firstMs) - ageMs : 0);
    return {
      id,
      job,
      of,
      lengthClass: this.#lengths?.classOf(id),
      subscribers: [],
      sinceMs: now - ageMs,
      lastReadMs: now,
      dueMs: now + firstMs,
      place: -1,
      rank: 0,
      version: 0,
      reader: undefined,
      readerSinceMs: now,
      reading: undefined,
      failures: 0,
      lastError: undefined,
      eager: 0,
      heard: HEARD.nothing,
      event: undefined,
    };
  }

  /** How long the job rests until its next read. */
  intervalMs({ subscribers, of, eager }: Entry): number {
    const own = subscribers.reduce(
      (ms, subscriber) => Math.min(ms, subscriber.pollIntervalMs ?? ms),
      Number.POSITIVE_INFINITY,
    );
    const natural = own < Number.POSITIVE_INFINITY ? own : this.#spread(of.model.rhythm.intervalMs);
    return eager > 0 ? Math.min(natural, EAGER_MS * 2 ** (EAGER_READS - eager)) : natural;
  }

  /** The end of a job was announced. */
  announced(): void {
    this.#trust += (1 - this.#trust) * TRUST_STEP;
  }

  /** A read has shown the job. */
  seen(entry: Entry, job: Job, now: number): void {
    if (entry.job === undefined) entry.sinceMs = now - this.#ageMs(job);
    if (entry.job?.modelId !== job.modelId || entry.job?.mediaType !== job.mediaType) entry.of = this.#modelOf(job);
    entry.job = job;
    const hasEnded = isSettled(job);
    const tookMs = hasEnded ? Date.parse(job.completedAt ?? '') - Date.parse(job.createdAt ?? '') : Number.NaN;
    const ageMs = tookMs >= 0 ? tookMs : now - entry.sinceMs;
    const hasCompleted = isCompleted(job);
    // A job that failed says nothing of how long the others take: many are refused at once.
    if (hasCompleted || !hasEnded) entry.of.model = learned(entry.of.model, ageMs, hasCompleted);
    if (hasCompleted) this.completed(entry, job, ageMs);
    if (hasEnded && entry.heard === HEARD.nothing) this.#trust -= this.#trust * TRUST_STEP;
  }

  /** The job has completed after `ms` milliseconds. */
  completed({ lengthClass }: Entry, job: Job, ms: number): void {
    this.#lengths?.learn(modelKey(job), ms);
    if (lengthClass !== undefined) this.#lengths?.learn(lengthClass, ms);
  }

  /** How far the job is, for one of its waits. */
  progressOf(subscriber: JobSubscriber, job: Job, now: number): JobProgress {
    if (isSettled(job)) return ENDED;
    const { sinceMs, lengthClass } = subscriber.entry;
    const progress = progressOf(
      this.#lengths?.expectedMs(lengthClass ?? modelKey(job)),
      now - sinceMs,
      subscriber.share,
    );
    subscriber.share = progress.share;
    return progress;
  }

  #modelOf(job: Job | undefined): ModelRecord {
    const key = modelKey(job);
    const record = this.#models.get(key) ?? { model: newModel(job) };
    this.#models.set(key, record);
    return record;
  }

  #ageMs(job: Job | undefined): number {
    const created = Date.parse(job?.createdAt ?? '');
    return created > 0 ? Math.min(Math.max(0, this.#wall.now() - created), OLDEST_MS) : 0;
  }

  #spread(ms: number): number {
    return ms * (1 + this.#random() / 5) * (this.#trust > TRUSTED ? 2 : 1);
  }
}
