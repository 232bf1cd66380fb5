// What a response about a file means: a failed step of an upload, a failed download, and the status that a page receives.
import { APIError, ConnectionError, DownloadError, RateLimitError, TimeoutError } from '../errors/index.js';
import type { Job } from '../schemas/job.js';

/** Refusals that are about the job and not about the account: a page may see them as they are. */
const OF_THE_JOB: readonly number[] = [404, 409, 410];
const WITHOUT_FILE: Readonly<Record<string, number>> = {
  output_expired: 410,
  job_not_finished: 409,
  job_without_output: 404,
};
/** Refusals of a file that may be about its link, or about a job that has no file. */
const FILE_REFUSALS: readonly number[] = [400, 401, 403, 404, 409, 425];
/** How long a page is asked to wait when the service does not say it. */
const PAUSE_MS = 1_000;

/** What a page is answered when a read failed. */
export interface PageAnswer {
  readonly status: number;
  /** Whether the app should hear of it: the failure is not the page's. */
  readonly isReported: boolean;
  /** How long the page should wait before it asks again. */
  readonly retryAfterMs?: number;
}

export function isPart(status: number): boolean {
  return status === 206;
}

/** Whether the file has none of the bytes that were asked for. */
export function isUnsatisfiable(status: number): boolean {
  return status === 416;
}

/** Refusals of a file that the service may still be publishing. */
const NOT_YET: readonly number[] = [400, 404, 409, 425];
/** How long after `completedAt` the file of a job may still be missing. */
const PUBLISHING_MS = 30_000;

/** How long the file of a job may still be missing, in milliseconds. At most 30 seconds, because clocks differ. */
export function publishingMs(job: Partial<Job>, now: number): number {
  const { status = 'completed', completedAt, providerOutputExpiresAt } = job;
  const leftMs = Date.parse(completedAt ?? '') + PUBLISHING_MS - now;
  const isOver = Date.parse(providerOutputExpiresAt ?? '') <= now || status !== 'completed';
  return isOver || !(leftMs > 0) ? 0 : Math.min(leftMs, PUBLISHING_MS);
}

/** If the file of a completed job may come later. The job is paid, so nobody should create it again. */
export function mayComeLater(error: unknown): boolean {
  return APIError.isInstance(error) && NOT_YET.includes(error.status);
}

/**
 * If object storage refused the PUT of an upload so that a new URL can help: it has expired, or S3 timed out a slow client. A
 * refusal of the service has another recovery.
 */
export function needsNewUpload(error: unknown): boolean {
  const isStorage = APIError.isInstance(error) && error.recovery === 'retry';
  return isStorage && (error.status === 403 || (error.status === 400 && error.code === 'RequestTimeout'));
}

/** Why a file was refused: its link is `gone`, the state of its job may say, or neither says. */
export function fileRefusal(error: unknown): 'gone' | 'askJob' | undefined {
  if (!APIError.isInstance(error) || error.code === 'invalid_api_key' || error.code === 'scope_missing')
    return undefined;
  if (error.status === 410) return 'gone';
  return FILE_REFUSALS.includes(error.status) ? 'askJob' : undefined;
}

export function isMissing(status: number): boolean {
  return status === 404;
}

/** Whether the refusal says by itself why the job has no file. Any other is explained by the job. */
export function saysWhyNoFile(error: unknown): boolean {
  return APIError.isInstance(error) && (error.status === 409 || error.code === 'job_not_found');
}

/** What a page is answered when a read failed. It never learns about the account's own trouble. */
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
