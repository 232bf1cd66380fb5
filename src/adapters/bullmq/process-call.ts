import { DelayedError, type Queue, UnrecoverableError } from 'bullmq';
import type { GenClient } from '../../client/client.js';
import { type CallKind, type SeenCall, seeCall, sendRunCreate } from '../../client/run-calls.js';
import { BudgetExceededError } from '../../errors/client-errors.js';
import { GenError, RateLimitError, WaitTimeoutError } from '../../errors/index.js';
import { backoff } from '../../rules/backoff.js';
import { errorFromJson, type GenErrorJson } from '../../rules/failure-kind.js';
import { failsAgain } from '../../rules/files.js';
import { DAY_MS } from '../../rules/limits.js';
import { queuedReadMs } from '../../rules/read-order.js';
import { nextStep } from '../../rules/run.js';
import type { CreateStep, JobRunState, LastStep, ReadStep, RunRules } from '../../rules/run-state.js';
import { reasonOf } from '../../runtime/callbacks.js';
import { type Clock, systemRandom } from '../../runtime/clock.js';
import type { Budget } from '../../schemas/budget.js';
import type { CompletedJob, Job } from '../../schemas/job.js';
import {
  discardUploads,
  type GenJobData,
  type GenJobResult,
  type GenQueueJob,
  hasFailed,
  isKnownRecord,
  loadRun,
  storeRun,
  UNMADE_PRIORITY,
  uploadFiles,
  withUploads,
} from './call-record.js';
import { type Notes, wakeCall } from './connection.js';

interface Workplace {
  readonly onCompleted?: ((job: CompletedJob, queueJob: GenQueueJob) => unknown) | undefined;
  readonly onFailed?: ((error: GenError, queueJob: GenQueueJob) => unknown) | undefined;
  readonly pollIntervalMs?: number | undefined;
  readonly rules: RunRules;
  /** Refuses a call whose rate limit is full, instead of holding up the worker. */
  readonly client: GenClient;
  /** Waits for its rate limits, for what takes long anyway. */
  readonly uploader: GenClient;
  readonly notes: Notes;
  readonly queue: Queue<GenJobData, GenJobResult>;
  readonly clock: Clock;
  /** Until when the rate limit of a call is known to be full: a backlog of its calls need not ask, one after the other. */
  readonly fullUntil: Map<CallKind, number>;
  /** The budget of a call's `budgetScope`. */
  readonly budgetOf: (scope: string) => Budget;
  readonly onError: (error: Error) => void;
  /** For how long a worker has a call to itself. */
  readonly lockMs: number;
  /** Aborts when the worker closes. */
  readonly closing: AbortSignal;
}

interface Work {
  readonly at: Workplace;
  readonly queueJob: GenQueueJob;
  readonly token: string | undefined;
}

/** Where a call stands, with what only this process knows: the job that was seen last, and the error of the last call. */
interface Standing {
  readonly run: JobRunState;
  readonly job?: Job;
  readonly error?: unknown;
}

/** How long a call sleeps that is handed on because its worker closes. */
const HANDED_ON_MS = 500;
/** So long before a backlog, calls with a priority of their own ask for a slot. */
const HEAD_START_MS = 500;
/** How long a call of a newer version sleeps, so that a newer worker may take it. */
const NEWER_MS = 30_000;
/** How long a callback that throws is called again, and a connection that fails is tried again. */
const TROUBLE_MS = DAY_MS;
const FIRST_TROUBLE_MS = 1_000;

/** Another worker has the call now. */
class LostCall extends Error {}

