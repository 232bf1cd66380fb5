import type { Recovery } from './codes.js';
import { type Details, GenError } from './gen-error.js';

type UploadDetails = Details<UploadError, 'step', 'uploadId'>;

/** Returns the cause's recovery, if it has one. Otherwise, a file that can't be prepared must be replaced. */
function uploadRecovery({ step, cause }: UploadDetails): Recovery {
  if (GenError.isInstance(cause)) return cause.recovery;
  return step === 'prepare' ? 'change_reference' : 'retry';
}

/** Thrown if an upload failed at `step`. */
export class UploadError extends GenError {
  protected static override get family() {
    return 'GenError/UploadError';
  }

  /** Step that failed. */
  declare readonly step: 'prepare' | 'create' | 'put' | 'complete';
  /** ID of the upload, if the service returned one. */
  declare readonly uploadId: string | undefined;

  constructor(message: string, details: UploadDetails) {
    super(message, { ...details, recovery: uploadRecovery(details) });
  }
}

/** Code of a failed download. */
export type DownloadErrorCode =
  | 'output_expired'
  | 'job_not_finished'
  | 'job_without_output'
  | 'not_media'
  | 'interrupted'
  | 'file_changed'
  | 'file_exists'
  | 'cannot_write'
  | (string & {});

/** Recovery by code, for problems that a retry can't resolve. */
const DOWNLOAD_RECOVERY: Readonly<Record<string, Recovery>> = {
  output_expired: 'none',
  job_without_output: 'none',
  job_not_finished: 'wait_again',
  file_exists: 'fix_setup',
  cannot_write: 'fix_setup',
};

/** Thrown if a job's file could not be downloaded or saved, for example because a different file exists. */
export class DownloadError extends GenError {
  protected static override get family() {
    return 'GenError/DownloadError';
  }

  /** Code to switch on. */
  declare readonly code: DownloadErrorCode;
  /** ID of the file's job. */
  declare readonly jobId: string;
  /** Idempotency key of the job, if this call created it. */
  declare readonly idempotencyKey: string | undefined;
  /** Expiry of the link (ISO 8601), if it expired and the service reports the time. */
  declare readonly expiredAt: string | undefined;

  constructor(message: string, details: Details<DownloadError, 'jobId' | 'code', 'idempotencyKey' | 'expiredAt'>) {
    super(message, { ...details, recovery: DOWNLOAD_RECOVERY[details.code] ?? 'retry' });
  }
}

/**
 * Code of a failed copy: one of these, the store's own, such as `SlowDown` or `SignatureDoesNotMatch`, or
 * `http_<status>` if the store sends none.
 */
export type StorageErrorCode =
  | 'object_exists'
  | 'body_not_read'
  | 'put_failed'
  | 'timeout'
  | 'unreachable'
  | 'redirected'
  | 'not_confirmed'
  | 'cannot_check'
  | (string & {});

type StorageDetails = Details<StorageError, 'code' | 'store', 'status'>;

function storageRecovery({ code, status }: StorageDetails): Recovery {
  if (code === 'object_exists') return 'change_request';
  return status === 401 || status === 403 ? 'fix_credentials' : 'retry';
}

/** Thrown if a store rejected an object or could not confirm it. The store contains no partial object. */
export class StorageError extends GenError {
  protected static override get family() {
    return 'GenError/StorageError';
  }

  /** Error code of the store, or of this package. */
  declare readonly code: StorageErrorCode;
  /** HTTP status of the store's response, if any. */
  declare readonly status: number | undefined;
  /** Store that failed: `s3`, `r2`, or the `store` of your own destination. */
  declare readonly store: string;

  constructor(message: string, details: StorageDetails) {
    super(message, { ...details, recovery: storageRecovery(details) });
  }
}
