// What a failed call means. No other code compares a status or decides what an error code means.

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
 * What a failed create means for its key.
 *
 * - `review`: the create was refused because a character is still under review. No job was made.
 * - `refused`: the service refused the call, in JSON. No job was made, and the key is used up.
 * - `unsent`: nothing reached the service.
 * - `throttled`: the service accepts no call now: the rate limit is full, or generation is paused. No job was made.
 * - `lost`: there was no usable answer, or a page in place of one. A job may have been made, so only the same key may be sent again.
 */
export type FailureKind = 'review' | 'refused' | 'unsent' | 'throttled' | 'lost';

/** An error as plain data: the part of its JSON form that a run needs. It contains no secret. */
export interface GenErrorJson {
  /** The error's class, for example `JobFailedError`. */
  readonly name: string;
  /** What happened, and what to do about it. */
  readonly message: string;
  /** The service's code, where there is one. */
  readonly code?: string;
  /** What to do about it, as a value that a program can switch on. */
  readonly recovery?: string;
  /** The job that the error is about. */
  readonly jobId?: string;
  /** The key of the create that failed. */
  readonly idempotencyKey?: string;
  /** The error of the create that was to replace the failed job. */
  readonly cause?: GenErrorJson;
}

/** A failed call of a run, as plain data. */
export interface CallFailure {
  /** What it means for the run. */
  readonly kind: FailureKind;
  /** How long the service or the rate limit asks to wait, in milliseconds; null where neither says. */
  readonly retryAfterMs: number | null;
  /** The error itself. */
  readonly error: GenErrorJson;
  /** Whether a poll was answered with a page that may mean a wrong address: see {@link MAX_PAGES}. */
  readonly isStrayPage?: true;
  /** Whether the service refused the create before it looked at the key, so that the same key can be sent again. */
  readonly keyIsUnused?: true;
}

/** Responses that say nothing about whether a job was made: the request timed out, came too early, or its key is in use. */
const UNCLEAR: readonly number[] = [408, 409, 425, 499];
/** Refusals that the service makes before it looks at the key, so that they say nothing about an earlier attempt. */
const BEFORE_THE_KEY: readonly number[] = [401, 403, 429];
/** Responses after which the same attempt is made again. 520 to 524 are a proxy's codes for an origin that is away or late. */
const RETRIED: readonly number[] = [408, 500, 502, 503, 504, 520, 521, 522, 523, 524];
/** The only responses that end a wait: another read cannot change them. */
const ENDS_A_WAIT: readonly number[] = [400, 401, 403, 404];

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
 * So many pages in a row end a wait. One may come from a proxy during a deploy, and the job is paid; pages that do not stop
 * mean that the requests go to the wrong address.
 */
export const MAX_PAGES = 5;

/** A completed job without a file may still get one for so long. */
export const MAX_WITHOUT_FILE_MS = 2 * 60_000;

/** The end of a wait for a job that stays completed without a file. */
export function missingFileError(job: Job): ResponseError {
  const message = `Job ${job.id} is completed but has had no file for ${MAX_WITHOUT_FILE_MS / 60_000} minutes. Contact the service's support with the job's ID.`;
  return new ResponseError(message, { job, path: 'data.job.providerOutputUrl' });
}

