import { DelayedError, type Queue, UnrecoverableError } from 'bullmq';
import { reasonOf } from '../callbacks.js';
import type { GenClient } from '../client.js';
import type { Clock } from '../clock.js';
import { GenError, WaitTimeoutError } from '../errors/index.js';
import type { GenErrorJson } from '../polling/call-failure.js';
import { nextStep } from '../polling/next-step.js';
import type { CreateStep, LastStep, ReadStep, RunRules, RunState } from '../polling/run-state.js';
import { type SeenCall, seeCall, sendCreate } from '../resources/run-calls.js';
import type { Job } from '../schemas/job.js';
import { deleteUploads, uploadFiles, withUploads } from './call-files.js';
import { type GenQueueJob, wakeCall } from './gen-queue.js';
import { type GenJobData, type GenJobResult, progressOf } from './job-data.js';
import type { Notes } from './notes.js';
import { pollDelayMs, type Turns } from './pace.js';
import { loadRun, storeRun } from './stored-run.js';
import type { GenWorkerOptions } from './worker-options.js';

/** What a worker works with. */
export interface Workplace {
  readonly options: GenWorkerOptions;
  readonly rules: RunRules;
  /** Refuses a call whose rate limit is full, instead of holding up the worker. */
  readonly client: GenClient;
  /** Waits for its rate limits, for what takes long anyway. */
  readonly uploader: GenClient;
  readonly notes: Notes;
  readonly queue: Queue<GenJobData, GenJobResult>;
  readonly clock: Clock;
  readonly turns: Turns;
  /** For how long a worker has a call to itself. */
  readonly lockMs: number;
  /** Aborts when the worker closes. */
  readonly closing: AbortSignal;
}

/** A call that a worker has. */
interface Work {
  readonly at: Workplace;
  readonly queueJob: GenQueueJob;
  readonly token: string | undefined;
}

/** Where a call stands, with what only this process knows: the job that was seen last, and the error of the last call. */
interface Standing {
  readonly run: RunState;
  readonly job?: Job;
  readonly error?: unknown;
}

/** How long a call sleeps that is handed on because its worker closes. */
const HANDED_ON_MS = 500;
/** How long to wait for a slot of a rate limit that does not say how long. */
const UNSAID_SLOT_MS = 3_000;

/** Works on a call until it sleeps or ends: does what `nextStep` says, and stores where the call stands. */
export function createProcessor(at: Workplace): (queueJob: GenQueueJob, token?: string) => Promise<GenJobResult> {
  return async (queueJob, token) => {
    const work = { at, queueJob, token };
    try {
      return await proceed(work);
    } catch (error) {
      // What was sent is repeated under its own key by the worker that takes the call up.
      if (at.closing.aborted && error === at.closing.reason) return sleep(work, HANDED_ON_MS);
      throw error;
    }
  };
}

async function proceed(work: Work): Promise<GenJobResult> {
  let standing = await wakeUp(work);
  for (;;) {
    const { step } = standing.run;
    if (step.type === 'wait') return sleep(work, step.ms);
    if (step.type === 'end') return end(work, standing.run, step.job);
    if (step.type === 'fail') return fail(work, standing.run, errorOf(standing, step));
    if (step.type === 'store') throw new GenError('A queued call does not store its file: onCompleted does.');
    work.at.closing.throwIfAborted();
    standing = step.type === 'create' ? await create(work, standing.run, step) : await read(work, standing.run, step);
  }
}

/** Where the call stands now that its sleep is over. */
async function wakeUp({ at, queueJob }: Work): Promise<Standing> {
  const recover = queueJob.data.recover ?? at.rules.recover;
  const run = loadRun(queueJob, { ...at.rules, recover });
  if (run.step.type !== 'wait') return { run };
  const { jobId } = run.step;
  const woken = jobId !== null && (await at.notes.takeWake(jobId));
  return { run: nextStep(run, { type: 'waited', woken, passedMs: passedMs({ at, queueJob }) }) };
}

/** Creates the service's job, and stores its id before anything else. */
async function create(work: Work, run: RunState, { key, model }: CreateStep): Promise<Standing> {
  const { at, queueJob } = work;
  await holdLock(work);
  const refused = await uploadOnce(work);
  if (refused !== undefined) return fail(work, run, refused);
  const { call, preflight, uploads } = queueJob.data;
  const params = withUploads(queueJob.data.params, uploads);
  const options = { signal: at.closing, preflight };
  const seen = await seeCall(async () => (await sendCreate(at.client, { call, params, key, model }, options)).job);
  // A process that was frozen meanwhile has lost the call to another one, and must not overwrite what that one has stored.
  await holdLock(work);
  const standing = await advance(work, run, inTurn(at, seen));
  const { job } = standing;
  if (job) {
    await at.notes.own(job.id, queueJob.id ?? '');
    await queueJob.log(`${job.id} was accepted under ${key}: ${job.quotedTokenCost ?? '?'} tokens.`);
  }
  return standing;
}

/** Uploads the files of the call and stores their ids, so that no later attempt does it again. Gives an error that lasts. */
async function uploadOnce({ at, queueJob }: Work): Promise<GenError | undefined> {
  const { data } = queueJob;
  if (data.files === undefined || data.uploads !== undefined) return undefined;
  const made = await uploadFiles(at.uploader, data, at.closing);
  if ('error' in made) return made.error;
  await queueJob.updateData({ ...data, uploads: made.uploads });
  return undefined;
}

