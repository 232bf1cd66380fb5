import type { Recovery } from './codes.js';
import { GenError } from './gen-error.js';

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
