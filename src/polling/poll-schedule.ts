import { APIError, ConnectionError, GenError, ResponseError, TimeoutError } from '../errors/index.js';
import type { Job } from '../schemas/job.js';

/** When jobs of one kind are read. */
export interface Rhythm {
  /** Milliseconds after its creation at which a job may be done at all. */
  readonly firstMs: number;
  /** Least milliseconds between two reads of a job; up to a fifth is added at random. */
  readonly intervalMs: number;
  /** What a job is thought to last until finished jobs have shown it. */
  readonly typicalMs: number;
}

/**
 * The service asks for 10 to 15 seconds between reads of a video job (spec: Limits) and is silent on images. 10 to 12 s
 * stay within its words and notice a completion a fifth sooner than an even spread over 10 to 15 would.
 */
const VIDEO: Rhythm = { firstMs: 10_000, intervalMs: 10_000, typicalMs: 90_000 };
const IMAGE: Rhythm = { firstMs: 2_000, intervalMs: 2_500, typicalMs: 10_000 };

/** The rhythm of a job's kind; video's for a job of which nothing is known. */
export function rhythmOf(job: Job | undefined): Rhythm {
  return /image|character/i.test(job?.mediaType ?? job?.modelId ?? '') ? IMAGE : VIDEO;
}

/** What finished jobs of one model took, by which the next are expected: the last few dozen, so that it follows a change. */
export interface Lengths {
  readonly sorted: number[];
  readonly recent: number[];
}

const REMEMBERED = 64;

/** Adds one more length, forgetting the oldest. */
export function learn({ sorted, recent }: Lengths, ms: number): void {
  recent.push(ms);
  const oldest = recent.length > REMEMBERED ? recent.shift() : undefined;
  if (oldest !== undefined) sorted.splice(sorted.indexOf(oldest), 1);
  const at = sorted.findIndex((other) => other > ms);
  sorted.splice(at < 0 ? sorted.length : at, 0, ms);
}

/** What is expected of a job at some age. */
export interface Outlook {
  /** Milliseconds until it can be done, by the fastest of its kind; 0 when past. */
  readonly earliestMs: number;
  /** Mean milliseconds until it is done. */
  readonly meanMs: number;
}

/** The outlook for a job of `ageMs`: the mean of those of its kind that lived longer; for one older than all, its own age again. */
export function outlook(lengths: Lengths, rhythm: Rhythm, ageMs: number): Outlook {
  const longer = lengths.sorted.filter((ms) => ms > ageMs);
  // Two imagined jobs stand beside the measured ones, so that a first measurement does not decide alone.
  const imagined = Math.max(rhythm.typicalMs, 2 * ageMs);
  const meanMs = longer.reduce((sum, ms) => sum + ms, 2 * imagined) / (longer.length + 2) - ageMs;
  const fastest = lengths.sorted.length < 8 ? rhythm.firstMs : (lengths.sorted[0] ?? 0);
  return { earliestMs: Math.max(0, fastest - ageMs), meanMs };
}

/** Whether a failed read ends the wait: only what another read cannot change, which is a refusal other than 408 and 429. */
export function endsWait(error: unknown): boolean {
  if (APIError.isInstance(error)) return error.status < 500 && error.status !== 408 && error.status !== 429;
  // A plain GenError says that the client itself cannot make the call: no key, a bad id.
  return (
    GenError.isInstance(error) && ![ConnectionError, TimeoutError, ResponseError].some((kind) => kind.isInstance(error))
  );
}

/** Milliseconds to leave a job alone after `failures` failed reads in a row: doubling from its interval, a minute at most. */
export function backoffMs(intervalMs: number, failures: number, error: unknown): number {
  const asked = APIError.isInstance(error) ? (error.retryAfterMs ?? 0) : 0;
  return Math.max(asked, Math.min(intervalMs * 2 ** (failures - 1), Math.max(intervalMs, 60_000)));
}
