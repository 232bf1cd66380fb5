// Which waiting job is read next and when, how long jobs take, and how far a running one is.

import { modelCapabilities } from '../catalog.js';
import type { PricedCall } from '../schemas/budget.js';
import type { Job, JobCall } from '../schemas/job.js';
import { backoff } from './backoff.js';
import { DOCUMENTED_LIMITS, type Rate, READ_SHARE, VIDEO_POLL_MS } from './limits.js';

/** A job is not left alone for longer after reads that failed, unless the service asks for it. */
const MAX_PAUSE_MS = 60_000;

/** When jobs of one kind are read. */
export interface Rhythm {
  /** Milliseconds after its creation at which a job may be done at all. */
  readonly firstMs: number;
  /** Least milliseconds between two reads of a job; up to a fifth is added at random. */
  readonly intervalMs: number;
  /** What such a job usually takes, in milliseconds. Counts until finished jobs have shown it. */
  readonly typicalMs: number;
}

/**
 * The service asks for 10 to 15 seconds between reads of a video job and says nothing about images. 10 to
 * 12 s are within its words and notice a completion a tenth sooner than an even spread over 10 to 15 s would.
 */
const VIDEO: Rhythm = { firstMs: 10_000, intervalMs: 10_000, typicalMs: 300_000 };
const FAST_VIDEO: Rhythm = { ...VIDEO, typicalMs: 90_000 };
const IMAGE: Rhythm = { firstMs: 2_000, intervalMs: 2_500, typicalMs: 10_000 };

/** The rhythm of a job's kind; that of a video for a job of which nothing is known. */
export function rhythmOf(job: Job | undefined): Rhythm {
  if (/image|character/i.test(job?.mediaType ?? job?.modelId ?? '')) return IMAGE;
  return modelCapabilities(job?.modelId ?? '')?.isFast ? FAST_VIDEO : VIDEO;
}

export interface Model {
  readonly rhythm: Rhythm;
  /** The shortest of those that have completed, in milliseconds; at least the time at which one may be done at all. */
  readonly shortestMs?: number;
  /** The oldest that was seen running before any had completed, in milliseconds. */
  readonly runningMs: number;
}

/** Jobs with the same key are of the same {@link Model}. */
export function modelKey(job: Job | undefined): string {
  return `${job?.mediaType ?? ''}/${job?.modelId ?? ''}`;
}

export function newModel(job: Job | undefined): Model {
  return { rhythm: rhythmOf(job), runningMs: 0 };
}

/** The model after one of its jobs was read that runs or has completed. `ageMs` is the job's age then, or how long it took. */
export function learned(model: Model, ageMs: number, hasCompleted: boolean): Model {
  const { rhythm, shortestMs, runningMs } = model;
  if (hasCompleted) {
    // One that is done at once must not put off the reads of all other models.
    const tookMs = Math.max(ageMs, rhythm.firstMs);
    return tookMs >= (shortestMs ?? Number.POSITIVE_INFINITY) ? model : { ...model, shortestMs: tookMs };
  }
  return shortestMs !== undefined || ageMs <= runningMs ? model : { ...model, runningMs: ageMs };
}

/** A job younger than this share of the shortest length that was seen is probably not done. */
const YOUNG_SHARE = 3 / 4;
/** Until one has ended: so is a job that is not much older than one which was seen running. */
const YOUNG_GROWTH = 1.5;
/** Until anything has been seen: so is a job younger than this share of the usual length. */
const YOUNG_PRIOR = 1 / 3;
/** The wait of a young job counts this much less. It must still be read now and then. */
const YOUNG_WEIGHT = 1 / 3;

/** What decides which job is read next. */
export interface Candidate {
  /** When the job was created, as far as is known. */
  readonly sinceMs: number;
  /** When it was last read; before the first read, when the wait for it began. */
  readonly lastReadMs: number;
}

/**
 * The rank of a job that is due: the highest is read first. A job that was read long ago comes before others. The wait of
 * a short job counts more, and that of a job that is too young to be done counts less. The root of the length keeps the
 * balance between many short jobs and few long ones; `bench/waiting.ts` shows it beside plain round robin.
 */
