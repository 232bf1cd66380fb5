// Responses to a page if its file can't be served.
import { APIError, ConnectionError, DownloadError, RateLimitError, TimeoutError } from '../../errors/index.js';

/** Statuses that concern the job and not the account, so a page may see them. */
const JOB_STATUSES: readonly number[] = [404, 409, 410];
const STATUS_BY_CODE: Readonly<Record<string, number>> = {
  output_expired: 410,
  job_not_finished: 409,
  job_without_output: 404,
};
/** Default `Retry-After`. */
const PAUSE_MS = 1_000;

/** Response to a page whose file couldn't be read. */
export interface PageFailure {
  readonly status: number;
  /** If true, the page didn't cause the failure, so it is reported to the app. */
  readonly isReported: boolean;
  /** Milliseconds until the page should try again. */
  readonly retryAfterMs?: number;
}

/** Converts an error to a response. It reveals nothing about the account. */
export function pageFailureOf(error: unknown): PageFailure {
  if (DownloadError.isInstance(error)) return pageStatus(STATUS_BY_CODE[error.code] ?? 502);
  if (RateLimitError.isInstance(error)) return { ...pageStatus(503), retryAfterMs: error.retryAfterMs ?? PAUSE_MS };
  if (APIError.isInstance(error)) return pageStatus(JOB_STATUSES.includes(error.status) ? error.status : 502);
  if (TimeoutError.isInstance(error)) return pageStatus(504);
  return pageStatus(ConnectionError.isInstance(error) ? 502 : 500);
}

function pageStatus(status: number): PageFailure {
  return { status, isReported: status >= 500 };
}
