// The options of the calls that create jobs.
import * as z from 'zod/mini';
import * as option from '../rules/options.js';
import type { Recover } from '../rules/run-state.js';
import type { CompletedJob, CreatedJob, Job } from '../schemas/job.js';
import type { BodyFileOptions } from '../uploading/body-files.js';
import { WAIT_OPTIONS, type WaitOptions } from '../waiting/wait-options.js';

/**
 * What `create` takes: the options of every call, and those of the files in its body.
 *
 * Files are uploaded when the params have passed the checks, and before the create is sent. One object is uploaded
 * once per process while its upload lives. Where no job was made, the uploads of this call are deleted; where one may have
 * been made, the error's `uploadIds` lists them. A program that dies between the upload and the create leaves them on the
 * service. A call that is run again under its `idempotencyKey` uploads them again and gets its first job: give upload ids
 * where that matters.
 */
export interface CreateCallOptions extends BodyFileOptions {
  /**
   * Says whom or what the job is for, such as the id of your user. It is in the job's events, spans and ledger entry, and
   * is never sent to the service. @default none
   */
  readonly label?: string | undefined;
}

/** How to wait for a job that a call creates. */
export interface CreateAndWaitOptions extends WaitOptions {
  /** Key of the first create. The same call under the same key takes up a crashed run. @default a fresh UUID */
  readonly idempotencyKey?: string | undefined;
  /**
   * Called each time the service has accepted a job, and awaited before the wait: the place to note its id. What it throws
   * ends the call, and so do an abort and `timeoutMs` while it runs; the job goes on.
   */
  readonly onCreated?: ((created: CreatedJob) => unknown) | undefined;
  /**
   * Whether what waits for the review of a reference or a character is sent again: a job that failed with
   * `reference_asset_pending`, and a create refused with `character_pending`. It is sent when the service says so, at most
   * 20 times and within `timeoutMs`.
   * @default true
   */
  readonly resubmitPending?: boolean | undefined;
  /**
   * How to go on after a failed job, by its error code: a number of further tries, or one try with each of some models.
   * Each try is a job of its own under a key derived from the first; `tries` on the result lists them. `timeoutMs` is for
   * all of them. When no try is left, the call throws the error of the last one.
   * @default {}: a failed job ends the call
   * @example { generation_timeout: 2, generation_unavailable: { models: ['svc-video-mini'] } }
   */
  readonly recover?: Recover | undefined;
}

/** What `createAndWait` takes: the options of the call, of the wait (whose `timeoutMs` counts) and of the resubmission. */
export interface CreateOptions
  extends Omit<CreateCallOptions, 'timeoutMs' | 'signal' | 'idempotencyKey'>,
    CreateAndWaitOptions {
  /**
   * `after-job` deletes the uploads that this call has made, once its job has ended, whichever way. They stay where the job
   * goes on: after a time-out of the wait, and after an abort. Uploads that are given by their id always stay.
   * @default undefined: they stay, and can be used again
   */
  readonly cleanup?: 'after-job' | undefined;
}

export const CREATE_CALL_OPTIONS = z.extend(option.REQUEST_OPTIONS, {
  onUploadProgress: option.callback,
  label: option.text,
});

/** The options of `createAndWait`. Those of its requests are checked with them. */
export const CREATE_AND_WAIT_OPTIONS = z.extend(CREATE_CALL_OPTIONS, {
  ...WAIT_OPTIONS.shape,
  onCreated: option.callback,
  resubmitPending: option.flag,
  recover: option.anything,
  cleanup: option.oneOf('after-job'),
});

/** What a wait gives: a completed job, or any final one where `throwOnFailure` is false. */
export type FinalJob<Throws extends boolean> = Throws extends false ? Job : CompletedJob;

/** The options of `createAndWait` with the value of `throwOnFailure` seen by the compiler. */
export type CreateOptionsOf<Throws extends boolean> = CreateOptions & { readonly throwOnFailure?: Throws | undefined };
