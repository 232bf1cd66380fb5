// Interprets failed calls. No other code compares a status or interprets an error code.
import { isPage, isPassing, mayHaveArrived } from '../errors/gen-error.js';
import {
  APIError,
  AuthenticationError,
  BadRequestError,
  ConflictError,
  ConnectionError,
  documentedStatus,
  GenError,
  InsufficientBalanceError,
  JobError,
  NotFoundError,
  PayloadTooLargeError,
  PermissionDeniedError,
  RateLimitError,
  type Recovery,
  ResponseError,
  ServerError,
  TimeoutError,
  UnprocessableEntityError,
} from '../errors/index.js';
import type { Job } from '../schemas/job.js';
import { MAX_CAUSES, provesUnsent } from './delivery.js';

/**
 * Type of a failure.
 *
 * - `review`: the service rejected the create because a character is still under review. No job exists.
 * - `refused`: the service rejected the call. No job exists, and the key is used.
 * - `unsent`: nothing reached the service.
 * - `throttled`: the rate limit is reached, or generation is paused. No job exists.
 * - `lost`: the response was missing or unusable. A job may exist, so only the same key may be sent again.
 */
export type FailureKind = 'review' | 'refused' | 'unsent' | 'throttled' | 'lost';

/** An error as plain data. Contains no secret. */
export interface GenErrorJson {
  /** Error class, for example `JobFailedError`. */
  readonly name: string;
  /** Describes the failure and how to fix it. */
  readonly message: string;
  /** Error code of the service, if it sent one. */
  readonly code?: string;
  /** How to recover, as a value that a program can switch on. */
  readonly recovery?: string;
  /** ID of the job that the error is about. */
  readonly jobId?: string;
  /** Idempotency key of the failed create. */
  readonly idempotencyKey?: string;
  /** Error of the create that should have replaced the failed job. */
  readonly cause?: GenErrorJson;
}

/** A failed call of a run, as plain data. */
export interface CallFailure {
  /** Type of the failure, which decides how the run continues. */
  readonly kind: FailureKind;
  /** Milliseconds to wait, as requested by the service or the rate limit. Null if neither requests a wait. */
  readonly retryAfterMs: number | null;
  /** Error as plain data. */
  readonly error: GenErrorJson;
  /** If true, a poll returned a page that may mean a wrong address: see {@link MAX_PAGES}. */
  readonly isStrayPage?: true;
  /** If true, the service rejected the create before it checked the key, so the same key can be sent again. */
  readonly keyIsUnused?: true;
}

/**
 * Statuses of rejections that don't prove that no job exists: the request timed out, came too early, or its key is in
 * use.
 */
const UNCLEAR_STATUSES: readonly number[] = [408, 409, 425, 499];
/** Statuses of rejections that precede the check of the key, so they prove nothing about an earlier attempt. */
const STATUSES_BEFORE_KEY_CHECK: readonly number[] = [401, 403, 429];
/** Statuses that are retried. Cloudflare sends 520 to 524 if the origin is unavailable or slow. */
const RETRIED_STATUSES: readonly number[] = [408, 500, 502, 503, 504, 520, 521, 522, 523, 524];
/** The only statuses that end a wait, because another poll would return the same status. */
const WAIT_ENDING_STATUSES: readonly number[] = [400, 401, 403, 404];

const BY_STATUS: Readonly<Record<number, readonly [typeof APIError, Recovery]>> = {
  400: [BadRequestError, 'change_request'],
  401: [AuthenticationError, 'fix_credentials'],
  402: [InsufficientBalanceError, 'top_up'],
  403: [PermissionDeniedError, 'fix_credentials'],
  404: [NotFoundError, 'change_request'],
  408: [APIError, 'retry'],
  409: [ConflictError, 'retry_later'],
  413: [PayloadTooLargeError, 'change_reference'],
  422: [UnprocessableEntityError, 'change_request'],
  429: [RateLimitError, 'wait_and_retry'],
  503: [ServerError, 'retry_later'],
};

const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];

/**
 * Consecutive pages that end a wait. A few may come from a proxy during a deploy. More suggest a wrong address.
 */
export const MAX_PAGES = 5;

/** How long a completed job may have no file. */
export const MAX_WITHOUT_FILE_MS = 2 * 60_000;

