// What the failure of a row means for the rows after it.
import {
  AuthenticationError,
  ConnectionError,
  DownloadError,
  InsufficientBalanceError,
  PermissionDeniedError,
  ServerError,
  StorageError,
  UploadError,
} from '../../errors/index.js';
import { fateOf } from '../../rules/fate.js';
import type { RowRecord } from './records.js';

/** A job that is made again by its own run: the failure is not the row's last word. */
export const RESUBMITTED = 'reference_asset_pending';

/** Whether a row has to be paid for, as far as its record knows. */
export function isUnpaid({ jobId, job }: RowRecord, retryFailed: boolean): boolean {
  if (jobId === undefined) return true;
  if (job === undefined || job.status === 'completed') return false;
  return retryFailed || job.errorCode === RESUBMITTED;
}

/** Why a row is not started, and what finishes it. */
const LEFT_OUT = {
  batch_stopped: ['The batch was stopped.', 'the next run'],
  budget_exceeded: ['It would pass --max-tokens.', 'a higher limit'],
} as const;

/** The code of a row that is not started. */
export type LeftOut = keyof typeof LEFT_OUT;

/** The error of a row that is not started. */
export function leftOut(code: LeftOut, { mayHaveJob }: { readonly mayHaveJob: boolean }): Record<string, unknown> {
  const [why, remedy] = LEFT_OUT[code];
  const message = mayHaveJob ? `${why} It may have a job already: ${remedy} finishes it.` : why;
  return { name: 'GenError', message, code };
}

/** Whether every other row would fail in the same way: a wrong key, no balance, a service or a store that is away. */
export function isSystemic(error: unknown): boolean {
  if (UploadError.isInstance(error)) return isSystemic(error.cause);
  return (
    [AuthenticationError, PermissionDeniedError, InsufficientBalanceError].some((type) => type.isInstance(error)) ||
    (ConnectionError.isInstance(error) && fateOf(error) === 'unsent') ||
    (ServerError.isInstance(error) && error.code === 'dispatch_disabled')
  );
}

/** Whether no other file could be placed either: a full or closed disk, or a store that refuses. */
export function isTargetAway(error: unknown): boolean {
  const cannotWrite = DownloadError.isInstance(error) && error.code === 'cannot_write';
  return cannotWrite || StorageError.isInstance(error) || ConnectionError.isInstance(error);
}
