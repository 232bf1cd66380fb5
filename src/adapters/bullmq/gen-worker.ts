import { type ConnectionOptions, Queue, Worker, type WorkerOptions } from 'bullmq';
import type { GenClient } from '../../client/client.js';
import { checkClient, lastingRules } from '../../client/run-calls.js';
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
  createSweep,
  LOCATION_FIELDS,
  openJobIndex,
  type QueueLocation,
  queueNames,
} from './connection.js';
import { createProcessor } from './process-call.js';

/** How a worker runs. */
export interface GenWorkerOptions extends QueueLocation {
  /**
   * Called with the completed job, and awaited, before the queue job ends: the place to copy the file to your own storage.
   * Called at least once, because a crash in between calls it again. When it throws, it is called again for a day, with
   * pauses up to `retryDelayMs`; then the call fails. The job is not created
   * again. The engine's UnrecoverableError ends the call at once.
   */
  readonly onCompleted?: ((job: CompletedJob, queueJob: GenQueueJob) => unknown) | undefined;
  /**
   * Called with the error that ended a call, and awaited, before the queue job fails; at least once. When it throws, it is
   * called again, for a day. A failure that the engine alone decides, such as that of a child with `failParentOnFailure`, is
   * told right after it.
   */
  readonly onFailed?: ((error: GenError, queueJob: GenQueueJob) => unknown) | undefined;
  /** Called with errors of the worker's connection. The engine reconnects by itself. @default nothing is done with them */
  readonly onError?: ((error: Error) => void) | undefined;
  /** How many calls this process works on at once. Sleeping calls do not count. @default 10 */
  readonly concurrency?: number | undefined;
  /**
   * Milliseconds between two reads of a job.
   * @default 10-15 s for video and edits, 3-4.5 s for images, more when many jobs are waited for
   */
  readonly pollIntervalMs?: number | undefined;
  /**
   * The longest pause, in milliseconds, after the service or the connection failed without naming a time. The first pause
   * is a second, and each one after it is twice as long.
   * @default 30_000
   */
  readonly retryDelayMs?: number | undefined;
  /**
   * Milliseconds from the service's first answer at which a call that has not ended fails with a WaitTimeoutError; its job
   * goes on. Time in the queue does not count. `retry()` of the queue job takes the job up again.
   * @default 86_400_000 (24 h)
   */
  readonly timeoutMs?: number | undefined;
  /**
   * How to go on after a failed job, by its error code, for calls that do not say it themselves: a number of further tries,
   * or one try with each of some models.
   * @default {}: a failed job ends the call
   */
  readonly recover?: Recover | undefined;
  /**
   * Gives the budget of a call's `budgetScope`.
   * @default the budget of the client, under that scope
   */
  readonly budget?: ((scope: string) => Budget) | undefined;
  /** Further options of the engine’s Worker, for example `lockDuration` and `stalledInterval`. */
  readonly worker?: Omit<WorkerOptions, 'connection' | 'prefix' | 'concurrency' | 'maxStalledCount'> | undefined;
}

