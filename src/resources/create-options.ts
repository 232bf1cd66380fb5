import * as z from 'zod/mini';
import * as option from '../options.js';
import type { CreateAndWaitOptions } from '../polling/create-and-wait.js';
import { REQUEST_OPTIONS } from '../transport/call-options.js';
import type { BodyFileOptions } from '../uploading/body-files.js';

/**
 * What `create` takes: the options of every call, and those of the files in its body.
 *
 * Files are uploaded when the params have passed the checks, and before the create is sent. Where the create is refused,
 * they are deleted. A program that dies between the upload and the create leaves them on the service. A call that is run
 * again under its `idempotencyKey` uploads them again and gets its first job: give upload ids where that matters.
 */
export interface CreateCallOptions extends BodyFileOptions {}

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

/** The options of a create. */
export const CREATE_CALL_OPTIONS = z.extend(REQUEST_OPTIONS, { onUploadProgress: option.callback });
