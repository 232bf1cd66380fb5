import type { Job } from '../schemas/job.js';
import { JOB_ERRORS, type JobErrorCode, type Recovery, rowOf } from './codes.js';
import { type Details, GenError } from './gen-error.js';

const RECOVERY: Readonly<Record<string, Recovery>> = JOB_ERRORS;

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
    const recovery = details.recovery ?? rowOf(RECOVERY, errorCode ?? '') ?? 'none';
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
