// What a page receives if its file cannot be served.
import { APIError, ConnectionError, DownloadError, RateLimitError, TimeoutError } from '../../errors/index.js';

/** Statuses about the job and not about the account, so a page may see them. */
const OF_THE_JOB: readonly number[] = [404, 409, 410];
const WITHOUT_FILE: Readonly<Record<string, number>> = {
  output_expired: 410,
  job_not_finished: 409,
  job_without_output: 404,
};
/** Wait for a page if the service specifies none. */
const PAUSE_MS = 1_000;

/** Response to a page after a failed poll. */
export interface PageAnswer {
  readonly status: number;
  /** If true, the failure is not the page's, so the app gets a report. */
  readonly isReported: boolean;
  /** Milliseconds until the page should try again. */
  readonly retryAfterMs?: number;
}

/** Returns the response to a page after a failed poll. It reveals nothing about the account. */
export function pageAnswer(error: unknown): PageAnswer {
  if (DownloadError.isInstance(error)) return pageStatus(WITHOUT_FILE[error.code] ?? 502);
  if (RateLimitError.isInstance(error)) return { ...pageStatus(503), retryAfterMs: error.retryAfterMs ?? PAUSE_MS };
  if (APIError.isInstance(error)) return pageStatus(OF_THE_JOB.includes(error.status) ? error.status : 502);
  if (TimeoutError.isInstance(error)) return pageStatus(504);
  return pageStatus(ConnectionError.isInstance(error) ? 502 : 500);
}

function pageStatus(status: number): PageAnswer {
  return { status, isReported: status >= 500 };
}