/** Creates the error for a completed job that still has no file. */
export function missingFileError(job: Job): ResponseError {
  const message = `Job ${job.id} is completed but has had no file for ${MAX_WITHOUT_FILE_MS / 60_000} minutes. Contact the service's support with the job's ID.`;
  return new ResponseError(message, { job, path: 'data.job.providerOutputUrl' });
}

/**
 * Returns the failure kind of a create. Undefined for another package's error or an abort, after which a job may exist.
 */
export function failureKindOf(error: unknown): FailureKind | undefined {
  if (!GenError.isInstance(error)) return undefined;
  if (isPage(error)) return 'lost';
  if (!APIError.isInstance(error)) {
    if (hasNoResponse(error) && 'attempts' in error && error.attempts === 0)
      return mayHaveArrived(error) ? 'lost' : 'unsent';
    if (ResponseError.isInstance(error) || TimeoutError.isInstance(error)) return 'lost';
    if (ConnectionError.isInstance(error)) {
      const isLost = mayHaveArrived(error) || (error.attempts > 0 && !provesUnsent(error.cause));
      return isLost ? 'lost' : 'unsent';
    }
    return 'unsent';
  }
  if (RateLimitError.isInstance(error) && error.attempts === 0) return 'throttled';
  if (error.code === 'character_pending') return 'review';
  const status = documentedStatus(error);
  if (isBeforeTheKey(error) && mayHaveArrived(error)) return 'lost';
  if (status === 429 || error.code === 'dispatch_disabled') return 'throttled';
  if (status < 400 || status >= 500 || UNCLEAR_STATUSES.includes(status)) return 'lost';
  return 'refused';
}

/** Returns true if a job may exist after this error of a create. */
export function mayHaveCreated(error: unknown): boolean {
  const kind = failureKindOf(error);
  return kind === undefined || kind === 'lost';
}

/** Returns true if the service rejected the create before it checked the key, so the key is unused. */
function isBeforeTheKey(error: unknown): boolean {
  return (
    APIError.isInstance(error) &&
    (error.code === 'dispatch_disabled' || STATUSES_BEFORE_KEY_CHECK.includes(documentedStatus(error)))
  );
}

/**
 * Returns the outcome of a sent create for its key. `refused`: no job exists under the key. `unsent`: this call created
 * no job, but an earlier call may have. `lost`: this call may have created a job.
 */
export function outcomeUnderKey(error: unknown): 'refused' | 'unsent' | 'lost' {
  switch (failureKindOf(error)) {
    case 'refused':
    case 'review':
      return isBeforeTheKey(error) ? 'unsent' : 'refused';
    case 'unsent':
    case 'throttled':
      return 'unsent';
    default:
      return 'lost';
  }
}

/** Returns true if the create was rejected because the service doesn't know an upload. */
export function isUnknownUpload(error: unknown): boolean {
  const codes = ['upload_not_found', 'reference_upload_not_found', 'video_edit_source_not_found'];
  return APIError.isInstance(error) && codes.includes(error.code) && !mayHaveArrived(error);
}

/** Returns a run's failed create as plain data. Undefined for another package's error. */
export function callFailure(error: unknown): CallFailure | undefined {
  const kind = failureKindOf(error);
  if (kind === undefined || !GenError.isInstance(error)) return undefined;
  return { kind, ...failureDetails(error), ...(kind === 'refused' && isBeforeTheKey(error) && { keyIsUnused: true }) };
}

/** Returns a run's failed poll as plain data. Its kind is `refused` if polling again can't help. */
export function pollFailure(error: unknown): CallFailure | undefined {
  if (!GenError.isInstance(error)) return undefined;
  return { kind: pollFailureKind(error), ...failureDetails(error), ...(isStrayPage(error) && { isStrayPage: true }) };
}

function pollFailureKind(error: GenError): FailureKind {
  const kind = failureKindOf(error);
  if (endsWait(error)) return kind === 'unsent' ? 'unsent' : 'refused';
  return kind === 'throttled' ? 'throttled' : 'lost';
}

/**
 * Returns true if a failed poll ends the wait, because polling again can't help. `pagesInRow` counts consecutive stray
 * pages, including this one.
 */
export function endsWait(error: unknown, pagesInRow = 1): boolean {
  if (!GenError.isInstance(error) || isPassing(error)) return false;
  if (isPage(error)) return isStrayPage(error) && pagesInRow >= MAX_PAGES;
  if (APIError.isInstance(error)) return WAIT_ENDING_STATUSES.includes(documentedStatus(error));
  // Otherwise, the client can't make the call, for example without an API key, or with an invalid ID.
  return !hasNoResponse(error);
}

