import type { Job } from '../schemas/job.js';
import { GenError } from './gen-error.js';

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
