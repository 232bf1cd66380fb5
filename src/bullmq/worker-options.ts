import type { WorkerOptions } from 'bullmq';
import type { GenError } from '../errors/index.js';
import type { CompletedJob } from '../schemas/job.js';
import type { QueueLocation } from './connection.js';
import type { GenQueueJob } from './gen-queue.js';

/** How a worker runs. */
export interface GenWorkerOptions extends QueueLocation {
  /**
   * Told the completed job, at least once. That is before the queue job ends, so that a crash in between tells it again.
   * Copy the file to your own storage here. When it throws, the queue job is tried again.
   */
  readonly onCompleted?: (job: CompletedJob, queueJob: GenQueueJob) => void | Promise<void>;
  /** Told the error that ended a call, before the queue job fails; at least once. */
  readonly onFailed?: (error: GenError, queueJob: GenQueueJob) => void | Promise<void>;
  /** Told errors of the worker's own connection; the engine reconnects by itself. */
  readonly onError?: (error: Error) => void;
  /** How many calls this process works on at once; sleeping ones are not among them. @default 10 */
  readonly concurrency?: number;
  /** Milliseconds between two reads of a job. @default 10-15 s for video and edits, 3-4.5 s for images, stretched when many sleep */
  readonly pollIntervalMs?: number;
  /** Milliseconds to pause after the service or the connection failed and named no time. @default 30_000 */
  readonly retryDelayMs?: number;
  /** Milliseconds after its queueing at which a call that has not ended fails; the service's job goes on. @default 86_400_000 (24 h) */
  readonly timeoutMs?: number;
  /** Further options of the engine's Worker; for example `lockDuration` and `stalledInterval`. */
  readonly worker?: Omit<WorkerOptions, 'connection' | 'prefix' | 'concurrency'>;
}
