import type { WorkerOptions } from 'bullmq';
import type { CompletedJob, GenError } from '../index.js';
import type { QueueLocation } from './connection.js';
import type { GenQueueJob } from './gen-queue.js';

/** How a worker runs. */
export interface GenWorkerOptions extends QueueLocation {
  /**
   * Told the completed job, at least once; when it throws, the queue job is retried. It runs before the queue job ends,
   * so that a crash in between tells it again: copy the file to your own storage here.
   */
  readonly onCompleted?: (job: CompletedJob, queueJob: GenQueueJob) => void | Promise<void>;
  /** Told what ended a call, at least once (before the queue job fails). */
  readonly onFailed?: (error: GenError, queueJob: GenQueueJob) => void | Promise<void>;
  /** Told errors of the worker's connection (the engine reconnects by itself). */
  readonly onError?: (error: Error) => void;
  /** Calls in work at once; sleeping ones do not count. @default 10 */
  readonly concurrency?: number;
  /** Between two reads of a job. @default 10-15 s for videos, 3-4.5 s for images (stretched when many sleep) */
  readonly pollIntervalMs?: number;
  /** Pause after a failure that names no time. @default 30_000 */
  readonly retryDelayMs?: number;
  /** From queueing until a call fails; its job goes on. @default 86_400_000 (24 h) */
  readonly timeoutMs?: number;
  /** Further options of the engine's (`lockDuration` and `stalledInterval`, for example). */
  readonly worker?: Omit<WorkerOptions, 'connection' | 'prefix' | 'concurrency'>;
}