/** What a failed create means. Undefined for an error that is not of this package, such as an abort: a job may exist. */
export function failureKindOf(error: unknown): FailureKind | undefined {
  if (!GenError.isInstance(error)) return undefined;
  if (isPage(error)) return 'lost';
  if (!APIError.isInstance(error)) {
    if (hasNoAnswer(error) && 'attempts' in error && error.attempts === 0)
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
  if (status < 400 || status >= 500 || UNCLEAR.includes(status)) return 'lost';
  return 'refused';
}

/** Whether a job may exist after this error of a create. */
export function mayHaveCreated(error: unknown): boolean {
  const kind = failureKindOf(error);
  return kind === undefined || kind === 'lost';
}

/** Whether the refusal came before the service looked at the key: the key is not used up. */
function isBeforeTheKey(error: unknown): boolean {
  return (
    APIError.isInstance(error) &&
    (error.code === 'dispatch_disabled' || BEFORE_THE_KEY.includes(documentedStatus(error)))
  );
}

/**
 * What a failed create that was sent means for what is noted under its key: `refused`, no job exists under it; `unsent`, this
 * call made none, which says nothing about an earlier one; `lost`, a job may exist.
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

/** Whether a create was refused because the service does not know an upload. */
export function isForgottenUpload(error: unknown): boolean {
  const codes = ['upload_not_found', 'reference_upload_not_found', 'video_edit_source_not_found'];
  return APIError.isInstance(error) && codes.includes(error.code) && !mayHaveArrived(error);
}

/** What the failed create of a run means, as plain data; undefined for an error that is not of this package. */
export function callFailure(error: unknown): CallFailure | undefined {
  const kind = failureKindOf(error);
  if (kind === undefined || !GenError.isInstance(error)) return undefined;
  return { kind, ...details(error), ...(kind === 'refused' && isBeforeTheKey(error) && { keyIsUnused: true }) };
}

/** What the failed poll of a run means: `refused` if another poll cannot change it. */
export function readFailure(error: unknown): CallFailure | undefined {
  if (!GenError.isInstance(error)) return undefined;
  return { kind: pollFailureKind(error), ...details(error), ...(isStrayPage(error) && { isStrayPage: true }) };
}

function pollFailureKind(error: GenError): FailureKind {
  const kind = failureKindOf(error);
  if (endsWait(error)) return kind === 'unsent' ? 'unsent' : 'refused';
  return kind === 'throttled' ? 'throttled' : 'lost';
}

/**
 * Whether a failed poll ends the wait: only a rejection that another poll cannot change. `pagesInRow` counts the failed
 * polls, this one included, that {@link isStrayPage} is true of.
 */
export function endsWait(error: unknown, pagesInRow = 1): boolean {
  if (!GenError.isInstance(error) || isPassing(error)) return false;
  if (isPage(error)) return isStrayPage(error) && pagesInRow >= MAX_PAGES;
  if (APIError.isInstance(error)) return ENDS_A_WAIT.includes(documentedStatus(error));
  // A plain GenError says that the client cannot make the call: the key is missing, the id cannot be right.
  return !hasNoAnswer(error);
}

/** Whether a page came that says nothing of an outage or of a rate limit: such pages may mean a wrong address. */
export function isStrayPage(error: unknown): boolean {
  if (!GenError.isInstance(error) || !isPage(error)) return false;
  return !APIError.isInstance(error) || !(isRateLimited(error) || isTransientStatus(documentedStatus(error)));
}

/** Whether the service says that it has no such job. */
export function isUnknownJob(error: unknown): boolean {
  return APIError.isInstance(error) && documentedStatus(error) === 404 && !isPage(error);
}

/** Whether an attempt that failed in this way is made again. A 429 is no failure; see {@link isRateLimited}. */
export function isTransient(error: unknown): boolean {
  if (!APIError.isInstance(error)) return hasNoAnswer(error);
  if (isPage(error)) return !isRateLimited(error);
  if (error.code === 'dispatch_disabled' && error.retryAfterMs === undefined) return false;
  return isTransientStatus(documentedStatus(error));
}

function isTransientStatus(status: number): boolean {
  return RETRIED.includes(status);
}

/** Whether the service or a full rate limit asks to come back later. */
export function isRateLimited(error: unknown): error is APIError {
  return APIError.isInstance(error) && documentedStatus(error) === 429;
}

/** Whether the response says that a request was counted by nobody: its slot is free again. */
export function isUncounted(status: number): boolean {
  return status === 429;
}

/** What a refusal of this status is: the class of its error, and what to do where its code says nothing. */
export function refusalKind(status: number): readonly [typeof APIError, Recovery] {
  const known = BY_STATUS[status];
  if (known !== undefined) return known;
  if (status >= 500) return [ServerError, 'retry'];
  return [APIError, status >= 300 ? 'change_request' : 'none'];
}

/** What a refusal of object storage is. It never knows the API key. */
export function storageRefusalKind(status: number): readonly [typeof APIError, Recovery] {
  return [status >= 500 ? ServerError : APIError, 'retry'];
}

export function hasNoBody(status: number): boolean {
  return status === 204 || status === 205 || status === 304;
}

export function isRedirection({ status, type, headers }: Pick<Response, 'status' | 'type' | 'headers'>): boolean {
  return type === 'opaqueredirect' || (REDIRECTS.includes(status) && Boolean(headers.get('location')));
}

/** How the fetches for Node say that they were told to take redirects for errors: Node's own, and node-fetch. */
const REDIRECT_FAILURE = /^unexpected redirect$|redirect mode is set to error/;

/** Whether fetch failed because it was told to take redirects for errors. */
export function isRedirectFailure(error: unknown, depth = 0): boolean {
  if (!(error instanceof Error) || depth > MAX_CAUSES) return false;
  return REDIRECT_FAILURE.test(error.message) || isRedirectFailure(error.cause, depth + 1);
}

/** The part of an error's JSON form that {@link GenErrorJson} has. */
export function errorJson(error: GenError): GenErrorJson {
  const { name, message, code, recovery, jobId, idempotencyKey } = error.toJSON();
  const job = JobError.isInstance(error) || ResponseError.isInstance(error) ? (error.job?.id ?? jobId) : jobId;
  return {
    name: String(name),
    message: String(message),
    ...textFields({ code, recovery, jobId: job, idempotencyKey }),
  };
}

/** An error out of its JSON form: its call was made in another process, or before a sleep. */
export function errorFromJson({ name, message, cause, ...fields }: GenErrorJson): GenError {
  const error = new GenError(message, cause && { cause: errorFromJson(cause) });
  return Object.assign(error, { name, ...fields });
}

function details(error: GenError): Omit<CallFailure, 'kind'> {
  const asked = APIError.isInstance(error) ? error.retryAfterMs : undefined;
  return { retryAfterMs: asked !== undefined && asked > 0 ? asked : null, error: errorJson(error) };
}

function hasNoAnswer(error: unknown): boolean {
  return [ConnectionError, TimeoutError, ResponseError].some((kind) => kind.isInstance(error));
}

function textFields<K extends string>(fields: Record<K, unknown>): Partial<Record<K, string>> {
  const entries = Object.entries(fields).filter((entry): entry is [K, string] => typeof entry[1] === 'string');
  return Object.fromEntries(entries) as Partial<Record<K, string>>;
}
