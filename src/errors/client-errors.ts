import type { Job } from '../schemas/job.js';
import { JOB_ERRORS, type JobErrorCode, type Recovery, type RequestErrorCode, rowOf } from './codes.js';
import { type Details, GenError } from './gen-error.js';

/** Thrown if a call breaks a documented rule. Nothing was sent. */
export class PreflightError extends GenError {
  protected static override get family() {
    return 'GenError/PreflightError';
  }

  /** Error code that the service would return. */
  declare readonly code: RequestErrorCode;
  /** Name of the invalid parameter. */
  declare readonly param: string;
  /** HTTP status for your app's response to invalid params. */
  declare readonly status: 400;

  constructor(message: string, details: Details<PreflightError, 'code' | 'param'>) {
    super(message, { ...details, ...{ status: 400, recovery: 'change_request' } });
  }
}

type CallDetails = Details<CallError, never, 'method' | 'url' | 'idempotencyKey' | 'attempts'> & {
  readonly timeoutMs?: number | undefined;
  readonly path?: string | undefined;
  readonly job?: Job | undefined;
};

/** A call without a usable response. */
class CallError extends GenError {
  /** HTTP method of the request. */
  declare readonly method: string | undefined;
  /** URL of the request, without its query. */
  declare readonly url: string | undefined;
  /** Idempotency key that was sent. A job may exist, so retry with this key. */
  declare readonly idempotencyKey: string | undefined;
  /** Number of attempts. */
  declare readonly attempts: number;

  constructor(message: string, details: CallDetails = {}) {
    super(message, { attempts: 1, ...details, recovery: 'retry' });
  }
}

/**
 * Thrown if the connection failed before the response was complete, a store is unavailable, or the `apiKey` function
 * failed.
 */
export class ConnectionError extends CallError {
  protected static override get family() {
    return 'GenError/ConnectionError';
  }
}

/** Thrown if no complete response arrived within `timeoutMs`. */
export class TimeoutError extends CallError {
  protected static override get family() {
    return 'GenError/TimeoutError';
  }

  /** Timeout that expired, in milliseconds. */
  declare readonly timeoutMs: number | undefined;
}

/** Thrown if a successful response doesn't have the documented shape. */
export class ResponseError extends CallError {
  protected static override get family() {
    return 'GenError/ResponseError';
  }

  /** Path of the missing or mistyped value in the body, for example `data.job.id`. */
  declare readonly path: string | undefined;
  /** Completed job that still has no file. */
  declare readonly job?: Job | undefined;
}

/** Thrown if a create would exceed a budget, so it was not sent. */
export class BudgetExceededError extends GenError {
  protected static override get family() {
    return 'GenError/BudgetExceededError';
  }

  /** Always `budget_exceeded`. */
  readonly code = 'budget_exceeded';
  /** Estimated cost of the create in tokens. Undefined if the price is unknown. */
  declare readonly estimateTokens: number | undefined;
  /** Remaining tokens of the budget. */
  declare readonly leftTokens: number;
  /** ISO timestamp when the next period begins, or null for a budget without periods. */
  declare readonly resetsAt: string | null;
  /** Scope of the budget. */
  declare readonly scope: string;
  /**
   * `spent`: the budget is used up until the next period. `unresolved`: running jobs, or creates without a response or
   * a price, may still release tokens, so call again later.
   */
  declare readonly reason: 'spent' | 'unresolved';

  constructor(
    message: string,
    details: Details<BudgetExceededError, 'estimateTokens' | 'leftTokens' | 'resetsAt' | 'scope' | 'reason'>,
  ) {
    super(message, { ...details, recovery: details.reason === 'spent' ? 'top_up' : 'retry_later' });
  }
}

const JOB_RECOVERY: Readonly<Record<string, Recovery>> = JOB_ERRORS;

/** Thrown if a job did not complete. See `job`. */
export class JobError extends GenError {
  protected static override get family(): string {
    return 'GenError/JobError';
  }

  /** Job from the last poll. */
  declare readonly job: Job;
  /** Error code of the job. */
  declare readonly code: JobErrorCode | undefined;
  /** Error data of the job, for example `retry_after` in seconds. */
  declare readonly data: Readonly<Record<string, unknown>> | undefined;

  constructor(message: string, details: Details<JobError, 'job', 'recovery'>) {
    const { errorCode, errorData } = details.job;
    const recovery = details.recovery ?? rowOf(JOB_RECOVERY, errorCode ?? '') ?? 'none';
    super(message, { ...details, ...{ code: errorCode ?? undefined, data: errorData ?? undefined }, recovery });
  }
}

/** Thrown if a job failed. It was not charged. */
export class JobFailedError extends JobError {
  protected static override get family() {
    return 'GenError/JobError/JobFailedError';
  }
}

/** Thrown if a job was canceled. */
export class JobCanceledError extends JobError {
  protected static override get family() {
    return 'GenError/JobError/JobCanceledError';
  }
}

/** Thrown if a job was blocked. */
export class JobBlockedError extends JobError {
  protected static override get family() {
    return 'GenError/JobError/JobBlockedError';
  }
}

/** Thrown if a wait exceeded its `timeoutMs`. The job continues, so you can wait for its ID again. */
export class WaitTimeoutError extends GenError {
  protected static override get family() {
    return 'GenError/WaitTimeoutError';
  }

  /** Job from the last poll. Undefined if no poll succeeded. */
  declare readonly job: Job | undefined;
  /** ID of the job. */
  declare readonly jobId: string;
  /** Timeout that expired, in milliseconds. */
  declare readonly timeoutMs: number;

  constructor(message: string, details: Details<WaitTimeoutError, 'jobId' | 'timeoutMs', 'job'>) {
    super(message, { ...details, recovery: 'wait_again' });
  }
}
