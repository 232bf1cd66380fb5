import {
  APIError,
  ConnectionError,
  GenError,
  JobError,
  RateLimitError,
  ResponseError,
  TimeoutError,
} from '../errors/index.js';

/** An error as plain data: the part of its JSON form that a run needs. It holds no secret. */
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
}

/**
 * What a failed call means for its run.
 *
 * - `review`: the create was refused because a character is still under review. No job was made.
 * - `refused`: the service refused the call. No job was made, and the key is used up (spec: Authentication 6).
 * - `unsent`: the call was refused before it was sent, and would be refused again.
 * - `full`: the rate limit has no free slot now. Nothing was sent.
 * - `lost`: there was no usable answer. A job may have been made, so only the same key may be sent again.
 */
export type FailureKind = 'review' | 'refused' | 'unsent' | 'full' | 'lost';

/** A failed call of a run, as plain data. */
export interface CallFailure {
  /** What it means for the run. */
  readonly kind: FailureKind;
  /** How long the service or the rate limit asks to wait, in milliseconds; null where neither says. */
  readonly retryAfterMs: number | null;
  /** The error itself. */
  readonly error: GenErrorJson;
}

/** A refusal with one of these statuses is about the moment, not about the call. */
const PASSING_STATUS: readonly number[] = [408, 425, 429];
const NO_ANSWER = [ConnectionError, TimeoutError, ResponseError];

/** What the error of a call means for its run; undefined for an error that is not of this package, such as an abort. */
export function callFailure(error: unknown): CallFailure | undefined {
  if (!GenError.isInstance(error)) return undefined;
  const asked = APIError.isInstance(error) ? error.retryAfterMs : undefined;
  return {
    kind: kindOf(error),
    retryAfterMs: asked !== undefined && asked > 0 ? asked : null,
    error: errorJson(error),
  };
}

function kindOf(error: GenError): FailureKind {
  if (RateLimitError.isInstance(error) && error.attempts === 0) return 'full';
  if (!APIError.isInstance(error)) return NO_ANSWER.some((kind) => kind.isInstance(error)) ? 'lost' : 'unsent';
  const { status, code } = error;
  if (code === 'character_pending') return 'review';
  if (status < 400 || status >= 500 || PASSING_STATUS.includes(status)) return 'lost';
  // `character_pending` is the only 409 documented for a create. Another one may mean that the same key is being worked on.
  return status === 409 ? 'lost' : 'refused';
}

/** The part of an error's JSON form that {@link GenErrorJson} has. */
export function errorJson(error: GenError): GenErrorJson {
  const { name, message, code, recovery, jobId, idempotencyKey } = error.toJSON();
  const job = JobError.isInstance(error) ? error.job.id : jobId;
  return {
    name: String(name),
    message: String(message),
    ...textFields({ code, recovery, jobId: job, idempotencyKey }),
  };
}

function textFields<K extends string>(fields: Record<K, unknown>): Partial<Record<K, string>> {
  const entries = Object.entries(fields).filter((entry): entry is [K, string] => typeof entry[1] === 'string');
  return Object.fromEntries(entries) as Partial<Record<K, string>>;
}