/** Works on a call until it sleeps or ends: does what `nextStep` says, and stores where the call stands. */
export function createProcessor(at: Workplace): (queueJob: GenQueueJob, token?: string) => Promise<GenJobResult> {
  return async (queueJob, token) => {
    const work = { at, queueJob, token };
    if (!isKnownRecord(queueJob.data)) return leaveToNewer(work);
    if (hasFailed(queueJob)) throw lastWord(errorFromJson(queueJob.data.failure as object as GenErrorJson));
    try {
      return await proceed(work);
    } catch (error) {
      if (error instanceof DelayedError || error instanceof UnrecoverableError || error instanceof LostCall)
        throw error;
      // What was sent is repeated under its own key by the worker that takes the call up.
      if (at.closing.aborted) return sleepInQueue(work, HANDED_ON_MS);
      at.onError(error instanceof Error ? error : new Error(reasonOf(error)));
      return tryLater(work, error);
    }
  };
}

/** Leaves a record of a newer version as it is, for a worker that knows it. */
function leaveToNewer(work: Work): Promise<never> {
  const message = `"${work.queueJob.id}" was written by a newer version of gen-client, so this worker leaves it alone. Update the worker.`;
  work.at.onError(new GenError(message));
  return sleepInQueue(work, NEWER_MS);
}

/**
 * Puts the call aside after a failure that says nothing about its job: an upload, a callback, the connection. That uses up
 * no attempt of the engine. When it goes on for longer than `limitMs`, the call fails with it.
 */
async function tryLater(work: Work, reason: unknown, limitMs = TROUBLE_MS): Promise<never> {
  const { at, queueJob } = work;
  await holdLock(work);
  const now = at.clock.now();
  const { since, failures } = queueJob.data.trouble ?? { since: now, failures: 0 };
  if (failures > 0 && now - since >= limitMs) {
    if (GenError.isInstance(reason)) return giveUp(work, reason);
    return giveUp(work, new GenError(reasonOf(reason), { cause: reason, recovery: 'retry' }));
  }
  await queueJob.updateData({ ...queueJob.data, trouble: { since, failures: failures + 1 } });
  const mostMs = at.rules.retryMs ?? FIRST_TROUBLE_MS;
  return sleepInQueue(work, backoff({ firstMs: Math.min(FIRST_TROUBLE_MS, mostMs), mostMs }, failures + 1));
}

async function proceed(work: Work): Promise<GenJobResult> {
  let standing: Standing = { run: await wakeUp(work) };
  for (;;) {
    const { run } = standing;
    const { step } = run;
    switch (step.type) {
      case 'create':
        standing = await createServiceJob(work, run, step);
        break;
      case 'read':
        standing = await readServiceJob(work, run, step);
        break;
      case 'wait':
        return run.elapsedMs === null ? sleepInLine(work, step.ms) : sleepInQueue(work, step.ms);
      case 'end':
        return end(work, run, step.job);
      case 'fail':
        return failCall(work, run, endError(standing, step));
      case 'store':
        throw new GenError('A queued call does not store its file: onCompleted does.');
    }
  }
}

async function wakeUp(work: Work): Promise<JobRunState> {
  const { at, queueJob } = work;
  const run = loadRun(queueJob, at.rules);
  if (run.step.type !== 'wait') return run;
  const { jobId } = run.step;
  const woken = jobId !== null && (await at.notes.takeWake(jobId));
  return nextStep(run, { type: 'waited', woken, passedMs: passedMs(work) });
}

/** Creates the service's job, and stores its id before anything else. */
async function createServiceJob(work: Work, run: JobRunState, step: CreateStep): Promise<Standing> {
  const { at, queueJob } = work;
  at.closing.throwIfAborted();
  const fullMs = (at.fullUntil.get(queueJob.data.call) ?? 0) - at.clock.now();
  // A run that the service has answered before has a time limit, and asks.
  if (fullMs > 0 && run.elapsedMs === null) return sleepInLine(work, fullMs);
  await holdLock(work);
  await uploadOnce(work);
  const { call, preflight, uploads, budgetScope } = queueJob.data;
  const params = withUploads(queueJob.data.params, uploads);
  const options = { signal: at.closing, preflight };
  const { key, model } = step;
  const seen = await seeCall(async () => {
    const client = budgetScope === undefined ? at.client : at.client.withOptions({ budget: at.budgetOf(budgetScope) });
    return (await sendRunCreate(client, { call, params, key, model }, options)).job;
  });
  const standing = await advance(work, run, untilNextPeriod(at.clock, seen));
  const { step: next } = standing.run;
  if (RateLimitError.isInstance(seen.error) && next.type === 'wait') at.fullUntil.set(call, at.clock.now() + next.ms);
  const { job } = standing;
  if (job) {
    await at.notes.own(job.id, queueJob.id ?? '');
    await queueJob.log(`${job.id} was accepted under ${key}: ${job.quotedTokenCost ?? '?'} tokens.`);
  }
  return standing;
}

