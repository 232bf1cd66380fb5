import type { Job } from '../schemas/job.js';
import type { Heap, Ranked } from './heap.js';

/** One wait on a job, as the watcher sees it. */
export interface Watch {
  /** Reads the job once, without repeating a failed read. */
  readonly readJob: (id: string, signal: AbortSignal) => Promise<Job>;
  /** The job as far as it is known. */
  readonly job?: Job | undefined;
  /** Milliseconds between two reads; the shortest of all waits on the job counts. */
  readonly pollIntervalMs?: number | undefined;
  /** Told what each read shows; a final job is the last. */
  readonly onRead: (job: Job) => void;
  /** Told of each failed read; `ends` when no other follows. */
  readonly onMiss: (error: unknown, ends: boolean) => void;
}

/** A job that somebody waits for. */
export interface Entry extends Ranked {
  readonly id: string;
  readonly watches: Set<Watch>;
  readonly sinceMs: number;
  heap: Heap<Entry> | undefined;
  job: Job | undefined;
  /** Under way. */
  reading: AbortController | undefined;
  /** Its age when it was last seen to run. */
  ageMs: number;
  /** What it adds to the load. */
  weight: number;
  failures: number;
  /** Announced as final: read next, this many times at short intervals if the read does not show it yet. */
  eager: number;
}
