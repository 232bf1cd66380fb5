// Interprets failed uploads and downloads.
import { APIError } from '../errors/index.js';
import type { Job } from '../schemas/job.js';

/** Statuses that may mean an expired link, or a job without a file. */
const FILE_ERRORS: readonly number[] = [400, 401, 403, 404, 409, 425];

export function isPart(status: number): boolean {
  return status === 206;
}

/** Returns true if the file contains none of the requested bytes. */
export function isUnsatisfiable(status: number): boolean {
  return status === 416;
}

/** Statuses that may mean that the service is still publishing the file. */
const UNPUBLISHED_STATUSES: readonly number[] = [400, 404, 409, 425];
/** Milliseconds after `completedAt` in which a job's file may still be missing. */
const PUBLISHING_MS = 30_000;

/** Returns how many milliseconds the file may still be missing. Limited to 30 seconds, because clocks may differ. */
export function publishingMs(job: Partial<Job>, now: number): number {
  const { status = 'completed', completedAt, providerOutputExpiresAt } = job;
  const leftMs = Date.parse(completedAt ?? '') + PUBLISHING_MS - now;
  const isOver = Date.parse(providerOutputExpiresAt ?? '') <= now || status !== 'completed';
  return isOver || !(leftMs > 0) ? 0 : Math.min(leftMs, PUBLISHING_MS);
}

/** Returns true if a completed job's file may appear later. The job is paid for, so it must not be created again. */
export function mayAppearLater(error: unknown): boolean {
  return APIError.isInstance(error) && UNPUBLISHED_STATUSES.includes(error.status);
}

/**
 * Returns true if object storage rejected an upload's PUT and a new URL can help: the old one has expired, or S3 timed
 * out a slow client. A rejection by the service has a different recovery.
 */
export function needsNewUpload(error: unknown): boolean {
  const isStorage = APIError.isInstance(error) && error.recovery === 'retry';
  return isStorage && (error.status === 403 || (error.status === 400 && error.code === 'RequestTimeout'));
}

/**
 * Returns `gone` if the link has expired, `askJob` if the job's status may explain the rejection, otherwise undefined.
 */
export function fileErrorKind(error: unknown): 'gone' | 'askJob' | undefined {
  if (!APIError.isInstance(error) || error.code === 'invalid_api_key' || error.code === 'scope_missing')
    return undefined;
  if (error.status === 410) return 'gone';
  return FILE_ERRORS.includes(error.status) ? 'askJob' : undefined;
}

export function isMissing(status: number): boolean {
  return status === 404;
}

/** Returns true if the error explains why the job has no file. Otherwise, the job's status does. */
export function explainsMissingFile(error: unknown): boolean {
  return APIError.isInstance(error) && (error.status === 409 || error.code === 'job_not_found');
}
