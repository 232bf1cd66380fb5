import { type ConnectionOptions, Queue, Worker, type WorkerOptions } from 'bullmq';
import type { GenClient } from '../../client/client.js';
import { checkClient, detachedRules } from '../../client/run-calls.js';
import { GenError } from '../../errors/index.js';
import { backoff } from '../../rules/backoff.js';
import { DAY_MS } from '../../rules/limits.js';
import * as option from '../../rules/options.js';
import type { Recover } from '../../rules/run-state.js';
import { callObserver } from '../../runtime/callbacks.js';
import { systemClock } from '../../runtime/clock.js';
import { sleep } from '../../runtime/deadline.js';
import type { Budget } from '../../schemas/budget.js';
import type { CompletedJob } from '../../schemas/job.js';
import { type GenJobData, type GenJobResult, type GenQueueJob, isCall } from './call-record.js';
import {
  checkConnection,
  closeInTime,
  LOCATION_FIELDS,
  openJobIndex,
  type QueueLocation,
  queueNames,
} from './connection.js';
import { createProcessor } from './process-call.js';

/** Options for {@link createGenWorker}. */
export interface GenWorkerOptions extends QueueLocation {
  /**
   * Called with the completed job, at least once, and awaited before the queue job ends, so copy the file to your storage
   * here. If it throws, it is retried for 24 hours. BullMQ's UnrecoverableError ends the call immediately.
   */
  readonly onCompleted?: ((job: CompletedJob, queueJob: GenQueueJob) => unknown) | undefined;
  /**
   * Called with the error of a failed call, at least once, before the queue job fails. Awaited, and retried for 24
   * hours if it throws. Failures that BullMQ causes, for example through `failParentOnFailure`, are reported afterward.
   */
  readonly onFailed?: ((error: GenError, queueJob: GenQueueJob) => unknown) | undefined;
  /**
   * Called with connection errors, and with an error when this worker skips a record. The connection reconnects
   * automatically.
   * @default errors are ignored
   */
  readonly onError?: ((error: Error) => void) | undefined;
  /** Maximum concurrent calls in this process. Sleeping calls don't count. @default 10 */
  readonly concurrency?: number | undefined;
  /**
   * Poll interval in milliseconds.
   * @default 10-15 s for video and edits, 3-4.5 s for images, more if many jobs run
   */
  readonly pollIntervalMs?: number | undefined;
  /**
   * Maximum pause in milliseconds after a failed request without a Retry-After. Pauses start at one second and double.
   * @default 30_000
   */
  readonly retryDelayMs?: number | undefined;
  /**
   * Timeout of a call in milliseconds, from the service's first response. After it, the call fails with a
   * WaitTimeoutError. The job continues, and the queue job's `retry()` waits for it again.
   * @default 86_400_000 (24 h)
   */
  readonly timeoutMs?: number | undefined;
  /**
   * Retries for failed jobs by error code, for calls that don't specify them: a number of retries, or a list of models to
   * retry with.
   * @default {}: a failed job ends the call
   */
  readonly recover?: Recover | undefined;
  /**
   * Returns the budget for a call's `budgetScope`.
   * @default the client's budget, with that scope
   */
  readonly budget?: ((scope: string) => Budget) | undefined;
  /** Other options of BullMQ's Worker, such as `lockDuration` and `stalledInterval`. */
  readonly worker?: Omit<WorkerOptions, 'connection' | 'prefix' | 'concurrency' | 'maxStalledCount'> | undefined;
}

const WORKER_OPTIONS = option.optionsOf({
  ...LOCATION_FIELDS,
  onCompleted: option.callback,
  onFailed: option.callback,
  onError: option.callback,
  concurrency: option.must(
    'a whole number above 0',
    (value) => typeof value === 'number' && Number.isInteger(value) && value > 0,
  ),
  pollIntervalMs: option.milliseconds,
  retryDelayMs: option.milliseconds,
  timeoutMs: option.milliseconds,
  recover: option.anything,
  budget: option.callback,
  worker: option.anObject,
});

/** A running worker. */
export interface GenWorker {
  /** BullMQ's worker, for its events. */
  readonly worker: Worker<GenJobData, GenJobResult>;
  /**
   * Closes the worker within 5 seconds. Aborts requests, which other workers send again with the same keys. A longer
   * `onCompleted` continues while the process runs.
   */
  close(): Promise<void>;
}

/** A call's job is paid, so another worker always continues it. */
const MAX_STALLS = Number.MAX_SAFE_INTEGER;
const CONCURRENCY = 10;
const DEFAULT_RETRY_MS = 30_000;
/** BullMQ's default. */
const LOCK_MS = 30_000;
const SWEEP_INTERVAL_MS = 30_000;
/** Pauses between retries of `onFailed`. */
const REPORT_PAUSES = { firstMs: 1_000, maxMs: 60_000 };

interface FailureReport {
  readonly onFailed: NonNullable<GenWorkerOptions['onFailed']>;
  readonly onError: (error: Error) => void;
  readonly closing: AbortSignal;
}

