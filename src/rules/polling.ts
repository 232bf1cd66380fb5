// The rules of polling: order, intervals, expected durations, and progress.

import { canonicalAlias, modelCapabilities } from '../catalog.js';
import type { PricedCall } from '../schemas/budget.js';
import type { Job, JobCall } from '../schemas/job.js';
import { backoff } from './backoff.js';
import { DOCUMENTED_LIMITS, POLL_SHARE, type Rate, VIDEO_POLL_MS } from './limits.js';

/** Longest pause after failed polls, unless the service requests a longer one. */
const MAX_PAUSE_MS = 60_000;

/** Poll times for jobs of one kind. */
export interface PollTiming {
  /** Minimum age, in milliseconds, at which a job may have ended. */
  readonly firstMs: number;
  /** Minimum milliseconds between two polls of a job. Up to a fifth is added at random. */
  readonly intervalMs: number;
  /** Typical duration in milliseconds, until completed jobs provide a better value. */
  readonly typicalMs: number;
}

/**
 * The service requests 10 to 15 seconds between polls of a video job, and documents nothing for images. 10 to 12
 * seconds comply, and detect a completion 10% sooner than intervals spread evenly over 10 to 15 seconds.
 */
const VIDEO: PollTiming = { firstMs: VIDEO_POLL_MS.min, intervalMs: VIDEO_POLL_MS.min, typicalMs: 300_000 };
const FAST_VIDEO: PollTiming = { ...VIDEO, typicalMs: 90_000 };
const IMAGE: PollTiming = { firstMs: 2_000, intervalMs: 2_500, typicalMs: 10_000 };

/** Returns the poll times for a job's kind. An unknown kind is polled like a video. */
export function timingOf(job: Job | undefined): PollTiming {
  if (/image|character/i.test(job?.mediaType ?? job?.modelId ?? '')) return IMAGE;
  return modelCapabilities(job?.modelId ?? '')?.isFast ? FAST_VIDEO : VIDEO;
}

export interface JobStats {
  readonly timing: PollTiming;
  /** Shortest duration of its completed jobs in milliseconds, but at least `timing.firstMs`. */
  readonly shortestMs?: number;
  /** Greatest age in milliseconds of a running job, until the first job has completed. */
  readonly runningMs: number;
}

/** Jobs with the same key share their {@link JobStats}. */
export function statsKey(job: Job | undefined): string {
  return `${job?.mediaType ?? ''}/${job?.modelId ?? ''}`;
}

export function newStats(job: Job | undefined): JobStats {
  return { timing: timingOf(job), runningMs: 0 };
}

/** Adds a poll of a job to the statistics. `ageMs` is the job's age, or its duration if it has completed. */
export function withPoll(stats: JobStats, ageMs: number, hasCompleted: boolean): JobStats {
  const { timing, shortestMs, runningMs } = stats;
  if (hasCompleted) {
    // A job that completes immediately must not delay the polls of all other jobs.
    const durationMs = Math.max(ageMs, timing.firstMs);
    return durationMs >= (shortestMs ?? Number.POSITIVE_INFINITY) ? stats : { ...stats, shortestMs: durationMs };
  }
  return shortestMs !== undefined || ageMs <= runningMs ? stats : { ...stats, runningMs: ageMs };
}

// A young job is probably still running, so its rank is lower.

/** Once a job has completed, others are young if their age is below this share of the shortest duration. */
const YOUNG_SHARE = 3 / 4;
/** Until the first job has completed, a job is young if its age is below this multiple of the oldest running job's. */
const YOUNG_GROWTH = 1.5;
/** Until the first job has completed, a job is also young below this share of the typical duration. */
const YOUNG_PRIOR = 1 / 3;
/** Weight of a young job. Not zero, because it must still be polled occasionally. */
const YOUNG_WEIGHT = 1 / 3;

/** Times that determine a job's rank. */
export interface Candidate {
  /** Estimated creation time of the job. */
  readonly sinceMs: number;
  /** Time of the last poll or, before the first one, when the wait began. */
  readonly idleSinceMs: number;
}

/**
 * Returns the rank of a due job; the highest is polled first. The rank grows with the time since the last poll. It
 * grows faster for short jobs, and more slowly for jobs too young to have completed.
 *
 * The square root of the duration balances many short jobs against few long ones. `bench/waiting.ts` compares it with
 * round robin.
 */
