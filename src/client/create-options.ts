// Options for the calls that create jobs.
import * as option from '../rules/options.js';
import type { Recover } from '../rules/run-state.js';
import type { CompletedJob, CreatedJob, Job } from '../schemas/job.js';
import type { BodyFileOptions } from '../uploading/body-files.js';
import { WAIT_CHECKS, type WaitOptions } from '../waiting/wait-options.js';

/**
 * Options for `create`.
 *
 * Files in the body are uploaded after validation, each file object once per process. If no job was created, the uploads are
 * deleted. If one may have been created, the error's `uploadIds` lists them. Repeating the call with its `idempotencyKey` after a
 * crash uploads the files again, unless you pass upload IDs, and returns the first job.
 */
export interface CreateCallOptions extends BodyFileOptions {
  /**
   * A label for the job, such as your user's ID. Included in the job's events, spans, and ledger entry, and never sent to the
   * service. @default none
   */
  readonly label?: string | undefined;
}

/** Options for a wait for a job that the call creates. */
export interface CreateAndWaitOptions extends WaitOptions {
  /** Idempotency key of the first create. The same call with the same key resumes a crashed run. @default a new UUID */
  readonly idempotencyKey?: string | undefined;
  /**
   * Called and awaited each time the service accepts a job, so you can save its ID. If it throws or doesn't settle before the
   * deadline, the call rejects and the job continues.
   */
  readonly onCreated?: ((created: CreatedJob) => unknown) | undefined;
  /**
   * If true, resubmits a job that failed with `reference_asset_pending`, or a create rejected with `character_pending`, when
   * the review may be done: at most 20 times, and within `timeoutMs`.
   * @default true
   */
  readonly resubmitPending?: boolean | undefined;
  /**
   * Retries for failed jobs by error code: a number of retries, or a list of models to retry with. Each retry's key is
   * derived from the first key, and `tries` on the result lists the jobs. `timeoutMs` covers all of them.
   * @default {}: a failed job ends the call
   * @example { generation_timeout: 2, generation_unavailable: { models: ['svc-video-mini'] } }
   */
  readonly recover?: Recover | undefined;
}

/** Options for `createAndWait`. `timeoutMs` limits the entire wait. */
export interface CreateOptions
  extends Omit<CreateCallOptions, 'timeoutMs' | 'signal' | 'idempotencyKey'>,
    CreateAndWaitOptions {
  /**
   * `after-job` deletes this call's uploads after its job ends. After a timeout or an abort they remain, because the job
   * continues. Uploads that you pass by ID always remain.
   * @default undefined: they remain, and are reused
   */
  readonly cleanup?: 'after-job' | undefined;
}

const CREATE_CALL_CHECKS = { ...option.REQUEST_CHECKS, onUploadProgress: option.callback, label: option.text };

export const CREATE_CALL_OPTIONS = option.optionsOf(CREATE_CALL_CHECKS);

/** Checks of the options of `createAndWait`, including those of its requests. */
export const CREATE_AND_WAIT_CHECKS = {
  ...CREATE_CALL_CHECKS,
  ...WAIT_CHECKS,
  onCreated: option.callback,
  resubmitPending: option.flag,
  recover: option.anything,
  cleanup: option.oneOf('after-job'),
};

export const CREATE_AND_WAIT_OPTIONS = option.optionsOf(CREATE_AND_WAIT_CHECKS);

/** Result of a wait: a completed job, or any final one if `throwOnFailure` is false. */
export type FinalJob<Throws extends boolean> = Throws extends false ? Job : CompletedJob;

/** Result of `createAndWait`. In a test, a plain promise can replace it. */
export type FinalJobPromise<Throws extends boolean> = Promise<FinalJob<Throws>> & {
  /** Idempotency key of the first create, available immediately. Repeating the call with this key resumes an aborted run. */
  readonly idempotencyKey?: string | undefined;
};

/** The options of `createAndWait`, with the value of `throwOnFailure` as a type. */
export type CreateOptionsOf<Throws extends boolean> = CreateOptions & { readonly throwOnFailure?: Throws | undefined };
