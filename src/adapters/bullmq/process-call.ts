import { DelayedError, type Queue, UnrecoverableError } from 'bullmq';
import type { GenClient } from '../../client/client.js';
import { createResultOf, pollRunJob, type StepResult, sendRunCreate } from '../../client/run-calls.js';
import { BudgetExceededError } from '../../errors/client-errors.js';
import { GenError, WaitTimeoutError } from '../../errors/index.js';
import { backoff } from '../../rules/backoff.js';
import { nextDetachedStep } from '../../rules/detached-run.js';
import { errorFromJson, type GenErrorJson } from '../../rules/failure-kind.js';
import { DAY_MS } from '../../rules/limits.js';
import { queuedPollMs } from '../../rules/polling.js';
import type { CreateStep, EndStep, JobRunState, LastStep, ReadStep, RunRules } from '../../rules/run-state.js';
import { reasonOf } from '../../runtime/callbacks.js';
import { type Clock, systemRandom } from '../../runtime/clock.js';
import type { Budget } from '../../schemas/budget.js';
import type { CompletedJob, JobCall } from '../../schemas/job.js';
import { outcomeOf } from '../../waiting/wait.js';
import {
  CREATE_PRIORITY,
  checkKey,
  type GenJobData,
  type GenJobResult,
  type GenQueueJob,
  hasFailed,
  isCall,
  isKnownRecord,
  loadRun,
  recordOf,
} from './call-record.js';
import { type JobIndex, wakeCall } from './connection.js';
import { openFiles } from './queued-files.js';

interface WorkerContext {
  readonly onCompleted?: ((job: CompletedJob, queueJob: GenQueueJob) => unknown) | undefined;
  readonly onFailed?: ((error: GenError, queueJob: GenQueueJob) => unknown) | undefined;
  readonly pollIntervalMs?: number | undefined;
  readonly rules: RunRules;
  readonly client: GenClient;
  readonly jobIndex: JobIndex;
  readonly queue: Queue<GenJobData, GenJobResult>;
  readonly clock: Clock;
  /** Returns the budget of a call's `budgetScope`. */
  readonly budgetOf: (scope: string) => Budget;
  readonly onError: (error: Error) => void;
  /** BullMQ's `lockDuration`. */
  readonly lockMs: number;
  /** Aborts when the worker closes. */
  readonly closing: AbortSignal;
}

interface Work {
  readonly context: WorkerContext;
  readonly queueJob: GenQueueJob;
  readonly token: string | undefined;
}

/** A call's state, and the last job and error, which aren't stored. */
interface CallState extends Pick<StepResult, 'job' | 'error'> {
  readonly run: JobRunState;
}

/** Delay of a call whose worker is closing. */
const CLOSING_MS = 500;
/** Delay of a call that this worker leaves to others. */
const SKIPPED_MS = 10_000;
/** Maximum delay of a call over budget, because the budget may be raised. */
const MAX_BUDGET_WAIT_MS = 5 * 60_000;
/** How long a worker retries callbacks and connections that fail. */
const RETRY_MS = DAY_MS;
const FIRST_RETRY_MS = 1_000;

/** Thrown if another worker has claimed the call. */
class LostCall extends Error {}

/** Returns the function that processes a call until it sleeps or ends, one step of `nextDetachedStep` at a time. */
export function createProcessor(
  context: WorkerContext,
): (queueJob: GenQueueJob, token?: string) => Promise<GenJobResult> {
  const reported = new Set<string>();
  return async (queueJob, token) => {
    const work = { context, queueJob, token };
    try {
      if (!isCall(queueJob.data)) throw foreignRecord(work);
      const reason = await skipReason(work);
      if (reason !== undefined) return await leaveToOthers(work, reason, reported);
      if (hasFailed(queueJob)) throw finalError(errorFromJson(queueJob.data.failure as object as GenErrorJson));
      return await proceed(work);
    } catch (error) {
      if (error instanceof DelayedError || error instanceof UnrecoverableError || error instanceof LostCall)
        throw error;
      // The next worker sends the create again with its key.
      if (context.closing.aborted) return sleepInQueue(work, CLOSING_MS);
      context.onError(error instanceof Error ? error : new Error(reasonOf(error)));
      return retryLater(work, error);
    }
  };
}

