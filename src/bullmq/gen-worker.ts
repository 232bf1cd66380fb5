import { type ConnectionOptions, Queue, Worker, type WorkerOptions } from 'bullmq';
import { type CompletedJob, type GenClient, GenError, type JobError } from '../index.js';
import { type QueueLocation, queueNames } from './connection.js';
import type { GenQueueJob } from './gen-queue.js';
import type { GenJobData, GenJobResult } from './job-data.js';
import { openNotes } from './notes.js';
import { createProcessor } from './process-call.js';

/** How a worker runs. */
export interface GenWorkerOptions extends QueueLocation {
  /**
   * Told the completed job before the queue job ends, so that a crash in between tells it again: at least once. Copy the
   * file to your own storage here. When it throws, the queue job is tried again.
   */
  readonly onCompleted?: (job: CompletedJob, queueJob: GenQueueJob) => void | Promise<void>;
  /** Told the error that ended a call, before the queue job fails; at least once. */
  readonly onFailed?: (error: JobError | GenError, queueJob: GenQueueJob) => void | Promise<void>;
  /** Told errors of the worker's own connection; the engine reconnects by itself. */
  readonly onError?: (error: Error) => void;
  /** How many calls this process works on at once; sleeping ones are not among them. @default 10 */
  readonly concurrency?: number;
  /** Milliseconds between two reads of a job. @default 10-15 s for video and edits, 3-4.5 s for images, stretched when many sleep */
  readonly pollIntervalMs?: number;
  /** Milliseconds after which a call that has not ended fails; the service's job goes on. @default 86_400_000 (24 h) */
  readonly timeoutMs?: number;
  /** Further options of the engine's Worker, for example `lockDuration` and `stalledInterval`. */
  readonly worker?: Omit<WorkerOptions, 'connection' | 'prefix' | 'concurrency'>;
}

/** A running worker. */
export interface GenWorker {
  /** The engine's own worker, for its events. */
  readonly worker: Worker<GenJobData, GenJobResult>;
  /** Ends after the calls that are being worked on; those asleep stay in the queue. */
  close(): Promise<void>;
}

/** A call whose worker died is taken up again however often that happens: its job is paid for. */
const NEVER_GIVEN_UP = Number.MAX_SAFE_INTEGER;
const CONCURRENCY = 10;
const DAY_MS = 24 * 60 * 60 * 1000;

/**
 * Works on the calls of {@link createGenQueue}: creates under the queue job's own id, stores the service's job id,
 * sleeps as a delayed job and ends with the completed job or its error. Kill it at any point; another goes on.
 *
 * Give the client a `redisLimiter` when several processes share an account.
 */
export function createGenWorker(
  connection: ConnectionOptions,
  client: GenClient,
  options: GenWorkerOptions = {},
): GenWorker {
  const { calls, options: base } = queueNames(connection, options);
  const notes = openNotes(connection, options);
  const queue = new Queue<GenJobData, GenJobResult>(calls, base);
  const onError = options.onError ?? (() => undefined);
  const process = createProcessor({
    client,
    notes,
    queue,
    onCompleted: options.onCompleted,
    onFailed: options.onFailed,
    pollIntervalMs: checked('pollIntervalMs', options.pollIntervalMs),
    timeoutMs: checked('timeoutMs', options.timeoutMs) ?? DAY_MS,
  });
  const worker = new Worker<GenJobData, GenJobResult>(calls, process, {
    maxStalledCount: NEVER_GIVEN_UP,
    ...options.worker,
    ...base,
    concurrency: options.concurrency ?? CONCURRENCY,
  });
  worker.on('error', onError);
  queue.on('error', onError);
  return {
    worker,
    async close() {
      await worker.close();
      await queue.close();
      await notes.close();
    },
  };
}

function checked(option: string, value: number | undefined): number | undefined {
  if (value !== undefined && !(value > 0)) throw new GenError(`${option} must be a positive number of milliseconds.`);
  return value;
}