export function rankOf(model: Model, { sinceMs, lastReadMs }: Candidate, nowMs: number): number {
  const { rhythm, shortestMs, runningMs } = model;
  const priorMs = rhythm.typicalMs * YOUNG_PRIOR;
  const youngMs = shortestMs === undefined ? Math.max(priorMs, runningMs * YOUNG_GROWTH) : shortestMs * YOUNG_SHARE;
  const weight = nowMs - sinceMs < youngMs ? YOUNG_WEIGHT : 1;
  return (weight * (nowMs - lastReadMs)) / Math.sqrt(shortestMs ?? priorMs);
}

/** Milliseconds to leave a job alone after `failures` failed reads in a row: doubling from its interval, up to a minute. */
export function readPauseMs(intervalMs: number, failures: number, askedMs: number): number {
  return Math.max(askedMs, backoff({ firstMs: intervalMs, mostMs: Math.max(intervalMs, MAX_PAUSE_MS) }, failures));
}

/** Milliseconds between two reads of a job that a queue waits for, up to half as much again. */
const QUEUED_MS: Readonly<Record<JobCall, number>> = {
  images: 3_000,
  characters: 3_000,
  videos: VIDEO_POLL_MS.least,
  videoEdits: VIDEO_POLL_MS.least,
};

/** Milliseconds until a queue reads a job again: more when more jobs are waited for than the limit of reads allows. */
export function queuedReadMs(call: JobCall, jobs: number, rate: Partial<Rate> | undefined, random: number): number {
  const documented = DOCUMENTED_LIMITS['jobs.get'];
  const { limit, windowMs } = { ...documented, ...rate };
  const stretchedMs = ((jobs * windowMs) / (limit * READ_SHARE)) * (1 + random / 4);
  return Math.round(Math.max(QUEUED_MS[call] * (1 + random / 2), stretchedMs));
}

/** The last lengths of one class of jobs, in milliseconds, the newest last. */
export type Lengths = readonly number[];

const REMEMBERED_LENGTHS = 20;
/** The share that is cut off at each end before the mean is taken: a stalled job says nothing about the others. */
const TRIMMED = 0.2;

/** Jobs of one class take about as long: the same model, duration and resolution. */
export function lengthClassOf({ call, model, duration, resolution }: PricedCall): string {
  const alias = model && [model, modelCapabilities(model)?.sameAs ?? model].sort()[0];
  return JSON.stringify([call, alias ?? null, duration ?? null, resolution ?? null]);
}

export function withLength(lengths: Lengths, ms: number): Lengths {
  return [...lengths, ms].slice(-REMEMBERED_LENGTHS);
}

/** What a job of the class will take, in milliseconds: the trimmed mean; undefined while no job of it has completed. */
export function expectedMs(lengths: Lengths): number | undefined {
  if (lengths.length === 0) return undefined;
  const sorted = [...lengths].sort((a, b) => a - b);
  const cut = Math.floor(sorted.length * TRIMMED);
  const kept = sorted.slice(cut, sorted.length - cut);
  return Math.round(kept.reduce((sum, ms) => sum + ms, 0) / kept.length);
}

/** How far a job is, estimated from the lengths of earlier ones. */
export interface JobProgress {
  /** Milliseconds until the job ends; undefined while no job of its kind has completed, 0 at the end. */
  readonly etaMs: number | undefined;
  /** Part of the job that is done: 0 to 0.99 while it runs, 1 at its end. Never decreases. Undefined when `etaMs` is. */
  readonly progress: number | undefined;
}

/** A job that has ended. */
export const ENDED: JobProgress = { etaMs: 0, progress: 1 };

const MAX_PROGRESS = 0.99;

/** The progress of a job that has run for `ageMs`. `before` is the last value that was reported. */
export function progressOf(lengthMs: number | undefined, ageMs: number, before = 0): JobProgress {
  if (lengthMs === undefined) return { etaMs: undefined, progress: before > 0 ? before : undefined };
  const progress = Math.max(before, Math.min(MAX_PROGRESS, lengthMs > 0 ? ageMs / lengthMs : MAX_PROGRESS));
  // A job that takes longer than expected is always a hundredth from its end.
  const etaMs = Math.round(Math.max(lengthMs - ageMs, ageMs * (1 - MAX_PROGRESS)));
  return { etaMs, progress };
}