function foreignRecord({ context, queueJob }: Work): UnrecoverableError {
  const message = `"${queueJob.id}" is not a record of createGenQueue. Add it to another queue.`;
  context.onError(new GenError(message));
  return new UnrecoverableError(message);
}

/** Returns the reason why this worker must skip the call, if any. */
async function skipReason({ context, queueJob: { id, data } }: Work): Promise<string | undefined> {
  if (!isKnownRecord(data)) {
    return `"${id}" was written by a newer version of gen-client, so this worker leaves it alone. Update the worker.`;
  }
  if (data.account === undefined || data.account === (await context.client.accountId())) return undefined;
  return `"${id}" belongs to another account, so this worker leaves it alone. Give each account its own queue: pass a name or a prefix. If you changed the API key, keep a worker with the old key until its calls have ended, and pass account from now on.`;
}

/** Leaves the record and its wake to another worker. */
async function leaveToOthers(
  { context, queueJob, token }: Work,
  reason: string,
  reported: Set<string>,
): Promise<never> {
  const { account = '' } = queueJob.data;
  if (!reported.has(account)) context.onError(new GenError(reason));
  reported.add(account);
  await queueJob.moveToDelayed(context.clock.now() + SKIPPED_MS, token);
  throw new DelayedError();
}

/**
 * Delays the call after a failure other than its job's, for example of a callback. This doesn't count as one of BullMQ's
 * attempts. After 24 hours of failures, the call fails with the last error.
 */
async function retryLater(work: Work, reason: unknown): Promise<never> {
  const { context, queueJob } = work;
  await extendLock(work);
  const now = context.clock.now();
  const { since, failures } = queueJob.data.retryState ?? { since: now, failures: 0 };
  if (failures > 0 && now - since >= RETRY_MS) {
    const error = GenError.isInstance(reason)
      ? reason
      : new GenError(reasonOf(reason), { cause: reason, recovery: 'retry' });
    return failCall(work, loadRun(queueJob, context.rules), error);
  }
  await queueJob.updateData({ ...queueJob.data, retryState: { since, failures: failures + 1 } });
  const maxMs = context.rules.retryMs ?? FIRST_RETRY_MS;
  return sleepInQueue(work, backoff({ firstMs: Math.min(FIRST_RETRY_MS, maxMs), maxMs }, failures + 1));
}

async function proceed(work: Work): Promise<GenJobResult> {
  let state: CallState = { run: await resumeCall(work) };
  for (;;) {
    const { run } = state;
    const { step } = run;
    switch (step.type) {
      case 'create':
        state = await createJob(work, run, step);
        break;
      case 'read':
        state = await pollJob(work, run, step);
        break;
      case 'wait':
        return sleepInQueue(work, step.ms);
      case 'end':
        return endCall(work, run, step);
      case 'fail':
        return failCall(work, run, errorOf(state, step));
      case 'store':
        throw new GenError('A queued call does not store its file. Store it in onCompleted.');
    }
  }
}

async function resumeCall(work: Work): Promise<JobRunState> {
  const { context, queueJob } = work;
  const run = loadRun(queueJob, context.rules);
  if (run.step.type !== 'wait') return run;
  const { jobId } = run.step;
  const woken = jobId !== null && (await context.jobIndex.consumeWake(jobId));
  return nextDetachedStep(run, { type: 'waited', woken, passedMs: passedMs(work) });
}