const WORKER_OPTIONS = option.optionsOf({
  ...LOCATION_FIELDS,
  onCompleted: option.callback,
  onFailed: option.callback,
  onError: option.callback,
  concurrency: option.must<number>(
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
  /** The engine's own worker, for its events. */
  readonly worker: Worker<GenJobData, GenJobResult>;
  /**
   * Ends within five seconds. Calls to the service are broken off, and other workers take them up under their own keys.
   * An `onCompleted` that takes longer goes on as long as the process lives.
   */
  close(): Promise<void>;
}

/** A call whose worker died is taken up again however often that happens: its job is paid for. */
const NEVER_GIVEN_UP = Number.MAX_SAFE_INTEGER;
const CONCURRENCY = 10;
const DEFAULT_RETRY_MS = 30_000;
/** The engine's own default. */
const LOCK_MS = 30_000;
const CLEAN_EVERY_MS = 10 * 60 * 1000;
const SWEEP_EVERY_MS = 30_000;
/** The pauses of an onFailed that throws. */
const TELLING = { firstMs: 1_000, mostMs: 60_000 };

/** How a worker tells of what goes wrong. */
interface Telling {
  readonly onFailed: NonNullable<GenWorkerOptions['onFailed']>;
  readonly onError: (error: Error) => void;
  readonly closing: AbortSignal;
}

/**
 * Works on the calls of {@link createGenQueue}. Creates under the queue job's own id, stores the service's job id,
 * sleeps as a delayed job and ends with the completed job or its error. Kill it at any point; another goes on.
 * Give the client a `store` when several processes share an account.
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
  refuseStalledCount(options.worker);
  const { calls, options: base } = queueNames(connection, options);
  const onError = (error: Error) => callObserver(() => options.onError?.(error));
  const jobIndex = openJobIndex(connection, options);
  const queue = new Queue<GenJobData, GenJobResult>(calls, base);
  const closing = new AbortController();
  const work = createProcessor({
    onCompleted: options.onCompleted,
    onFailed: options.onFailed,
    pollIntervalMs: options.pollIntervalMs,
    rules: lastingRules({
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
  const worker = new Worker<GenJobData, GenJobResult>(calls, work, {
    ...options.worker,
    maxStalledCount: NEVER_GIVEN_UP,
    ...base,
    concurrency: options.concurrency ?? CONCURRENCY,
  });
  worker.on('error', onError);
  queue.on('error', onError);
  regularly(CLEAN_EVERY_MS, jobIndex.clean, { closing: closing.signal, onError });
  regularly(SWEEP_EVERY_MS, createSweep(jobIndex, queue), { closing: closing.signal, onError });
  worker.on('failed', (queueJob, reason) => {
    // The engine retries an unfinished one, and failCall has reported one that has a failure.
    if (queueJob?.finishedOn === undefined || !isCall(queueJob.data) || queueJob.data.failure !== undefined) return;
    const { onFailed = () => {} } = options;
    tellEngineFailure(queueJob, reason, { onFailed, onError, closing: closing.signal }).catch(onError);
  });
  return {
    worker,
    async close() {
      closing.abort(new Error('The worker is closing.'));
      // Not to be cut: an `onCompleted` that takes longer stores what it has done.
      const parts = [worker, queue, jobIndex].map((part) => ({ close: () => part.close() }));
      await closeInTime(connection, parts).catch(onError);
    },
  };
}

/** The engine would end a call whose worker has died, without a word. */
function refuseStalledCount(worker: object = {}): void {
  if (!('maxStalledCount' in worker)) return;
  throw new GenError(
    'createGenWorker takes no worker.maxStalledCount. Leave it out: a call whose worker has died is always taken up, because its job is paid.',
  );
}

/**
 * Tells of a call that the engine has failed by itself: a hand-written child of a flow that has used up its attempts, a
 * parent whose child has failed. Its record has no failure of ours.
 */
async function tellEngineFailure(
  queueJob: GenQueueJob,
  reason: Error,
  { onFailed, onError, closing }: Telling,
): Promise<void> {
  const { id = '', data } = queueJob;
  const job = data.jobId === undefined ? '' : ` Its job is ${data.jobId}, and retry() of its record takes it up.`;
  const message = `The engine has ended "${id}": ${reason.message}.${job}`;
  const error = new GenError(message, { cause: reason, recovery: 'retry' });
  const until = systemClock.now() + DAY_MS;
  for (let failures = 1; ; failures++) {
    try {
      await onFailed(error, queueJob);
      break;
    } catch (thrown) {
      if (systemClock.now() >= until) throw thrown;
      onError(thrown instanceof Error ? thrown : new Error(String(thrown)));
      await sleep(systemClock, backoff(TELLING, failures), closing);
    }
  }
  // Also where the engine keeps no record of a failed call.
  const failure = error.toJSON();
  await queueJob.updateData({ ...queueJob.data, failure, stalls: queueJob.stalledCounter }).catch(() => {});
}

/** Does something at once and then now and again, until it is closed. */
async function regularly(
  everyMs: number,
  act: () => Promise<void>,
  { closing, onError }: Pick<Telling, 'closing' | 'onError'>,
): Promise<void> {
  while (!closing.aborted) {
    await act().catch((error: unknown) => closing.aborted || onError(error as Error));
    await sleep(systemClock, everyMs, closing).catch(() => {});
  }
}

function budgetOf(client: GenClient, scope: string): Budget {
  const budget = client.budgetOf(scope);
  if (budget) return budget;
  throw new GenError(
    `budgetScope "${scope}" needs a budget: give the worker's client one made by createBudget, or createGenWorker the option budget: (scope) => Budget.`,
  );
}
