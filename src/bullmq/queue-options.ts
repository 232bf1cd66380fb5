import type { JobsOptions } from 'bullmq';
import * as z from 'zod/mini';
import * as option from '../options.js';
import type { Recover } from '../rules/run-state.js';
import { LOCATION_FIELDS, type QueueLocation } from './connection.js';

/** How to open a queue. */
export interface GenQueueOptions extends QueueLocation {
  /** Called with errors of the connection. The engine reconnects by itself. @default nothing is done with them */
  readonly onError?: ((error: Error) => void) | undefined;
}

/** How to queue a call: the engine's own options, and what the call itself takes. */
export interface EnqueueOptions extends Omit<JobsOptions, 'jobId'> {
  /**
   * The queue job's id, which is also the Idempotency-Key of the call. The same id never makes a second job, in the queue
   * or on the service. The engine allows no colon and no bare number.
   * @default `params.idempotency_key`, else a fresh UUID
   */
  readonly jobId?: string | undefined;
  /** Whether a call that the documented rules refuse is refused before it is queued. @default true */
  readonly preflight?: boolean | undefined;
  /**
   * How to go on after a failed job, by its error code, as in `createAndWait`: a number of further tries, or one try with
   * each of some models. `timeoutMs` of the worker is for all of them.
   * @default the worker's `recover`
   */
  readonly recover?: Recover | undefined;
  /**
   * `after-job` deletes the uploads of the files in the params when the call has ended with its job.
   * @default undefined: they stay
   */
  readonly cleanup?: 'after-job' | undefined;
  /**
   * Whose budget the create is for, for example a tenant's: the worker reserves in the budget of this scope instead of in the
   * client's own. A call over budget waits for the next period where there is one.
   * @default undefined: the budget of the worker's client
   */
  readonly budgetScope?: string | undefined;
  /**
   * Whether a call of this id that has ended is started anew. A failed one goes on as after the engine's `retry()`, and a
   * completed one makes another job, under a key of its own. Without it, queuing an ended call is a GenError.
   * @default false
   */
  readonly again?: boolean | undefined;
}

/** The options of `createGenQueue`. */
export const QUEUE_OPTIONS = z.strictObject({ ...LOCATION_FIELDS, onError: option.callback });

const passedOn = z.optional(z.any());

/** The engine's own options of a job, which it checks itself. */
const ENGINE_OPTIONS = [
  'attempts',
  'backoff',
  'continueParentOnFailure',
  'deduplication',
  'delay',
  'failParentOnFailure',
  'ignoreDependencyOnFailure',
  'keepLogs',
  'lifo',
  'parent',
  'priority',
  'removeDependencyOnFailure',
  'removeOnComplete',
  'removeOnFail',
  'sizeLimit',
  'stackTraceLimit',
  'telemetry',
  'timestamp',
] as const satisfies readonly (keyof JobsOptions)[];

/** The options of a queued call. */
export const ENQUEUE_OPTIONS = z.strictObject({
  ...(Object.fromEntries(ENGINE_OPTIONS.map((name) => [name, passedOn])) as Record<
    (typeof ENGINE_OPTIONS)[number],
    typeof passedOn
  >),
  jobId: passedOn,
  preflight: option.flag,
  recover: passedOn,
  cleanup: option.oneOf('after-job'),
  budgetScope: option.text,
  again: option.flag,
});
