// Where a row stands before this run, and what the failure of a row means for the rows after it.
import type { OpenCreate } from '../../client/resume.js';
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
import type { Job } from '../../schemas/job.js';
import { idempotencyKeyFrom } from '../../transport/idempotency.js';
import type { RowRecord } from './records.js';
import type { Row } from './rows.js';

/** Where a row stands, as its record and the ledger know it. Nothing is known of a row that is new. */
export interface Standing {
  /** The key of its create. After a job that has failed it is derived from that job. */
  readonly key: string;
  /** The job, where it has ended. */
  readonly job?: Job | undefined;
  /** The job of a create that is under way. */
  readonly jobId?: string | undefined;
  /** Whether a create is under way that may have made a job. */
  readonly mayHaveJob: boolean;
}

/** What tells where a row stands. */
export interface Known {
  readonly record: RowRecord;
  /** The creates of the store that are not done, by their key. */
  readonly open: ReadonlyMap<string, OpenCreate>;
  /** Whether rows whose job has failed are made anew. */
  readonly retryFailed: boolean;
}

/** Where a row stands. */
export function rowStanding(row: Pick<Row, 'key'>, { record: { job }, open, retryFailed }: Known): Standing {
  const failed = job?.status === 'completed' ? undefined : job;
  const key = failed === undefined ? row.key : idempotencyKeyFrom(row.key, failed.id);
  const create = open.get(key);
  if (job !== undefined && (failed === undefined || !(retryFailed || create))) return { key, job, mayHaveJob: false };
  return { key, jobId: create?.jobId, mayHaveJob: create?.phase === 'sent' };
}

/** Whether a row has to be paid for, as far as is known. */
export function isUnpaid({ job, jobId }: Standing): boolean {
  return job === undefined && jobId === undefined;
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