/**
 * Creates a worker that processes the calls of {@link createGenQueue}. If it crashes, another worker continues its jobs. If
 * several processes share an account, pass the client a `store`.
 *
 * @example
 * createGenWorker(connection, client, { onCompleted: (job) => saveOutput(client, job, `${job.id}.mp4`) });
 */
export function createGenWorker(
  connection: ConnectionOptions,
  client: GenClient,
  options: GenWorkerOptions = {},
): GenWorker {
  option.checkOptions('createGenWorker', WORKER_OPTIONS, options);
  checkConnection('createGenWorker', connection, options);
  checkClient('createGenWorker', client);
  checkStalledCount(options.worker);
  const { calls, options: base } = queueNames(connection, options);
  const onError = (error: Error) => callObserver(() => options.onError?.(error));
  const jobIndex = openJobIndex(connection, options);
  const queue = new Queue<GenJobData, GenJobResult>(calls, base);
  const closing = new AbortController();
  const processCall = createProcessor({
    onCompleted: options.onCompleted,
    onFailed: options.onFailed,
    pollIntervalMs: options.pollIntervalMs,
    rules: detachedRules({
      timeoutMs: options.timeoutMs ?? DAY_MS,
      recover: options.recover,
      retryMs: options.retryDelayMs ?? DEFAULT_RETRY_MS,
    }),
    client,
    jobIndex,
    queue,
    clock: systemClock,
    budgetOf: options.budget ?? ((scope) => budgetOf(client, scope)),
    onError,
    lockMs: options.worker?.lockDuration ?? LOCK_MS,
    closing: closing.signal,
  });
  const worker = new Worker<GenJobData, GenJobResult>(calls, processCall, {
    ...options.worker,
    maxStalledCount: MAX_STALLS,
    ...base,
    concurrency: options.concurrency ?? CONCURRENCY,
  });
  worker.on('error', onError);
  queue.on('error', onError);
  repeat(SWEEP_INTERVAL_MS, () => jobIndex.sweep(queue), { closing: closing.signal, onError });
  worker.on('failed', (queueJob, reason) => {
    // BullMQ retries an unfinished job, and failCall has already reported a stored failure.
    if (queueJob?.finishedOn === undefined || !isCall(queueJob.data) || queueJob.data.failure !== undefined) return;
    const { onFailed = () => {} } = options;
    reportEngineFailure(queueJob, reason, { onFailed, onError, closing: closing.signal }).catch(onError);
  });
  return {
    worker,
    async close() {
      closing.abort(new Error('The worker is closing.'));
      // Don't disconnect, so that a longer `onCompleted` can still store its result.
      const parts = [worker, queue, jobIndex].map((part) => ({ close: () => part.close() }));
      await closeInTime(connection, parts).catch(onError);
    },
  };
}

/** With a lower count, BullMQ would end a call whose worker crashed. */
function checkStalledCount(worker: object = {}): void {
  if (!('maxStalledCount' in worker)) return;
  throw new GenError(
    "createGenWorker: worker.maxStalledCount is not supported, because a call's job is paid, so another worker always continues it after a crash. Remove it.",
  );
}

/** Reports a call that BullMQ itself failed, for example the parent of a failed child. */
async function reportEngineFailure(
  queueJob: GenQueueJob,
  reason: Error,
  { onFailed, onError, closing }: FailureReport,
): Promise<void> {
  const { id = '', data } = queueJob;
  const jobHint = data.jobId === undefined ? '' : ` Its job is ${data.jobId}, and retry() of its record waits for it.`;
  const message = `BullMQ has failed "${id}": ${reason.message}.${jobHint}`;
  const error = new GenError(message, { cause: reason, recovery: 'retry' });
  const deadlineMs = systemClock.now() + DAY_MS;
  for (let failures = 1; ; failures++) {
    try {
      await onFailed(error, queueJob);
      break;
    } catch (thrown) {
      if (systemClock.now() >= deadlineMs) throw thrown;
      onError(thrown instanceof Error ? thrown : new Error(String(thrown)));
      await sleep(systemClock, backoff(REPORT_PAUSES, failures), closing);
    }
  }
  // BullMQ may have removed the record.
  const failure = error.toJSON();
  await queueJob.updateData({ ...queueJob.data, failure, stalls: queueJob.stalledCounter }).catch(() => {});
}

/** Runs `work` immediately and then at intervals, until the worker closes. */
async function repeat(
  intervalMs: number,
  work: () => Promise<void>,
  { closing, onError }: Pick<FailureReport, 'closing' | 'onError'>,
): Promise<void> {
  while (!closing.aborted) {
    await work().catch((error: unknown) => closing.aborted || onError(error as Error));
    await sleep(systemClock, intervalMs, closing).catch(() => {});
  }
}

function budgetOf(client: GenClient, scope: string): Budget {
  const budget = client.budgetOf(scope);
  if (budget) return budget;
  throw new GenError(
    `budgetScope: "${scope}" needs a budget. Pass a createBudget to the worker's client, or budget: (scope) => Budget to createGenWorker.`,
  );
}
