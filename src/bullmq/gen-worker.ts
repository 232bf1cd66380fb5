import { type ConnectionOptions, Queue, Worker } from 'bullmq';
import type { GenClient } from '../client.js';
import { GenError } from '../errors/index.js';
import { queueNames } from './connection.js';
import type { GenJobData, GenJobResult } from './job-data.js';
import { openNotes } from './notes.js';
import { createProcessor } from './process-call.js';
import type { GenWorkerOptions } from './worker-options.js';

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
const RETRY_MS = 30_000;
const DAY_MS = 24 * 60 * 60 * 1000;

/**
 * Works on the calls of {@link createGenQueue}. Creates under the queue job's own id, stores the service's job id,
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
  const work = createProcessor({
    client,
    notes,
    queue,
    onCompleted: options.onCompleted,
    onFailed: options.onFailed,
    pollIntervalMs: checked('pollIntervalMs', options.pollIntervalMs),
    retryDelayMs: checked('retryDelayMs', options.retryDelayMs) ?? RETRY_MS,
    timeoutMs: checked('timeoutMs', options.timeoutMs) ?? DAY_MS,
  });
  const worker = new Worker<GenJobData, GenJobResult>(calls, work, {
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
