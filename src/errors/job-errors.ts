import type { Job } from '../schemas/job.js';
import { JOB_ERRORS, type JobErrorCode, type Recovery, rowOf } from './codes.js';
import { GenError } from './gen-error.js';

const RECOVERY: Readonly<Record<string, Recovery>> = JOB_ERRORS;

/** A job ended otherwise than completed, or was not waited for to its end. The job is on the error. */
export class JobError extends GenError {
  protected static override get family(): string {
    return 'GenError/JobError';
  }

  /** The job as it was last read. */
  readonly job: Job;
  /** The job's `errorCode`. */
  readonly code: JobErrorCode | undefined;
  /** The job's `errorData`, for example `retry_after` in seconds. */
  readonly data: Readonly<Record<string, unknown>> | undefined;

  constructor(message: string, details: { readonly job: Job; readonly cause?: unknown; readonly recovery?: Recovery }) {
    const { job, cause } = details;
    super(message, { cause, recovery: details.recovery ?? rowOf(RECOVERY, job.errorCode ?? '') ?? 'none' });
    this.job = job;
    this.code = job.errorCode ?? undefined;
    this.data = job.errorData ?? undefined;
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
  readonly job: Job | undefined;
  /** The id that was waited for. */
  readonly jobId: string;
  /** The limit that passed, in milliseconds. */
  readonly timeoutMs: number;

  constructor(
    message: string,
    details: {
      readonly job?: Job | undefined;
      readonly jobId: string;
      readonly timeoutMs: number;
      readonly cause?: unknown;
    },
  ) {
    super(message, { ...details, recovery: 'wait_again' });
    this.job = details.job;
    this.jobId = details.jobId;
    this.timeoutMs = details.timeoutMs;
  }
}