/** Creates the job, and stores its ID before anything else. */
async function createJob(work: Work, run: JobRunState, step: CreateStep): Promise<CallState> {
  const { context, queueJob } = work;
  context.closing.throwIfAborted();
  await extendLock(work);
  const { account = await context.client.accountId(), call, preflight, budgetScope } = queueJob.data;
  // Store the account before sending, because in another account the same key would create a second paid job.
  if (queueJob.data.account === undefined) await queueJob.updateData({ ...queueJob.data, account });
  let uploaded: GenJobData['params'] | undefined;
  const { key, model } = step;
  const result = await createResultOf(async () => {
    checkKey(queueJob);
    const client =
      budgetScope === undefined
        ? context.client
        : context.client.withOptions({ budget: context.budgetOf(budgetScope) });
    const params = await openFiles(queueJob.data.params);
    const options = { signal: context.closing, preflight };
    const { priority = CREATE_PRIORITY } = queueJob.opts;
    const isUrgent = priority > 0 && priority < CREATE_PRIORITY;
    const onUploads = (body: GenJobData['params']) => {
      uploaded = body;
    };
    const { recover } = run.rules;
    const detached = { queue: context.queue.qualifiedName, maxRetries: 0, recover, isUrgent, onUploads };
    return (await sendRunCreate(client, { call, params, key, model }, options, detached)).job;
  });
  const { job } = result;
  // The service has the bytes, so remove them from Redis.
  if (job && uploaded) queueJob.data = { ...queueJob.data, params: uploaded };
  const state = await advance(work, run, waitForBudget(context.clock, result));
  if (job) {
    await context.jobIndex.add(job.id, queueJob.id ?? '');
    await queueJob.log(`${job.id} was accepted under ${key}: ${job.quotedTokenCost ?? '?'} tokens.`);
  }
  return state;
}

/** Delays a create over budget until the next budget period, if there is one. */
function waitForBudget(clock: Clock, result: StepResult): StepResult {
  const { event, error } = result;
  if (event.type !== 'failed' || !BudgetExceededError.isInstance(error)) return result;
  if (error.reason !== 'spent' || error.resetsAt === null) return result;
  const untilResetMs = Math.max(1, Date.parse(error.resetsAt) - clock.now());
  const failure = {
    ...event.failure,
    kind: 'throttled',
    retryAfterMs: Math.min(untilResetMs, MAX_BUDGET_WAIT_MS),
  } as const;
  return { ...result, event: { ...event, failure } };
}

async function pollJob(work: Work, run: JobRunState, { jobId }: ReadStep): Promise<CallState> {
  const { context, queueJob } = work;
  context.closing.throwIfAborted();
  // Add the job again, in case the process crashed after storing its ID.
  await context.jobIndex.add(jobId, queueJob.id ?? '');
  const polled = await pollRunJob(context.client, jobId, { signal: context.closing, maxRetries: 0 });
  return advance(work, run, polled);
}

/** Applies the rules to a result and returns the new state. Stores it unless the call has ended. */
async function advance(work: Work, run: JobRunState, { event, ...result }: StepResult): Promise<CallState> {
  const { context, queueJob } = work;
  // If this process was suspended, another worker may own the call. Don't overwrite its state.
  await extendLock(work);
  const isPolled = event.type === 'job' || run.step.type === 'read';
  const pollMs = context.pollIntervalMs ?? (isPolled ? await pollPaceMs(context, queueJob.data.call) : null);
  const next = nextDetachedStep({ ...run, rules: { ...run.rules, pollMs } }, { ...event, passedMs: passedMs(work) });
  if (next.step.type !== 'fail' && next.step.type !== 'end') await storeRun(work, next);
  if (result.job) {
    const { id: jobId, status, quotedTokenCost, finalTokenCost } = result.job;
    await queueJob.updateProgress({ jobId, status, quotedTokenCost, finalTokenCost });
  }
  return { run: next, ...result };
}

/** Stores a call's state and priority. Removes its previous job from the index. */
async function storeRun({ context, queueJob }: Work, run: JobRunState, failure?: GenJobData['failure']): Promise<void> {
  const { jobId: previousJobId } = queueJob.data;
  const data = recordOf(queueJob.data, run, context.clock.now());
  await queueJob.updateData(failure === undefined ? data : { ...data, failure, stalls: queueJob.stalledCounter });
  if (previousJobId !== undefined && (failure !== undefined || previousJobId !== data.jobId))
    await context.jobIndex.remove(previousJobId);
  const priority = data.jobId === undefined ? queueJob.opts.priority || CREATE_PRIORITY : 0;
  if (queueJob.priority !== priority) await queueJob.changePriority({ priority });
}

