// What the failure of a row means for the rows after it.

import { BudgetExceededError } from '../../errors/budget-error.js';
import {
  AuthenticationError,
  ConnectionError,
  DownloadError,
  GenError,
  InsufficientBalanceError,
  PermissionDeniedError,
  ServerError,
  StorageError,
  UploadError,
} from '../../errors/index.js';
import { fateOf } from '../../rules/fate.js';
import type { Job } from '../../schemas/job.js';

/** Whether the budget did not let the create go: there is no room, or it waits for a price that is being learned. */
export function isNotAdmitted(error: unknown): boolean {
  return BudgetExceededError.isInstance(error) || (ConnectionError.isInstance(error) && error.attempts === 0);
}

/** The error of a job that did not complete. */
export function jobFailure({ id, status, errorCode, errorMessage }: Job): GenError {
  const why = [errorCode, errorMessage].filter(Boolean).join(': ');
  return new GenError(`Job ${id} ${status === 'failed' ? 'failed' : `was ${status}`}${why === '' ? '' : ` (${why})`}.`);
}

/** Whether every other row would fail in the same way: a wrong key, no balance, a service that is away. */
export function isSystemic(error: unknown): boolean {
  if (UploadError.isInstance(error)) return isSystemic(error.cause);
  return (
    [AuthenticationError, PermissionDeniedError, InsufficientBalanceError].some((type) => type.isInstance(error)) ||
    (ConnectionError.isInstance(error) && fateOf(error) === 'unsent') ||
    (GenError.isInstance(error) && /^The journal /.test(error.message)) ||
    (ServerError.isInstance(error) && error.code === 'dispatch_disabled')
  );
}

/** Whether no other file could be placed either: a full or closed disk, or a store that refuses. */
export function isTargetAway(error: unknown): boolean {
  return StorageError.isInstance(error) || (DownloadError.isInstance(error) && error.code === 'cannot_write');
}
