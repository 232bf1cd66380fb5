// What the answer of an object store means for a copy. It is not the service: these are the codes of S3 and of stores like it.
import { DownloadError, GenError, StorageError } from '../../errors/index.js';
import { failureKindOf } from '../../rules/failure-kind.js';

/** Statuses of a request that may succeed when it is repeated. */
const PASSING: readonly number[] = [408, 409, 425, 429];
/** Statuses that say that an object is already there, or that another request is storing it. */
const TAKEN: readonly number[] = [409, 412];
/** Codes of a download that may come whole the next time. */
const CHANGED_ON_THE_WAY: readonly string[] = ['interrupted', 'file_changed'];
const WITHOUT_ANSWER: readonly string[] = ['timeout', 'unreachable', 'put_failed'];
/** Codes of a request whose signature is wrong. Every other 403 says only that this request is not allowed. */
const BAD_SIGNATURE =
  /^(SignatureDoesNotMatch|InvalidAccessKeyId|RequestTimeTooSkewed|ExpiredToken|ExpiredTokenException|TokenRefreshRequired|InvalidToken|InvalidSecurity)$/;

/** The status of a store's answer, where there was one, and the code in its body. */
export interface StoreAnswer {
  readonly status: number | undefined;
  readonly code: string;
}

/** Whether a failed request may succeed when it is repeated: not when the store says that the request itself is wrong. */
export function isPassingStore(error: StorageError): boolean {
  const { status, code, cause } = error;
  if (GenError.isInstance(cause) && !StorageError.isInstance(cause)) return false;
  return status === undefined || status >= 500 || PASSING.includes(status) || code === 'RequestTimeout';
}

/** Whether the same copy may succeed later: the job is paid, so its file is not given up for a moment's trouble. */
export function mayCopyLater(error: GenError): boolean {
  if (DownloadError.isInstance(error)) return CHANGED_ON_THE_WAY.includes(error.code);
  if (!StorageError.isInstance(error)) return failureKindOf(error) === 'lost';
  if (error.status !== undefined) return isPassingStore(error);
  return WITHOUT_ANSWER.includes(error.code);
}

export function isTaken({ status }: StorageError): boolean {
  return status !== undefined && TAKEN.includes(status);
}

/** Whether the object may be there all the same: the answer was lost, or the store failed after it had all bytes. */
export function mayHaveStored({ code, status = 0 }: StorageError): boolean {
  return code === 'unreachable' || code === 'timeout' || status >= 500;
}

/** Whether there is no such object. A bucket that does not exist is another matter. */
export function isAbsent({ status, code }: StoreAnswer): boolean {
  return status === 404 && code !== 'NoSuchBucket';
}

/** Whether credentials may not look, so that nothing is known of the object: those of a policy that only allows to put. */
export function isUnknown({ status, code }: StoreAnswer): boolean {
  return status === 403 && !BAD_SIGNATURE.test(code);
}

/** Whether the request is to be sent again, as it is, to the place that the answer names. */
export function isTemporaryRedirect(status: number): boolean {
  return status === 307 || status === 308;
}

export function isDenied({ status }: Pick<StoreAnswer, 'status'>): boolean {
  return status === 403;
}

/** Whether a store does not know the condition of a put. Backblaze B2 answers If-None-Match so. */
export function refusesCondition({ status, code }: StoreAnswer): boolean {
  return status === 501 || code === 'NotImplemented';
}