/**
 * Returns the poll interval in milliseconds. The index can contain jobs of calls that were removed manually, so the number of
 * unfinished calls is an upper bound.
 */
async function pollPaceMs({ client, queue, jobIndex }: WorkerContext, call: JobCall): Promise<number> {
  const unfinishedCalls = queue.getJobCountByTypes('active', 'delayed', 'waiting', 'prioritized', 'waiting-children');
  const jobs = Math.max(1, Math.min(...(await Promise.all([jobIndex.size(), unfinishedCalls]))));
  return queuedPollMs(call, jobs, client.limits()['jobs.get'], systemRandom.next());
}

async function endCall(work: Work, run: JobRunState, { job, refusal }: EndStep): Promise<GenJobResult> {
  const { context, queueJob } = work;
  let completed: CompletedJob;
  try {
    completed = outcomeOf({ ...job, tries: run.tries }, true, refusal && errorFromJson(refusal));
  } catch (error) {
    return failCall(work, run, error);
  }
  // Store the outcome first, so that only onCompleted is retried if it throws.
  if (queueJob.data.run?.step.type !== 'end' || queueJob.data.failure !== undefined) await storeRun(work, run);
  try {
    await context.onCompleted?.(completed, queueJob);
  } catch (error) {
    const failure = new GenError(`onCompleted failed: ${reasonOf(error)}`, { cause: error, recovery: 'retry' });
    return isUnrecoverable(error) ? failCall(work, run, failure) : retryLater(work, failure);
  }
  await context.jobIndex.remove(job.id);
  return completed;
}

/** Stores the error and ends the call, so that BullMQ doesn't retry it. */
async function failCall(work: Work, run: JobRunState, error: unknown): Promise<never> {
  const { context, queueJob } = work;
  if (!GenError.isInstance(error)) throw error;
  try {
    await context.onFailed?.(error, queueJob);
  } catch (reason) {
    const { since } = queueJob.data.retryState ?? { since: context.clock.now() };
    if (!isUnrecoverable(reason) && context.clock.now() - since < RETRY_MS) return retryLater(work, error);
  }
  await extendLock(work);
  await storeRun(work, run, error.toJSON());
  throw finalError(error);
}

/** Converts an error, so that BullMQ doesn't retry the job. */
function finalError(error: GenError): UnrecoverableError {
  return Object.assign(new UnrecoverableError(`${error.name}: ${error.message}`), { cause: error });
}

/** Returns true if a callback must not be called again. */
function isUnrecoverable(error: unknown): boolean {
  return error instanceof UnrecoverableError;
}

/** Returns the error of a run that ends without a final job. */
function errorOf({ run, job, error }: CallState, step: Extract<LastStep, { readonly type: 'fail' }>): unknown {
  if (step.reason === 'timeout') {
    const { message, jobId = '' } = step.error;
    return new WaitTimeoutError(message, { job, jobId, timeoutMs: run.rules.timeoutMs ?? 0 });
  }
  return error ?? errorFromJson(step.error);
}

/** Delays the call in the queue. A webhook that arrived in the meantime wakes it immediately. */
async function sleepInQueue({ context, queueJob, token }: Work, ms: number): Promise<never> {
  await queueJob.moveToDelayed(context.clock.now() + ms, token);
  const { jobId } = queueJob.data;
  // Check after the move, because a later wake finds the call asleep.
  if (jobId !== undefined && (await context.jobIndex.hasWake(jobId))) await wakeCall(context.queue, queueJob.id ?? '');
  throw new DelayedError();
}

/** Throws if another worker has claimed the call. */
async function extendLock({ context, queueJob, token }: Work): Promise<void> {
  if (token === undefined || (await queueJob.extendLock(token, context.lockMs))) return;
  throw new LostCall(`Another worker now processes ${queueJob.id}, because this worker's lock expired (lockDuration).`);
}

/** Returns the milliseconds since the call's state was stored. */
function passedMs({ context, queueJob }: Work): number {
  const { storedAt } = queueJob.data;
  return storedAt === undefined ? 0 : context.clock.now() - storedAt;
}