async function read(work: Work, run: RunState, { jobId }: ReadStep): Promise<Standing> {
  const { at, queueJob } = work;
  // Written again, in case the process died between storing the id and writing the note.
  await at.notes.own(jobId, queueJob.id ?? '');
  return advance(work, run, await seeCall(() => at.client.jobs.get(jobId, { signal: at.closing })));
}

/** A create that finds its rate limit full comes back in a turn of its own. */
function inTurn({ turns, client }: Workplace, seen: SeenCall): SeenCall {
  const { event } = seen;
  if (event.type !== 'failed' || event.failure.kind !== 'full') return seen;
  const retryAfterMs = turns.next(event.failure.retryAfterMs ?? UNSAID_SLOT_MS, client.limits());
  return { ...seen, event: { ...event, failure: { ...event.failure, retryAfterMs } } };
}

/** Does what the rules say to what was seen, and stores it. The end of a call is stored when it has been told. */
async function advance(work: Work, run: RunState, { event, ...seen }: SeenCall): Promise<Standing> {
  const { at, queueJob } = work;
  const { pollIntervalMs } = at.options;
  const pollMs = pollIntervalMs ?? pollDelayMs(queueJob.data.call, await at.notes.owned(), at.client.limits());
  const next = nextStep({ ...run, rules: { ...run.rules, pollMs } }, { ...event, passedMs: passedMs(work) });
  if (next.step.type !== 'fail' && next.step.type !== 'end') await storeRun(work, next);
  if (seen.job) await queueJob.updateProgress(progressOf(seen.job));
  return { run: next, ...seen };
}

async function end(work: Work, run: RunState, job: Job): Promise<GenJobResult> {
  const { at, queueJob } = work;
  const outcome = { ...job, tries: run.tries };
  // A final job resolves, or throws its own error, without a call.
  const completed = await at.client.waitForJob(outcome).catch((error: unknown) => fail(work, run, error));
  // Stored first: when onCompleted throws, it is called again with this job and nothing else happens.
  await storeRun(work, run);
  await calling('onCompleted', () => at.options.onCompleted?.(completed, queueJob));
  await discardUploads(work, run);
  await at.notes.forget(job.id);
  return completed;
}

/** Ends the call with its error: kept in typed form with the queue job, and not tried again by the engine. */
async function fail(work: Work, run: RunState, error: unknown): Promise<never> {
  const { at, queueJob } = work;
  if (!GenError.isInstance(error)) throw error;
  await calling('onFailed', () => at.options.onFailed?.(error, queueJob));
  await discardUploads(work, run);
  await storeRun(work, run, error.toJSON());
  throw Object.assign(new UnrecoverableError(`${error.name}: ${error.message}`), { cause: error });
}

/** Deletes the uploads of a call that came to no job, which uploads them again when an operator has it tried again. */
async function discardUploads({ at, queueJob }: Work, { step, tries }: RunState): Promise<void> {
  const { files, uploads, cleanup, ...data } = queueJob.data;
  if (uploads === undefined) return;
  const isOver = tries.length > 0 && step.type === 'end' && cleanup === 'after-job';
  const isRefused = files !== undefined && step.type === 'fail' && step.reason !== 'timeout' && step.reason !== 'lost';
  if (!isOver && !isRefused) return;
  await deleteUploads(at.uploader, uploads);
  if (isRefused) await queueJob.updateData({ ...data, files, ...(cleanup && { cleanup }) });
}

/**
 * Calls something of the user's. Whatever it throws, the engine tries the queue job again; but an UnrecoverableError of the
 * engine's own says that it must not.
 */
async function calling(name: string, act: () => unknown): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (error instanceof UnrecoverableError) throw error;
    throw new Error(`${name} failed and is called again: ${reasonOf(error)}`, { cause: error });
  }
}

/** The error that ends a run without a final job. */
function errorOf({ run, job, error }: Standing, step: Extract<LastStep, { readonly type: 'fail' }>): unknown {
  if (step.reason === 'timeout') {
    const { message, jobId = '' } = step.error;
    return new WaitTimeoutError(message, { job, jobId, timeoutMs: run.rules.timeoutMs ?? 0 });
  }
  return error ?? revived(step.error);
}

/** An error whose call was made before the sleep, in this process or another. */
function revived({ name, message, ...fields }: GenErrorJson): GenError {
  return Object.assign(new GenError(message), { name, ...fields });
}

/** Leaves the call in the queue as a delayed job. A webhook that came while it was being worked on wakes it at once. */
async function sleep({ at, queueJob, token }: Work, ms: number): Promise<never> {
  await queueJob.moveToDelayed(at.clock.now() + ms, token);
  const { jobId } = queueJob.data;
  // Looked for after falling asleep: a note written later finds the call asleep and wakes it itself.
  if (jobId !== undefined && (await at.notes.woken(jobId))) await wakeCall(at.queue, queueJob.id ?? '');
  throw new DelayedError();
}

/** Makes sure that no other worker has taken the call up. */
async function holdLock({ at, queueJob, token }: Work): Promise<void> {
  if (token === undefined || (await queueJob.extendLock(token, at.lockMs))) return;
  throw new Error(
    `Another worker has taken up ${queueJob.id}: this one was out of reach for longer than lockDuration.`,
  );
}

/** Milliseconds since the call was stored. */
function passedMs({ at, queueJob }: Omit<Work, 'token'>): number {
  const { storedAt } = queueJob.data;
  return storedAt === undefined ? 0 : at.clock.now() - storedAt;
}
