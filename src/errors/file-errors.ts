import type { Recovery } from './codes.js';
import { GenError } from './gen-error.js';

/** What went wrong underneath says best what to do. A file that cannot be read is a fault of this machine. */
function uploadRecovery({ step, cause }: { readonly step: UploadError['step']; readonly cause?: unknown }): Recovery {
  if (GenError.isInstance(cause)) return cause.recovery;
  return step === 'prepare' ? 'change_reference' : 'retry';
}

/** An upload step failed. The message names the step and what is left on the service. */
export class UploadError extends GenError {
  protected static override get family() {
    return 'GenError/UploadError';
  }

  /** The step that failed. */
  readonly step: 'prepare' | 'create' | 'put' | 'complete';
  /** The upload's id, once the service had given one. */
  readonly uploadId: string | undefined;
  /** Whether something of the upload is still on the service. */
  readonly left: 'nothing' | 'upload' | 'unknown';

  constructor(
    message: string,
    details: {
      readonly step: UploadError['step'];
      readonly uploadId?: string | undefined;
      readonly left?: UploadError['left'];
      readonly cause?: unknown;
    },
  ) {
    super(message, { cause: details.cause, recovery: uploadRecovery(details) });
    this.step = details.step;
    this.uploadId = details.uploadId;
    this.left = details.left ?? 'nothing';
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
  readonly code: DownloadErrorCode;
  /** The job whose file it is. */
  readonly jobId: string;
  /** The key that the job was created under, where this call has created it. */
  override readonly idempotencyKey: string | undefined;
  /** When the link expired (ISO 8601), where that is the reason and the service tells it. */
  readonly expiredAt: string | undefined;

  constructor(
    message: string,
    details: {
      readonly jobId: string;
      readonly code: DownloadErrorCode;
      readonly idempotencyKey?: string | undefined;
      readonly expiredAt?: string | undefined;
      readonly cause?: unknown;
    },
  ) {
    super(message, { cause: details.cause, recovery: SYSTEM_RECOVERY[details.code] ?? 'retry' });
    this.code = details.code;
    this.jobId = details.jobId;
    this.idempotencyKey = details.idempotencyKey;
    this.expiredAt = details.expiredAt;
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

function storageRecovery({
  code,
  status,
}: {
  readonly code: StorageErrorCode;
  readonly status?: number | undefined;
}): Recovery {
  if (code === 'object_exists') return 'change_request';
  return status === 401 || status === 403 ? 'fix_credentials' : 'retry';
}

/** A store did not take an object, or could not tell about one. Nothing partial is visible there. */
export class StorageError extends GenError {
  protected static override get family() {
    return 'GenError/StorageError';
  }

  /** What went wrong: the store's own code, or one of this package. */
  readonly code: StorageErrorCode;
  /** The HTTP status of the store's answer, where there is one. */
  readonly status: number | undefined;
  /** The store: `s3`, `r2`, or the `store` of a destination of your own. */
  readonly store: string;

  constructor(
    message: string,
    details: {
      readonly code: StorageErrorCode;
      readonly status?: number | undefined;
      readonly store: string;
      readonly cause?: unknown;
    },
  ) {
    super(message, { cause: details.cause, recovery: storageRecovery(details) });
    this.code = details.code;
    this.status = details.status;
    this.store = details.store;
  }
}
