import { ENDED, type JobProgress, progressOf } from '../rules/lengths.js';
import { learned, modelKey, newModel } from '../rules/order.js';
import type { Clock } from '../runtime/clock.js';
import { isCompleted, isSettled, type Job } from '../schemas/job.js';
import type { JobLengths } from '../shared/facts.js';
import type { ModelRecord } from './read-queue.js';
import { type Entry, HEARD, type Watch } from './watch.js';

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
  entryOf(
    watch: Watch,
    { id, job, now }: { readonly id: string; readonly job: Job | undefined; readonly now: number },
  ): Entry {
    const ageMs = this.#ageMs(job);
    const of = this.#modelOf(job);
    // Of a bare id nothing is known: it may be done already.
    const firstMs = watch.pollIntervalMs ?? (job ? this.#spread(of.model.rhythm.firstMs) - ageMs : 0);
    return {
      id,
      job,
      of,
      lengthClass: this.#lengths?.classOf(id),
      watches: [watch],
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
  intervalMs({ watches, of, eager }: Entry): number {
    const own = watches.reduce((ms, watch) => Math.min(ms, watch.pollIntervalMs ?? ms), Number.POSITIVE_INFINITY);
    const natural = own < Number.POSITIVE_INFINITY ? own : this.#spread(of.model.rhythm.intervalMs);
    return eager > 0 ? Math.min(natural, EAGER_MS * 2 ** (EAGER_READS - eager)) : natural;
  }

  /** Whether the end of a job was announced. */
  wasAnnounced(isAnnounced: boolean): void {
    this.#trust += ((isAnnounced ? 1 : 0) - this.#trust) * TRUST_STEP;
  }

  /** A read has shown the job. */
  seen(entry: Entry, job: Job, now: number): void {
    if (entry.job === undefined) entry.sinceMs = now - this.#ageMs(job);
    if (entry.job?.modelId !== job.modelId || entry.job?.mediaType !== job.mediaType) entry.of = this.#modelOf(job);
    entry.job = job;
    const hasEnded = isSettled(job);
    const tookMs = hasEnded ? Date.parse(job.completedAt ?? '') - Date.parse(job.createdAt ?? '') : Number.NaN;
    const ageMs = tookMs >= 0 ? tookMs : now - entry.sinceMs;
    entry.of.model = learned(entry.of.model, ageMs, hasEnded);
    if (isCompleted(job)) this.completed(entry, job, ageMs);
  }

  /** The job has completed after `ms` milliseconds. */
  completed({ lengthClass }: Entry, job: Job, ms: number): void {
    this.#lengths?.learn(modelKey(job), ms);
    if (lengthClass !== undefined) this.#lengths?.learn(lengthClass, ms);
  }

  /** How far the job is, for one of its waits. */
  progressOf(watch: Watch, job: Job, now: number): JobProgress {
    if (isSettled(job)) return ENDED;
    const { sinceMs = now, lengthClass } = watch.entry ?? {};
    const progress = progressOf(this.#lengths?.expectedMs(lengthClass ?? modelKey(job)), now - sinceMs, watch.share);
    watch.share = progress.share;
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
