import {
  GenError,
  JobBlockedError,
  JobCanceledError,
  type JobError,
  JobFailedError,
  WaitTimeoutError,
} from '../errors/index.js';
import { isFields } from '../schemas/envelope.js';
import type { CompletedJob, Job } from '../schemas/job.js';

/** What a wait is for. */
export interface WaitTarget {
  readonly id: string;
  /** The job as far as it is known. */
  readonly job: Job | undefined;
}

/** The job that a wait is for. Throws a GenError for anything but a job or an id. */
export function targetOf(target: unknown): WaitTarget {
  if (typeof target === 'string' && target) return { id: target, job: undefined };
  const { id, status, job, then } = isFields(target) ? target : {};
  if (typeof id === 'string' && id) return { id, job: typeof status === 'string' ? (target as Job) : undefined };
  const hint = then !== undefined ? ' Await the create first.' : '';
  const created = job !== undefined || then !== undefined;
  throw new GenError(
    `waitForJob takes a job or its id.${hint}${created ? ' Pass the `job` of what create returns: waitForJob(created.job).' : ''}`,
  );
}

const FAILURES: Readonly<Record<string, typeof JobError>> = {
  failed: JobFailedError,
  canceled: JobCanceledError,
  blocked: JobBlockedError,
};

/** What to do, in words, for each recovery that a job error can have. */
const JOB_ADVICE: Readonly<Record<string, string>> = {
  change_reference: 'Use another reference.',
  change_request: 'Change the prompt, references or options.',
  wait_and_retry: 'Wait errorData.retry_after seconds and send it again under a new idempotency key.',
  retry_with_new_key: 'Send it again under a new idempotency key.',
  retry_later: 'Try again later or with another model.',
};

/** The final job; throws its JobError where it did not complete, unless `throwOnFailure` is false. */
export function outcomeOf(job: Job, throwOnFailure = true): CompletedJob {
  const Failure = FAILURES[job.status];
  if (!Failure || !throwOnFailure) return job as CompletedJob;
  const { id, status, errorCode, errorMessage } = job;
  const reason = [errorCode, errorMessage].filter(Boolean).join(': ');
  const error = new Failure(`Job ${id} ${status === 'failed' ? status : `was ${status}`}${reason && ` (${reason})`}.`, {
    job,
  });
  const advice = JOB_ADVICE[error.recovery];
  if (advice) error.message += ` ${advice}`;
  throw error;
}

/** The error of a wait whose time is over. */
export function timedOut(seen: {
  readonly id: string;
  readonly job: Job | undefined;
  readonly timeoutMs: number;
  readonly cause: unknown;
}): WaitTimeoutError {
  const { id, job, timeoutMs } = seen;
  const state =
    job === undefined
      ? 'it could not be read'
      : job.status === 'completed'
        ? 'it was completed when last read, but had no providerOutputUrl'
        : `it was ${job.status} when last read`;
  return new WaitTimeoutError(
    `Job ${id} did not end within ${timeoutMs} ms (${state}). The job goes on: wait for it again, or raise timeoutMs.`,
    { ...seen, jobId: id },
  );
}