/** A create whose budget is spent waits for the next period of the budget, where there is one. */
function untilNextPeriod(clock: Clock, seen: SeenCall): SeenCall {
  const { event, error } = seen;
  if (event.type !== 'failed' || !BudgetExceededError.isInstance(error)) return seen;
  if (error.reason !== 'spent' || error.resetsAt === null) return seen;
  const retryAfterMs = Math.max(1, Date.parse(error.resetsAt) - clock.now());
  return { ...seen, event: { ...event, failure: { ...event.failure, kind: 'throttled', retryAfterMs } } };
}

/** Uploads the files of the call and stores their ids, so that no later attempt does it again. */
async function uploadOnce(work: Work): Promise<void> {
  const { at, queueJob } = work;
  const { data } = queueJob;
  if (data.files === undefined || data.uploads !== undefined) return;
  const uploads = await uploadFiles(at.uploader, data, at.closing).catch((error: unknown) => {
    if (!GenError.isInstance(error)) throw error;
    if (failsAgain(error)) return giveUp(work, error);
    return tryLater(work, error, at.rules.timeoutMs ?? Number.POSITIVE_INFINITY);
  });
  await queueJob.updateData({ ...data, uploads });
}

async function readServiceJob(work: Work, run: JobRunState, { jobId }: ReadStep): Promise<Standing> {
  const { at, queueJob } = work;
  at.closing.throwIfAborted();
  // Written again, in case the process died between storing the id and writing the note.
  await at.notes.own(jobId, queueJob.id ?? '');
  return advance(work, run, await seeCall(() => at.client.jobs.get(jobId, { signal: at.closing })));
}

/** Does what the rules say to what was seen, and stores it. The end of a call is stored when it has been told. */
async function advance(work: Work, run: JobRunState, { event, ...seen }: SeenCall): Promise<Standing> {
  const { at, queueJob } = work;
  // A process that was frozen meanwhile has lost the call to another one, and must not overwrite what that one has stored.
  await holdLock(work);
  const pollMs = at.pollIntervalMs ?? (await readPaceMs(at, queueJob.data.call));
  const next = nextStep({ ...run, rules: { ...run.rules, pollMs } }, { ...event, passedMs: passedMs(work) });
  if (next.step.type !== 'fail' && next.step.type !== 'end') await storeRun(work, next);
  if (seen.job) {
    const { id: jobId, status, quotedTokenCost, finalTokenCost } = seen.job;
    await queueJob.updateProgress({ jobId, status, quotedTokenCost, finalTokenCost });
  }
  return { run: next, ...seen };
}

/** Milliseconds until a job is read again. Notes of calls that somebody has just removed by hand do not make it longer. */
async function readPaceMs({ client, queue, notes }: Workplace, call: CallKind): Promise<number> {
  const unended = queue.getJobCountByTypes('active', 'delayed', 'waiting', 'prioritized', 'waiting-children');
  const jobs = Math.max(1, Math.min(...(await Promise.all([notes.owned(), unended]))));
  return queuedReadMs(call, jobs, client.limits()['jobs.get'], systemRandom.next());
}

