import { DelayedError, type Queue, UnrecoverableError } from 'bullmq';
import type { GenClient } from '../client.js';
import { systemClock } from '../clock.js';
import { APIError, ConnectionError, GenError, ResponseError, TimeoutError, WaitTimeoutError } from '../errors/index.js';
import type { CreatedJob } from '../schemas/created-job.js';
import type { Job } from '../schemas/job.js';
import { isFinal } from '../schemas/job.js';
import { type GenQueueJob, promoteIfAsleep } from './gen-queue.js';
import type { GenJobData, GenJobResult } from './job-data.js';
import type { Notes } from './notes.js';
import { pollDelayMs } from './poll-delay.js';
import type { GenWorkerOptions } from './worker-options.js';

/** What the processing of a call needs. */
interface Processing {
  readonly onCompleted: GenWorkerOptions['onCompleted'] | undefined;
  readonly onFailed: GenWorkerOptions['onFailed'] | undefined;
  readonly client: GenClient;
  readonly notes: Notes;
  readonly queue: Queue<GenJobData, GenJobResult>;
  readonly pollIntervalMs: number | undefined;
  readonly retryDelayMs: number;
  readonly timeoutMs: number;
}

/** How often a call is made again because a reference is still in review. */
const MOST_RESUBMISSIONS = 5;
/** How long to wait for a review when the service names no time. */
const REVIEW_MS = 30_000;

/** One step of a call: make the job or read it, then end or go back to sleep. */
export function createProcessor(at: Processing): (job: GenQueueJob, token?: string) => Promise<GenJobResult> {
  return async (queueJob, token) => {
    try {
      const job = queueJob.data.jobId === undefined ? await makeJob(at, queueJob) : await readJob(at, queueJob);
      await queueJob.updateProgress({ jobId: job.id, status: job.status });
      return await conclude(at, { queueJob, job, token });
    } catch (error) {
      const delayMs = pauseFor(error, at.retryDelayMs);
      if (delayMs === undefined || isOverdue(at, queueJob)) return failCall(at, queueJob, error);
      if (isRefusedReview(error)) {
        const { data } = queueJob;
        await queueJob.updateData({ ...data, refusals: (data.refusals ?? 0) + 1 });
      }
      return sleepOn(at, { queueJob, token, delayMs });
    }
  };
}

/** Creates under the queue job's own id, and stores the service's job id before anything else. */
async function makeJob(at: Processing, queueJob: GenQueueJob): Promise<Job> {
  const { data, id } = queueJob;
  const { resubmissions = 0, refusals = 0 } = data;
  // The counts are stored before the call goes out, so a repeat after a crash derives the same key.
  const idempotencyKey = `${id}${resubmissions ? `:r${resubmissions + 1}` : ''}${refusals ? `:w${refusals}` : ''}`;
  const create: (params: never, options: object) => PromiseLike<CreatedJob> = at.client[data.call].create.bind(
    at.client[data.call],
  );
  const { job } = await create(data.params as never, { idempotencyKey });
  await queueJob.updateData({ ...data, jobId: job.id });
  await at.notes.own(job.id, id ?? '');
  return job;
}

async function readJob(at: Processing, queueJob: GenQueueJob): Promise<Job> {
  const jobId = queueJob.data.jobId ?? '';
  // Written again, in case the process died between storing the id and writing the note.
  await at.notes.own(jobId, queueJob.id ?? '');
  await at.notes.forgetWake(jobId);
  return at.client.jobs.get(jobId);
}

/** Ends the call when its job has ended, else puts it to sleep. */
async function conclude(at: Processing, step: Step): Promise<GenJobResult> {
  const { queueJob, job } = step;
  if (isPendingReference(job) && (queueJob.data.resubmissions ?? 0) < MOST_RESUBMISSIONS) {
    const { jobId: _, ...data } = queueJob.data;
    await queueJob.updateData({ ...data, resubmissions: (data.resubmissions ?? 0) + 1 });
    await at.notes.forget(job.id);
    return sleepOn(at, { ...step, delayMs: reviewMs(job) });
  }
  if (!isFinal(job)) {
    const { call } = queueJob.data;
    if (isOverdue(at, queueJob)) {
      const message = `Job ${job.id} had not ended after ${at.timeoutMs} ms (timeoutMs); it goes on at the service.`;
      throw new WaitTimeoutError(message, { job, jobId: job.id, timeoutMs: at.timeoutMs });
    }
    return sleepOn(at, { ...step, delayMs: at.pollIntervalMs ?? pollDelayMs(call, await at.queue.getDelayedCount()) });
  }
  // A final job resolves, or throws its own error, without a call.
  const completed = await at.client.waitForJob(job);
  await at.onCompleted?.(completed, queueJob);
  await at.notes.forget(job.id);
  return completed;
}

interface Step {
  readonly queueJob: GenQueueJob;
  readonly job: Job;
  readonly token: string | undefined;
}

/** Leaves the call in the queue as a delayed job. A webhook that came while it was being worked on wakes it at once. */
async function sleepOn(
  at: Processing,
  step: { readonly queueJob: GenQueueJob; readonly token: string | undefined; readonly delayMs: number },
): Promise<never> {
  const { queueJob, token, delayMs } = step;
  await queueJob.moveToDelayed(systemClock.now() + delayMs, token);
  const { jobId } = queueJob.data;
  // Looked for after falling asleep: a note written later finds the call asleep and wakes it itself.
  if (jobId !== undefined && (await at.notes.woken(jobId))) await promoteIfAsleep(at.queue, queueJob.id ?? '');
  throw new DelayedError();
}

/** How long to pause after an error that is not the end of the call; undefined when it is. */
function pauseFor(error: unknown, retryDelayMs: number): number | undefined {
  if (error instanceof DelayedError) return undefined;
  const busy = APIError.isInstance(error) && ['wait_and_retry', 'retry', 'retry_later'].includes(error.recovery);
  if (busy) return error.retryAfterMs ?? retryDelayMs;
  const lost = ConnectionError.isInstance(error) || TimeoutError.isInstance(error) || ResponseError.isInstance(error);
  return lost ? retryDelayMs : undefined;
}

/** Ends the call with its error: kept in typed form with the queue job, and not tried again by the engine. */
async function failCall(at: Processing, queueJob: GenQueueJob, error: unknown): Promise<never> {
  if (!GenError.isInstance(error)) throw error;
  await queueJob.updateData({ ...queueJob.data, failure: error.toJSON() });
  await at.onFailed?.(error, queueJob);
  if (queueJob.data.jobId !== undefined) await at.notes.forget(queueJob.data.jobId);
  throw Object.assign(new UnrecoverableError(`${error.name}: ${error.message}`), { cause: error });
}

/** Counted from when the call was queued. */
function isOverdue(at: Processing, queueJob: GenQueueJob): boolean {
  return systemClock.now() - queueJob.timestamp > at.timeoutMs;
}

/** A character is still in review: nothing was reserved, and the next try goes under a new key (spec: Authentication 6). */
function isRefusedReview(error: unknown): boolean {
  return APIError.isInstance(error) && error.code === 'character_pending';
}

function isPendingReference(job: Job): boolean {
  return job.status === 'failed' && job.errorCode === 'reference_asset_pending';
}

function reviewMs(job: Job): number {
  const seconds = job.errorData?.retry_after;
  return typeof seconds === 'number' && seconds > 0 ? seconds * 1000 : REVIEW_MS;
}
