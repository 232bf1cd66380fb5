// Steps of a detached run, in a queue or a workflow: it polls its job, retries, and stores the file.
import { isSettled } from '../schemas/job.js';
import { type CallFailure, errorJson, MAX_PAGES, MAX_WITHOUT_FILE_MS, missingFileError } from './failure-kind.js';
import {
  afterJob,
  countTime,
  DEFAULT_SLOT_WAIT_MS,
  type JobRunEvent,
  MAX_POLL_MS,
  MIN_WAIT_MS,
  nextStep,
  pauseBefore,
  pollIntervalMs,
  waitForPoll,
} from './run.js';
import type { CreateStep, JobRunState, ReadStep, RunEvent, StoreStep } from './run-state.js';

/** Recoveries of an unsent create that may succeed later. */
const TEMPORARY_RECOVERIES: readonly string[] = ['retry', 'retry_later', 'wait_and_retry'];
/** Maximum retries of storing a file. */
const STORE_RETRIES = 10;

/**
 * Returns the state of a detached run after an event. Retries calls without a usable response, after which
 * {@link nextStep} would end the run. A webhook is only a hint, so the job is polled. Pure, with JSON in and out.
 */
export function nextDetachedStep(previousRun: JobRunState, event: RunEvent): JobRunState {
  const run = countTime(previousRun, event);
  const { step } = run;
  if (event.type === 'job' && (step.type === 'read' || step.type === 'wait')) {
    if (event.job.id === step.jobId) return afterPoll(run, event);
    return step.type === 'read' ? waitForPoll(run, step.jobId) : run;
  }
  if (event.type === 'stored' && step.type === 'store')
    return { ...run, step: { type: 'end', job: step.job, error: null, resumeStep: null } };
  if (event.type === 'failed') {
    if (step.type === 'read') return afterPollFailed(run, step, event.failure);
    if (step.type === 'store') return afterStoreFailed(run, step, event.failure);
    if (step.type === 'create' && isRetried(event.failure)) return retryCreate(run, step, event.failure);
  }
  return nextStep(previousRun, event);
}

function afterPoll(previousRun: JobRunState, event: JobRunEvent): JobRunState {
  const { job } = event;
  const run = afterJob(previousRun, event);
  const { filelessMs, elapsedMs } = run;
  if (isSettled(job) || filelessMs === null || Number(elapsedMs) - filelessMs < MAX_WITHOUT_FILE_MS) return run;
  const resumeStep: ReadStep = { type: 'read', jobId: job.id };
  return { ...run, step: { type: 'fail', reason: 'lost', error: errorJson(missingFileError(job)), resumeStep } };
}

/**
 * Returns true if the same create may succeed later. An unsent create may, if its cause is temporary: no connection, a
 * budget whose tokens are reserved for other creates, or another owner.
 */
function isRetried({ kind, error }: CallFailure): boolean {
  const isTemporary = error.name === 'ConnectionError' || TEMPORARY_RECOVERIES.includes(error.recovery ?? '');
  return kind === 'lost' || kind === 'throttled' || (kind === 'unsent' && isTemporary);
}

/** Sends the create again under the same key, because the response to an earlier one may be lost. */
function retryCreate(run: JobRunState, next: CreateStep, failure: CallFailure): JobRunState {
  const { kind: reason, retryAfterMs, error } = failure;
  const onTimeout = { type: 'fail', reason, error, resumeStep: next } as const;
  if (reason === 'throttled') return pauseBefore(run, { ms: slotMs(failure), next, onTimeout });
  const failedRun = { ...run, failedCalls: run.failedCalls + 1 };
  return pauseBefore(failedRun, { ms: retryAfterMs === null ? retryMs(failedRun) : slotMs(failure), next, onTimeout });
}

function afterPollFailed(run: JobRunState, step: ReadStep, failure: CallFailure): JobRunState {
  const { kind: reason, retryAfterMs, error } = failure;
  const pages = failure.isStrayPage ? run.pages + 1 : 0;
  if (reason === 'refused' || reason === 'unsent' || pages >= MAX_PAGES) {
    return { ...run, step: { type: 'fail', reason, error, resumeStep: step } };
  }
  if (reason === 'throttled') return waitForPoll(run, step.jobId, Math.max(pollMs(run), slotMs(failure)));
  // The job is paid for, so a long Retry-After doesn't delay its poll further.
  const failedRun = { ...run, pages, failedCalls: run.failedCalls + 1 };
  return waitForPoll(failedRun, step.jobId, Math.max(pollMs(failedRun), Math.min(retryAfterMs ?? 0, MAX_POLL_MS)));
}

function afterStoreFailed(run: JobRunState, step: StoreStep, { kind: reason, error }: CallFailure): JobRunState {
  const resumeStep: ReadStep = { type: 'read', jobId: step.job.id };
  if (reason !== 'lost' || run.failedCalls >= STORE_RETRIES) {
    return { ...run, step: { type: 'fail', reason, error, resumeStep } };
  }
  const failedRun = { ...run, failedCalls: run.failedCalls + 1 };
  // The job is paid for, so the timeout no longer applies.
  const ms = retryMs(failedRun);
  return { ...failedRun, step: { type: 'wait', jobId: null, ms, leftMs: null, next: step, onTimeout: null } };
}

/** Returns the milliseconds until the next poll. After a webhook, a failed poll is retried sooner. */
function pollMs(run: JobRunState): number {
  const isUnconfirmed = run.isAnnounced && run.failedCalls > 0;
  return isUnconfirmed ? Math.min(retryMs(run), pollIntervalMs(run)) : pollIntervalMs(run);
}

/** Returns the milliseconds until a call without a response is retried. Doubles with each failure. */
function retryMs(run: JobRunState): number {
  const { retryMs: maxMs } = run.rules;
  if (maxMs === undefined || maxMs === null) return pollIntervalMs(run);
  return Math.min(maxMs, MIN_WAIT_MS * 2 ** Math.min(run.failedCalls - 1, 20));
}

/** Returns the milliseconds until the rate limit has a free slot. */
function slotMs({ retryAfterMs }: CallFailure): number {
  return Math.max(retryAfterMs ?? DEFAULT_SLOT_WAIT_MS, MIN_WAIT_MS);
}