/** Returns true for a page that may mean a wrong address, because no outage or rate limit explains it. */
export function isStrayPage(error: unknown): boolean {
  if (!GenError.isInstance(error) || !isPage(error)) return false;
  return !APIError.isInstance(error) || !(isRateLimited(error) || isTransientStatus(documentedStatus(error)));
}

/** Returns true if the service doesn't know the job. */
export function isUnknownJob(error: unknown): boolean {
  return APIError.isInstance(error) && documentedStatus(error) === 404 && !isPage(error);
}

/** Returns true if the attempt can be retried. For a 429, see {@link isRateLimited}. */
export function isTransient(error: unknown): boolean {
  if (!APIError.isInstance(error)) return hasNoResponse(error);
  if (isPage(error)) return !isRateLimited(error);
  if (error.code === 'dispatch_disabled' && error.retryAfterMs === undefined) return false;
  return isTransientStatus(documentedStatus(error));
}

function isTransientStatus(status: number): boolean {
  return RETRIED_STATUSES.includes(status);
}

/** Returns true if the service rejected the call with a 429, or the local rate limit is reached. */
export function isRateLimited(error: unknown): error is APIError {
  return APIError.isInstance(error) && documentedStatus(error) === 429;
}

/** Returns true if the service didn't count the request, so its slot is free again. */
export function isUncounted(status: number): boolean {
  return status === 429;
}

/** Returns the error class and the default recovery for a status. */
export function errorTypeOf(status: number): readonly [typeof APIError, Recovery] {
  const row = BY_STATUS[status];
  if (row !== undefined) return row;
  if (status >= 500) return [ServerError, 'retry'];
  return [APIError, status >= 300 ? 'change_request' : 'none'];
}

/** Like {@link errorTypeOf}, for object storage. It never checks the API key. */
export function storageErrorTypeOf(status: number): readonly [typeof APIError, Recovery] {
  return [status >= 500 ? ServerError : APIError, 'retry'];
}

export function hasNoBody(status: number): boolean {
  return status === 204 || status === 205 || status === 304;
}

export function isRedirection({ status, type, headers }: Pick<Response, 'status' | 'type' | 'headers'>): boolean {
  return type === 'opaqueredirect' || (REDIRECTS.includes(status) && Boolean(headers.get('location')));
}

/** Messages for a redirect with `redirect: 'error'`, from Node's fetch and from node-fetch. */
const REDIRECT_FAILURE = /^unexpected redirect$|redirect mode is set to error/;

/** Returns true if fetch failed because of a redirect. */
export function isRedirectFailure(error: unknown, depth = 0): boolean {
  if (!(error instanceof Error) || depth > MAX_CAUSES) return false;
  return REDIRECT_FAILURE.test(error.message) || isRedirectFailure(error.cause, depth + 1);
}

/** Converts an error to plain data. */
export function errorJson(error: GenError): GenErrorJson {
  const { name, message, code, recovery, jobId, idempotencyKey } = error.toJSON();
  const job = JobError.isInstance(error) || ResponseError.isInstance(error) ? (error.job?.id ?? jobId) : jobId;
  return {
    name: String(name),
    message: String(message),
    ...textFields({ code, recovery, jobId: job, idempotencyKey }),
  };
}

/** Restores an error from plain data. */
export function errorFromJson({ name, message, cause, ...fields }: GenErrorJson): GenError {
  const error = new GenError(message, cause && { cause: errorFromJson(cause) });
  return Object.assign(error, { name, ...fields });
}

function failureDetails(error: GenError): Omit<CallFailure, 'kind'> {
  const requestedMs = APIError.isInstance(error) ? error.retryAfterMs : undefined;
  return { retryAfterMs: requestedMs !== undefined && requestedMs > 0 ? requestedMs : null, error: errorJson(error) };
}

function hasNoResponse(error: unknown): boolean {
  return [ConnectionError, TimeoutError, ResponseError].some((errorClass) => errorClass.isInstance(error));
}

function textFields<K extends string>(fields: Record<K, unknown>): Partial<Record<K, string>> {
  const entries = Object.entries(fields).filter((entry): entry is [K, string] => typeof entry[1] === 'string');
  return Object.fromEntries(entries) as Partial<Record<K, string>>;
}
