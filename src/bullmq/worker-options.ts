import type { WorkerOptions } from 'bullmq';
import * as z from 'zod/mini';
import type { GenError } from '../errors/index.js';
import * as option from '../options.js';
import type { Recover } from '../rules/run-state.js';
import type { Budget } from '../schemas/budget.js';
import type { CompletedJob } from '../schemas/job.js';
import { LOCATION_FIELDS, type QueueLocation } from './connection.js';
import type { GenQueueJob } from './job-data.js';

/** How a worker runs. */
export interface GenWorkerOptions extends QueueLocation {
  /**
   * Called with the completed job, and awaited, before the queue job ends: the place to copy the file to your own storage.
   * Called at least once, because a crash in between calls it again. When it throws, it is called again for a day, with
   * pauses up to `retryDelayMs`, and uses up none of the engine's `attempts`; then the call fails. The job is not created
   * again. The engine's UnrecoverableError ends the call at once.
   */
  readonly onCompleted?: ((job: CompletedJob, queueJob: GenQueueJob) => unknown) | undefined;
  /**
   * Called with the error that ended a call, and awaited, before the queue job fails; at least once. When it throws, it is
   * called again, for a day.
   */
  readonly onFailed?: ((error: GenError, queueJob: GenQueueJob) => unknown) | undefined;
  /** Called with errors of the worker's connection. The engine reconnects by itself. @default nothing is done with them */
  readonly onError?: ((error: Error) => void) | undefined;
  /** How many calls this process works on at once. Sleeping calls do not count. @default 10 */
  readonly concurrency?: number | undefined;
  /** Milliseconds between two reads of a job. @default 10-15 s for video and edits, 3-4.5 s for images, more when many jobs are waited for */
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
  readonly worker?: Omit<WorkerOptions, 'connection' | 'prefix' | 'concurrency'> | undefined;
}

/** The options of `createGenWorker`. */
export const WORKER_OPTIONS = z.strictObject({
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
  recover: z.optional(z.any()),
  budget: option.callback,
  worker: option.anObject,
});
