// The options of the calls that create jobs.
import * as z from 'zod/mini';
import * as option from '../rules/options.js';
import type { CompletedJob, Job } from '../schemas/job.js';
import type { BodyFileOptions } from '../uploading/body-files.js';
import type { CreateAndWaitOptions } from '../waiting/wait-for-job.js';

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

/** What a wait gives: a completed job, or any final one where `throwOnFailure` is false. */
export type FinalJob<Throws extends boolean> = Throws extends false ? Job : CompletedJob;

/** The options of `createAndWait` with the value of `throwOnFailure` seen by the compiler. */
export type CreateOptionsOf<Throws extends boolean> = CreateOptions & { readonly throwOnFailure?: Throws | undefined };
