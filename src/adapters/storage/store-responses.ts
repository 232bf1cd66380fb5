// Classifies the responses of object stores, with the codes of S3 and compatible stores.
import { DownloadError, GenError, StorageError } from '../../errors/index.js';
import { endsWait } from '../../rules/failure-kind.js';

/** Statuses below 500 that a retry can fix. */
const RETRYABLE_STATUSES: readonly number[] = [408, 409, 425, 429];
/** Statuses of a conflict: the object exists, or another request is storing it. */
const CONFLICT_STATUSES: readonly number[] = [409, 412];
/** Download errors that a retry can fix. */
const RETRYABLE_DOWNLOADS: readonly string[] = ['interrupted', 'file_changed', 'not_media'];
const CODES_WITHOUT_RESPONSE: readonly string[] = ['timeout', 'unreachable', 'put_failed'];
/** Codes of an invalid signature. Any other 403 only means that the request isn't allowed. */
const BAD_SIGNATURE =
  /^(SignatureDoesNotMatch|InvalidAccessKeyId|RequestTimeTooSkewed|ExpiredToken|ExpiredTokenException|TokenRefreshRequired|InvalidToken|InvalidSecurity)$/;

/** A response's status, and the error code in its body. */
export interface StoreResponse {
  readonly status: number | undefined;
  readonly code: string;
}

/** Returns true if a retry can succeed. */
export function isRetryableStoreError(error: StorageError): boolean {
  const { status, code, cause } = error;
  if (GenError.isInstance(cause) && !StorageError.isInstance(cause)) return false;
  return status === undefined || status >= 500 || RETRYABLE_STATUSES.includes(status) || code === 'RequestTimeout';
}

/** Returns true if the copy can succeed later. A temporary failure must not end the run of a paid job. */
export function mayCopyLater(error: GenError): boolean {
  if (DownloadError.isInstance(error)) return RETRYABLE_DOWNLOADS.includes(error.code);
  if (!StorageError.isInstance(error)) return !endsWait(error);
  if (error.status !== undefined) return isRetryableStoreError(error);
  return CODES_WITHOUT_RESPONSE.includes(error.code);
}

export function isConflict({ status }: StorageError): boolean {
  return status !== undefined && CONFLICT_STATUSES.includes(status);
}

/** Returns true if the object may exist: the response was lost, or the store failed after it received the bytes. */
export function mayHaveStored({ code, status = 0 }: StorageError): boolean {
  return code === 'unreachable' || code === 'timeout' || status >= 500;
}

/** Returns true if the object doesn't exist. A missing bucket is an error instead. */
export function isAbsent({ status, code }: StoreResponse): boolean {
  return status === 404 && code !== 'NoSuchBucket';
}

/** Returns true if the credentials don't allow reads, so that the object may or may not exist. */
export function isUnknown({ status, code }: StoreResponse): boolean {
  return status === 403 && !BAD_SIGNATURE.test(code);
}

export function isTemporaryRedirect(status: number): boolean {
  return status === 307 || status === 308;
}

/** Returns true if the store doesn't support conditional puts. Backblaze B2 doesn't. */
export function rejectsCondition({ status, code }: StoreResponse): boolean {
  return status === 501 || code === 'NotImplemented';
}