export function rankOf(stats: JobStats, { sinceMs, idleSinceMs }: Candidate, nowMs: number): number {
  const { timing, shortestMs, runningMs } = stats;
  const priorMs = timing.typicalMs * YOUNG_PRIOR;
  const youngMs = shortestMs === undefined ? Math.max(priorMs, runningMs * YOUNG_GROWTH) : shortestMs * YOUNG_SHARE;
  const weight = nowMs - sinceMs < youngMs ? YOUNG_WEIGHT : 1;
  return (weight * (nowMs - idleSinceMs)) / Math.sqrt(shortestMs ?? priorMs);
}

/**
 * Returns the pause in milliseconds after `failures` consecutive failed polls: doubles from the job's interval, up to a
 * minute.
 */
export function pollPauseMs(intervalMs: number, failures: number, requestedMs: number): number {
  return Math.max(requestedMs, backoff({ firstMs: intervalMs, maxMs: Math.max(intervalMs, MAX_PAUSE_MS) }, failures));
}

/** Milliseconds between two polls of a queue's job. Up to half is added at random. */
const QUEUE_POLL_MS: Readonly<Record<JobCall, number>> = {
  images: 3_000,
  characters: 3_000,
  videos: VIDEO_POLL_MS.min,
  videoEdits: VIDEO_POLL_MS.min,
};

/**
 * Returns the milliseconds until a queue's next poll of a job. They increase if the rate limit doesn't allow polling
 * all jobs at the usual interval.
 */
export function queuedPollMs(call: JobCall, jobs: number, rate: Partial<Rate> | undefined, random: number): number {
  const documentedRate = DOCUMENTED_LIMITS['jobs.get'];
  const { limit, windowMs } = { ...documentedRate, ...rate };
  const stretchedMs = ((jobs * windowMs) / (limit * POLL_SHARE)) * (1 + random / 4);
  return Math.round(Math.max(QUEUE_POLL_MS[call] * (1 + random / 2), stretchedMs));
}

/** Recent durations of one class of jobs in milliseconds, newest last. */
export type Durations = readonly number[];

const MAX_DURATIONS = 20;
/** Share of durations that is trimmed at each end before the mean is calculated, so that stalled jobs don't skew it. */
const TRIMMED_SHARE = 0.2;

/** Returns the duration class: jobs with the same model, duration, and resolution take about as long. */
export function durationClassOf({ call, model, duration, resolution }: PricedCall): string {
  const alias = model && canonicalAlias(model);
  return JSON.stringify([call, alias ?? null, duration ?? null, resolution ?? null]);
}

export function withDuration(durations: Durations, ms: number): Durations {
  return [...durations, ms].slice(-MAX_DURATIONS);
}

/**
 * Returns the expected duration of the class in milliseconds (trimmed mean), or undefined until a job has completed.
 */
export function expectedMs(durations: Durations): number | undefined {
  if (durations.length === 0) return undefined;
  const sorted = [...durations].sort((a, b) => a - b);
  const trimmedCount = Math.floor(sorted.length * TRIMMED_SHARE);
  const middle = sorted.slice(trimmedCount, sorted.length - trimmedCount);
  return Math.round(middle.reduce((sum, ms) => sum + ms, 0) / middle.length);
}

/** Progress of a job, estimated from the durations of earlier ones. */
export interface JobProgress {
  /** Estimated milliseconds until the job ends, or 0 once it has ended. Undefined until a job of its kind has completed. */
  readonly etaMs: number | undefined;
  /**
   * Estimated progress: 0 to 0.99 while the job runs, 1 once it has ended. Never decreases. Undefined if no estimate
   * exists.
   */
  readonly progress: number | undefined;
}

/** Progress of a job that has ended. */
export const ENDED: JobProgress = { etaMs: 0, progress: 1 };

const MAX_PROGRESS = 0.99;

/** Returns the progress of a job that has run for `ageMs`. `lastProgress` is the last reported value. */
export function progressOf(durationMs: number | undefined, ageMs: number, lastProgress = 0): JobProgress {
  if (durationMs === undefined) return { etaMs: undefined, progress: lastProgress > 0 ? lastProgress : undefined };
  const progress = Math.max(lastProgress, Math.min(MAX_PROGRESS, durationMs > 0 ? ageMs / durationMs : MAX_PROGRESS));
  // A job that takes longer than expected is always 99% complete.
  const etaMs = Math.round(Math.max(durationMs - ageMs, ageMs * (1 - MAX_PROGRESS)));
  return { etaMs, progress };
}
