import { APIError, ConnectionError, documentedStatus, GenError, ResponseError, TimeoutError } from '../errors/index.js';
import type { Job } from '../schemas/job.js';

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
 * The service asks for 10 to 15 seconds between reads of a video job (spec: Limits) and says nothing about images. 10 to
 * 12 s are within its words and notice a completion a tenth sooner than an even spread over 10 to 15 s would.
 */
const VIDEO: Rhythm = { firstMs: 10_000, intervalMs: 10_000, typicalMs: 300_000 };
const FAST_VIDEO: Rhythm = { ...VIDEO, typicalMs: 90_000 };
const IMAGE: Rhythm = { firstMs: 2_000, intervalMs: 2_500, typicalMs: 10_000 };

/** The rhythm of a job's kind; that of a video for a job of which nothing is known. */
export function rhythmOf(job: Job | undefined): Rhythm {
  if (/image|character/i.test(job?.mediaType ?? job?.modelId ?? '')) return IMAGE;
  return /fast|mini/.test(job?.modelId ?? '') ? FAST_VIDEO : VIDEO;
}

/** What decides which job is read next. */
export interface Candidate {
  readonly job: Job | undefined;
  /** When the job was created, as far as is known. */
  readonly sinceMs: number;
  /** When it was last read; before the first read, when the wait for it began. */
  readonly lastReadMs: number;
  /** Above 0 when the job was announced as final. */
  readonly eager: number;
}

/** How long jobs of one model were seen to take. */
interface Lengths {
  /** The shortest of those that have ended. */
  shortestMs?: number;
  /** The oldest that was seen running before any had ended. */
  runningMs: number;
}

/** A job younger than this share of the shortest length that was seen is probably not done. */
const YOUNG_SHARE = 3 / 4;
/** Until one has ended: so is a job that is not much older than one which was seen running. */
const YOUNG_GROWTH = 1.5;
/** Until anything has been seen: so is a job younger than this share of the usual length. */
const YOUNG_PRIOR = 1 / 3;
/** The wait of a young job counts this much less. It must still be read now and then. */
const YOUNG_WEIGHT = 1 / 3;

/**
 * Orders the jobs that are due: those announced as final, then those that were read longest ago. The wait of a short job
 * counts more, and that of a job that is too young to be done counts less. The root of the length keeps the balance
 * between many short jobs and few long ones; `bench/waiting.ts` shows it beside plain round robin.
 */
export class PollOrder {
  readonly #lengths = new Map<string, Lengths>();

  /** Learns from a job that was read. `ageMs` is its age then, or how long it took. */
  learn(job: Job, ageMs: number, hasEnded: boolean): void {
    const lengths = this.#lengths.get(modelOf(job)) ?? { runningMs: 0 };
    this.#lengths.set(modelOf(job), lengths);
    if (hasEnded) lengths.shortestMs = Math.min(lengths.shortestMs ?? Number.POSITIVE_INFINITY, ageMs);
    else if (lengths.shortestMs === undefined) lengths.runningMs = Math.max(lengths.runningMs, ageMs);
  }

  /** Of the candidates, the one to be read first. */
  first<T extends Candidate>(candidates: Iterable<T>, nowMs: number): T | undefined {
    let first: T | undefined;
    let highest = Number.NEGATIVE_INFINITY;
    for (const candidate of candidates) {
      const priority = this.#priority(candidate, nowMs);
      if (priority <= highest) continue;
      first = candidate;
      highest = priority;
    }
    return first;
  }

  #priority({ job, sinceMs, lastReadMs, eager }: Candidate, nowMs: number): number {
    if (eager > 0) return Number.POSITIVE_INFINITY;
    const { shortestMs, runningMs = 0 } = this.#lengths.get(modelOf(job)) ?? {};
    const priorMs = rhythmOf(job).typicalMs * YOUNG_PRIOR;
    const youngMs = shortestMs === undefined ? Math.max(priorMs, runningMs * YOUNG_GROWTH) : shortestMs * YOUNG_SHARE;
    const weight = nowMs - sinceMs < youngMs ? YOUNG_WEIGHT : 1;
    return (weight * (nowMs - lastReadMs)) / Math.sqrt(shortestMs ?? priorMs);
  }
}

function modelOf(job: Job | undefined): string {
  return `${job?.mediaType ?? ''}/${job?.modelId ?? ''}`;
}

/** Whether a failed read ends the wait: only a refusal that another read cannot change. */
export function endsWait(error: unknown): boolean {
  if (APIError.isInstance(error)) {
    const status = documentedStatus(error);
    // An answer of 200 with `success: false` and an unknown code may be anything: the job goes on.
    return status >= 400 && status < 500 && status !== 408 && status !== 429;
  }
  // A plain GenError says that the client itself cannot make the call: the key is missing, the id cannot be right.
  return (
    GenError.isInstance(error) && ![ConnectionError, TimeoutError, ResponseError].some((kind) => kind.isInstance(error))
  );
}

/** Milliseconds to leave a job alone after `failures` failed reads in a row: doubling from its interval, up to a minute. */
export function backoffMs(intervalMs: number, failures: number, askedMs: number): number {
  return Math.max(askedMs, Math.min(intervalMs * 2 ** (failures - 1), Math.max(intervalMs, 60_000)));
}
