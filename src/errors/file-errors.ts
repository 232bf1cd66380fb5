import type { Recovery } from './codes.js';
import { type Details, GenError } from './gen-error.js';

type UploadDetails = Details<UploadError, 'step', 'uploadId'>;

/** What went wrong underneath says best what to do. A file that cannot be read is a fault of this machine. */
function uploadRecovery({ step, cause }: UploadDetails): Recovery {
  if (GenError.isInstance(cause)) return cause.recovery;
  return step === 'prepare' ? 'change_reference' : 'retry';
}

/** An upload step failed. The message names the step. */
export class UploadError extends GenError {
  protected static override get family() {
    return 'GenError/UploadError';
  }

  /** The step that failed. */
  declare readonly step: 'prepare' | 'create' | 'put' | 'complete';
  /** The upload's id, once the service had given one. */
  declare readonly uploadId: string | undefined;

  constructor(message: string, details: UploadDetails) {
    super(message, { ...details, recovery: uploadRecovery(details) });
  }
}

/** Why a finished file could not be fetched or written. */
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

/** Faults of this machine, and those that another try cannot change. */
const SYSTEM_RECOVERY: Readonly<Record<string, Recovery>> = {
  output_expired: 'none',
  job_without_output: 'none',
  job_not_finished: 'wait_again',
  file_exists: 'fix_setup',
  cannot_write: 'fix_setup',
};

/** A finished file could not be fetched or written whole. */
export class DownloadError extends GenError {
  protected static override get family() {
    return 'GenError/DownloadError';
  }

  /** Why, as a value that a program can switch on. */
  declare readonly code: DownloadErrorCode;
  /** The job whose file it is. */
  declare readonly jobId: string;
  /** The key that the job was created under, where this call has created it. */
  declare readonly idempotencyKey: string | undefined;
  /** When the link expired (ISO 8601), where that is the reason and the service tells it. */
  declare readonly expiredAt: string | undefined;

  constructor(message: string, details: Details<DownloadError, 'jobId' | 'code', 'idempotencyKey' | 'expiredAt'>) {
    super(message, { ...details, recovery: SYSTEM_RECOVERY[details.code] ?? 'retry' });
  }
}

/**
 * What went wrong at a store. Beside these stands the store's own code, such as `SlowDown` or `SignatureDoesNotMatch`, and
 * `http_<status>` where it gives none.
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

/** A store did not take an object, or could not tell about one. Nothing partial is visible there. */
export class StorageError extends GenError {
  protected static override get family() {
    return 'GenError/StorageError';
  }

  /** What went wrong: the store's own code, or one of this package. */
  declare readonly code: StorageErrorCode;
  /** The HTTP status of the store's answer, where there is one. */
  declare readonly status: number | undefined;
  /** The store: `s3`, `r2`, or the `store` of a destination of your own. */
  declare readonly store: string;

  constructor(message: string, details: StorageDetails) {
    super(message, { ...details, recovery: storageRecovery(details) });
  }
}
