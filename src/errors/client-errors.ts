import type { Job } from '../schemas/job.js';
import { JOB_ERRORS, type JobErrorCode, type Recovery, type RequestErrorCode, rowOf } from './codes.js';
import { type Details, GenError } from './gen-error.js';

/** Refused before any call: the documented rules say that the service would refuse it. */
export class PreflightError extends GenError {
  protected static override get family() {
    return 'GenError/PreflightError';
  }

  /** The code that the service itself would give. */
  declare readonly code: RequestErrorCode;
  /** The parameter at fault. */
  declare readonly param: string;
  /** The HTTP status to answer the sender of the params with. */
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

/** A call that got no usable answer: what was sent, how often, and under which key. */
class CallError extends GenError {
  /** The HTTP method of the request. */
  declare readonly method: string | undefined;
  /** The URL of the request, without its query. */
  declare readonly url: string | undefined;
  /** The Idempotency-Key that was sent: a create without an answer may have made its job, so repeat it under this key. */
  declare readonly idempotencyKey: string | undefined;
  /** How many times the request was sent. */
  declare readonly attempts: number;

  constructor(message: string, details: CallDetails = {}) {
    super(message, { attempts: 1, ...details, recovery: 'retry' });
  }
}

/** The service could not be reached, or the connection broke before the answer was whole. */
export class ConnectionError extends CallError {
  protected static override get family() {
    return 'GenError/ConnectionError';
  }
}

/** No whole answer within `timeoutMs`. */
export class TimeoutError extends CallError {
  protected static override get family() {
    return 'GenError/TimeoutError';
  }

  /** The limit that was passed, in milliseconds. */
  declare readonly timeoutMs: number | undefined;
}

/** The service answered with success, but not in the documented shape. */
export class ResponseError extends CallError {
  protected static override get family() {
    return 'GenError/ResponseError';
  }

  /** Where in the body the essential is missing or mistyped, for example `data.job.id`. */
  declare readonly path: string | undefined;
  /** The job, if it stayed completed without a file. */
  declare readonly job?: Job | undefined;
}

/** A create would pass a budget, so it was not sent. */
export class BudgetExceededError extends GenError {
  protected static override get family() {
    return 'GenError/BudgetExceededError';
  }

  /** Always `budget_exceeded`. */
  readonly code = 'budget_exceeded';
  /** Tokens that the create would cost; undefined where the price is unknown. */
  declare readonly estimateTokens: number | undefined;
  /** Tokens that are left of the budget. */
  declare readonly leftTokens: number;
  /** ISO timestamp at which the next period begins; null for a budget without periods. */
  declare readonly resetsAt: string | null;
  /** The name of the budget. */
  declare readonly scope: string;
  /**
   * `spent`: there is no room in this period. `unresolved`: creates without an answer or a price hold the rest, so ask again
   * soon.
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

/** A job ended otherwise than completed, or was not waited for to its end. The job is on the error. */
export class JobError extends GenError {
  protected static override get family(): string {
    return 'GenError/JobError';
  }

  /** The job as it was last read. */
  declare readonly job: Job;
  /** The job's `errorCode`. */
  declare readonly code: JobErrorCode | undefined;
  /** The job's `errorData`, for example `retry_after` in seconds. */
  declare readonly data: Readonly<Record<string, unknown>> | undefined;

  constructor(message: string, details: Details<JobError, 'job', 'recovery'>) {
    const { errorCode, errorData } = details.job;
    const recovery = details.recovery ?? rowOf(JOB_RECOVERY, errorCode ?? '') ?? 'none';
    super(message, { ...details, ...{ code: errorCode ?? undefined, data: errorData ?? undefined }, recovery });
  }
}

/** The job failed; nothing was charged. */
export class JobFailedError extends JobError {
  protected static override get family() {
    return 'GenError/JobError/JobFailedError';
  }
}

/** The job was canceled. */
export class JobCanceledError extends JobError {
  protected static override get family() {
    return 'GenError/JobError/JobCanceledError';
  }
}

/** The job was blocked. */
export class JobBlockedError extends JobError {
  protected static override get family() {
    return 'GenError/JobError/JobBlockedError';
  }
}

/** The wait's own `timeoutMs` passed. The job goes on, and waiting can be taken up again with its id. */
export class WaitTimeoutError extends GenError {
  protected static override get family() {
    return 'GenError/WaitTimeoutError';
  }

  /** The job as it was last read; undefined when no read succeeded. */
  declare readonly job: Job | undefined;
  /** The id that was waited for. */
  declare readonly jobId: string;
  /** The limit that passed, in milliseconds. */
  declare readonly timeoutMs: number;

  constructor(message: string, details: Details<WaitTimeoutError, 'jobId' | 'timeoutMs', 'job'>) {
    super(message, { ...details, recovery: 'wait_again' });
  }
}