async function end(work: Work, run: JobRunState, job: Job): Promise<GenJobResult> {
  const { at, queueJob } = work;
  const outcome = { ...job, tries: run.tries };
  // A final job resolves, or throws its own error, without a call.
  const completed = await at.client.waitForJob(outcome).catch((error: unknown) => failCall(work, run, error));
  // Stored first: when onCompleted throws, it is called again with this job and nothing else happens.
  if (queueJob.data.run?.step.type !== 'end' || queueJob.data.failure !== undefined) await storeRun(work, run);
  try {
    await at.onCompleted?.(completed, queueJob);
  } catch (error) {
    const failure = new GenError(`onCompleted failed: ${reasonOf(error)}`, { cause: error, recovery: 'retry' });
    return isFinalWord(error) ? failCall(work, run, failure) : tryLater(work, failure);
  }
  await at.notes.forget(job.id);
  return completed;
}

/** Ends the call with an error that its run has not decided. */
async function giveUp(work: Work, error: GenError): Promise<never> {
  return failCall(work, loadRun(work.queueJob, work.at.rules), error);
}

/** Ends the call with its error: kept in typed form with the queue job, and not tried again by the engine. */
async function failCall(work: Work, run: JobRunState, error: unknown): Promise<never> {
  const { at, queueJob } = work;
  if (!GenError.isInstance(error)) throw error;
  try {
    await at.onFailed?.(error, queueJob);
  } catch (reason) {
    const { since } = queueJob.data.trouble ?? { since: at.clock.now() };
    if (!isFinalWord(reason) && at.clock.now() - since < TROUBLE_MS) return tryLater(work, error);
  }
  await holdLock(work);
  await discardUploads(at.uploader, queueJob, run);
  await storeRun(work, run, error.toJSON());
  throw lastWord(error);
}

/** Tells the engine that a call has failed and is not to be tried again. */
function lastWord(error: GenError): UnrecoverableError {
  return Object.assign(new UnrecoverableError(`${error.name}: ${error.message}`), { cause: error });
}

/** A callback says with the engine's own UnrecoverableError that it must not be called again. */
function isFinalWord(error: unknown): boolean {
  return error instanceof UnrecoverableError;
}

/** The error that ends a run without a final job. */
function endError({ run, job, error }: Standing, step: Extract<LastStep, { readonly type: 'fail' }>): unknown {
  if (step.reason === 'timeout') {
    const { message, jobId = '' } = step.error;
    return new WaitTimeoutError(message, { job, jobId, timeoutMs: run.rules.timeoutMs ?? 0 });
  }
  return error ?? errorFromJson(step.error);
}

/** Leaves the call in the queue as a delayed job. A webhook that came while it was being worked on wakes it at once. */
async function sleepInQueue({ at, queueJob, token }: Work, ms: number): Promise<never> {
  await queueJob.moveToDelayed(at.clock.now() + ms, token);
  const { jobId } = queueJob.data;
  // Looked for after falling asleep: a note written later finds the call asleep and wakes it itself.
  if (jobId !== undefined && (await at.notes.woken(jobId))) await wakeCall(at.queue, queueJob.id ?? '');
  throw new DelayedError();
}

/** Sleeps until its rate limit has room. Calls that were given a priority wake first. */
function sleepInLine(work: Work, ms: number): Promise<never> {
  const { priority = UNMADE_PRIORITY } = work.queueJob.opts;
  return sleepInQueue(work, priority < UNMADE_PRIORITY ? ms : ms + HEAD_START_MS);
}

/** Makes sure that no other worker has taken the call up. */
async function holdLock({ at, queueJob, token }: Work): Promise<void> {
  if (token === undefined || (await queueJob.extendLock(token, at.lockMs))) return;
  throw new LostCall(
    `Another worker has taken up ${queueJob.id}: this one was out of reach for longer than lockDuration.`,
  );
}

/** Milliseconds since the call was stored. */
function passedMs({ at, queueJob }: Work): number {
  const { storedAt } = queueJob.data;
  return storedAt === undefined ? 0 : at.clock.now() - storedAt;
}
