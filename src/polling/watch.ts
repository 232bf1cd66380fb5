import type { Clock } from '../clock.js';
import type { Job } from '../schemas/job.js';
import { Sleeper } from '../sleeper.js';
import type { Pace, ReadLimiter } from './pace.js';
import type { Candidate } from './poll-order.js';

/** What a wait tells the watcher. */
export interface WatchOptions {
  /** The job as far as it is known. */
  readonly job: Job | undefined;
  /** Milliseconds between two reads; the shortest of all waits on the job counts. */
  readonly pollIntervalMs: number | undefined;
  /** The limiter that this wait's reads go through. */
  readonly limiter: ReadLimiter;
}

/** What a wait has to do now. */
export type Step =
  | { readonly kind: 'look'; readonly job: Job }
  | { readonly kind: 'read'; readonly signal: AbortSignal }
  | { readonly kind: 'sleep'; readonly ms: number };

/** What the watcher does for a wait. */
export interface Turns {
  next(entry: Entry, watch: Watch): Step;
  seen(entry: Entry, watch: Watch, job: Job): void;
  missed(entry: Entry, watch: Watch, miss: Miss): void;
  leave(entry: Entry, watch: Watch): void;
}

/** A read that failed. */
export interface Miss {
  readonly error: unknown;
  /** Whether the wait will not read again. */
  readonly ends: boolean;
  /** Longest Retry-After that is waited for, in milliseconds. */
  readonly mostAskedMs: number;
}

/** One wait on one job. It runs in the context of its caller, and asks here what to do. */
export class Watch {
  readonly pace: Pace;
  readonly pollIntervalMs: number | undefined;
  readonly sleeper: Sleeper;
  /** The version of the job that the wait has seen. */
  version: number;
  /** When the wait last asked what to do. */
  askedMs: number;
  readonly #turns: Turns;
  readonly #entry: Entry;

  constructor(turns: Turns, entry: Entry, at: { pace: Pace; clock: Clock; pollIntervalMs: number | undefined }) {
    this.#turns = turns;
    this.#entry = entry;
    this.pace = at.pace;
    this.pollIntervalMs = at.pollIntervalMs;
    this.sleeper = new Sleeper(at.clock);
    this.version = entry.version;
    this.askedMs = at.clock.now();
  }

  /** What to do now. */
  next(): Step {
    return this.#turns.next(this.#entry, this);
  }

  /** Its read has shown this job. */
  seen(job: Job): void {
    this.#turns.seen(this.#entry, this, job);
  }

  /** Its read has failed. */
  missed(miss: Miss): void {
    this.#turns.missed(this.#entry, this, miss);
  }

  /** The error of the last read of the job, when that failed. */
  get lastError(): unknown {
    return this.#entry.lastError;
  }

  /** Ends the wait. */
  leave(): void {
    this.#turns.leave(this.#entry, this);
  }
}

/** A job that somebody waits for. */
export interface Entry extends Candidate {
  readonly id: string;
  /** The first one reads; one whose read failed goes to the end. */
  readonly watches: Set<Watch>;
  job: Job | undefined;
  /** Grows with each read that showed the job. */
  version: number;
  lastReadMs: number;
  /** When it is due. */
  dueMs: number;
  /** The wait whose turn it is to read, or that reads. */
  reader: Watch | undefined;
  readerSinceMs: number;
  reading: AbortController | undefined;
  failures: number;
  lastError: unknown;
  /** Above 0 when it was announced as final: so many reads follow at short intervals. */
  eager: number;
}

/** Why a read is broken off that must be made again. */
export const RESTART = Symbol('read again');
