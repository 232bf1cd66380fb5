// A create and the wait for its end, as one run: of a call, or of what a crash has left of one.
import { withKey } from '../errors/gen-error.js';
import { GenError, JobError, WaitTimeoutError } from '../errors/index.js';
import { callFailure, mayHaveCreated } from '../rules/failure-kind.js';
import { DEFAULT_WAIT_MS } from '../rules/limits.js';
import { checkOptions } from '../rules/options.js';
import { requireParams } from '../rules/preflight.js';
import { nextStep } from '../rules/run.js';
import {
  type CreateStep,
  type JobRunState,
  type RunEvent,
  type RunRules,
  type RunStep,
  startRun,
} from '../rules/run-state.js';
import { nextTurn, steady, systemClock } from '../runtime/clock.js';
import { sleep, startDeadline } from '../runtime/deadline.js';
import { isFields } from '../schemas/envelope.js';
import type { CompletedJob, CreatedJob, Job } from '../schemas/job.js';
import { type ClaimedCreate, type CreateRun, endRun, saveRun } from '../transport/create-run.js';
import { idempotencyKeyOf, shortenKey } from '../transport/idempotency.js';
import type { JsonRequest } from '../transport/transport.js';
import { outcomeOf } from '../waiting/wait.js';
import { recoverRules } from '../waiting/wait-options.js';
import { CREATE_AND_WAIT_OPTIONS, type CreateOptions } from './create-options.js';
import { createRequest, filesInBody, type JobMaker, leaveFiles } from './endpoint.js';

/** Creates a job and waits for it. The keys of the run replace one that stands in the body. */
export async function runJob(maker: JobMaker, request: JsonRequest<CreatedJob>, options: CreateOptions): Promise<Job> {
  const { transport, uploads } = maker;
  requireParams(request.body);
  const { idempotency_key: ownKey, ...body } = isFields(request.body) ? request.body : {};
  // A key that cannot be right is refused, and never left out.
  const key = idempotencyKeyOf(options.idempotencyKey, request.body, transport.random);
  const files = filesInBody(uploads, request);
  const hasOwnKey = (options.idempotencyKey ?? ownKey) !== undefined;
  const rules = runRulesOf(options);
  const run: CreateRun = { key, rules, hasOwnKey, opened: [] };
  // Whether a job may be running that uses the files.
  let mayRun = false;
  const failed = async (error: unknown, wasSent: boolean) => {
    mayRun = wasSent && mayHaveCreated(error);
  };
  const done = () => {
    mayRun = true;
  };
  const state = startRun({ key, shortKey: shortenKey(key), rules });
  try {
    const job = await drive(
      maker,
      { ...request, body, files: files && { ...files, done, failed }, run },
      state,
      options,
    );
    if (options.cleanup === 'after-job') await files?.remove();
    else files?.keep();
    await endRun(run, true);
    return job;
  } catch (error) {
    if (!JobError.isInstance(error)) await leaveFiles(files, error, mayRun);
    else if (options.cleanup === 'after-job') await files?.remove();
    else files?.keep();
    // The entry ends once the program has the outcome: one that dies before gets it again.
    if (isJobOutcome(error)) void nextTurn().then(() => endRun(run, true));
    else await endRun(run, !WaitTimeoutError.isInstance(error) && !mayHaveCreated(error), options.signal);
    throw withKey(error, key);
  }
}

export interface ResumedRun extends Pick<CreateOptions, 'signal' | 'pollIntervalMs' | 'onUpdate'> {
  /** Milliseconds for the rest of the run; false for no limit. */
  readonly timeoutMs: number | false;
}

/** Goes on with the run of a create that a process has left. Resolves with its final job, whatever its status. */
export async function resumeRunOf(maker: JobMaker, claimed: ClaimedCreate, options: ResumedRun): Promise<Job> {
  const { call, key, label, params, rules, state, create } = claimed;
  const run: CreateRun = { key, rules, hasOwnKey: false, opened: [create], isResumed: true };
  // The rules have looked at the params when the create was first sent.
  const known = { label, preflight: false, throwOnFailure: false };
  try {
    if (params === null) throw filesGone(claimed);
    return await drive(maker, { ...createRequest(call, params), run }, state, { ...options, ...known });
  } finally {
    await endRun(run, false, options.signal);
  }
}

function isJobOutcome(error: unknown): boolean {
  return JobError.isInstance(error) && error.name !== 'WaitTimeoutError';
}

function filesGone({ key, call, label }: ClaimedCreate): GenError {
  const named = label === undefined ? '' : ` with the label "${label}"`;
  return new GenError(
    `The ${call}.create under the key "${key}"${named} was not sent: its process ended before its files were uploaded. Call it again.`,
    { recovery: 'retry' },
  );
}

function runRulesOf({ timeoutMs = DEFAULT_WAIT_MS, resubmitPending = true, recover }: CreateOptions): RunRules {
  return {
    timeoutMs: timeoutMs === false ? null : timeoutMs,
    resubmitPending,
    recover: recoverRules(recover),
    // The transport has retried whatever may be retried.
    persistent: false,
    stores: false,
    pollMs: null,
    retryMs: null,
  };
}

type RunRequest = JsonRequest<CreatedJob> & { readonly run: CreateRun };

/**
 * Does what the run asks for until it ends. `timeoutMs` counts from the service's first answer. Every key is derived from the
 * first, so a crashed program that repeats its call comes to the jobs it has made already. All creates are traced until the
 * run is over.
 */
async function drive(
  { transport, jobWaits }: JobMaker,
  request: RunRequest,
  begun: JobRunState,
  options: CreateOptions,
): Promise<CompletedJob> {
  checkOptions('createAndWait', CREATE_AND_WAIT_OPTIONS, options);
  const { signal, onCreated, timeoutMs = DEFAULT_WAIT_MS } = options;
  const clock = steady(jobWaits.clock);
  let endTrace = () => {};
  const waits = new Promise<void>((resolve) => {
    endTrace = resolve;
  });
  let state = begun;
  let sinceMs = clock.now();
  let created: CreatedJob | undefined;
  let lastError: unknown;
  const perform = async (step: RunStep): Promise<RunEvent> => {
    if (step.type === 'create') {
      try {
        created = await transport.send(requestOf(request, step, waits), {
          ...callOptions(options),
          idempotencyKey: step.key,
        });
        return { type: 'job', job: created.job };
      } catch (error) {
        const failure = callFailure(error);
        if (failure === undefined) throw error;
        lastError = error;
        return { type: 'failed', failure };
      }
    }
    // A run that does not store files has no other step than a wait.
    if (step.type !== 'wait') throw new TypeError(`createAndWait does not ${step.type}`);
    if (step.jobId === null) {
      await sleep(clock, step.ms, signal);
      return { type: 'waited', woken: false };
    }
    signal?.throwIfAborted();
    // The run alone counts the time: the wait lasts as long as the run says is left.
    const leftMs = step.leftMs === null ? Number.POSITIVE_INFINITY : step.leftMs - (clock.now() - sinceMs);
    const target = {
      id: step.jobId,
      job: created?.job,
      options,
      leftMs: Math.max(1, leftMs),
      timeoutMs: Number(timeoutMs),
    };
    return { type: 'job', job: await jobWaits.follow(target) };
  };
  try {
    for (;;) {
      const { step } = state;
      if (step.type === 'end') {
        const cause = step.refusal && lastError;
        return outcomeOf({ ...step.job, tries: state.tries }, options.throwOnFailure, cause);
      }
      if (step.type === 'fail') throw lastError;
      const event = await perform(step);
      const now = clock.now();
      state = nextStep(state, { ...event, passedMs: now - sinceMs });
      sinceMs = now;
      if (isPause(state)) await saveRun(request.run, state, signal);
      if (step.type === 'create' && event.type === 'job' && created && onCreated) {
        const leftMs = state.step.type === 'wait' ? state.step.leftMs : timeoutMs || null;
        await tellCreated(created, onCreated, { signal, leftMs, timeoutMs: Number(timeoutMs) });
      }
    }
  } finally {
    endTrace();
  }
}

function requestOf(request: RunRequest, { model, isSecondKey }: CreateStep, waits: Promise<void>): RunRequest {
  const body = model === null || !isFields(request.body) ? request.body : { ...request.body, model };
  return { ...request, body, waits, options: 'checked', ...(isSecondKey && { neverWaits: true }) };
}

function callOptions(options: CreateOptions) {
  const { signal, maxRetries, headers, extraBody, preflight, budget, onUploadProgress, label } = options;
  return { signal, maxRetries, headers, extraBody, preflight, budget, onUploadProgress, label };
}

function isPause({ step }: JobRunState): boolean {
  return step.type === 'create' || (step.type === 'wait' && step.jobId === null);
}

/** Awaits `onCreated` for no longer than the call may last: a database that hangs must not hold up a paid create for ever. */
async function tellCreated(
  created: CreatedJob,
  onCreated: (created: CreatedJob) => unknown,
  call: { signal: AbortSignal | undefined; leftMs: number | null; timeoutMs: number },
): Promise<void> {
  const { job } = created;
  const { signal, leftMs, timeoutMs } = call;
  const message = `onCreated did not settle within ${timeoutMs} ms (timeoutMs). Job ${job.id} continues: wait for it by its ID.`;
  const late = () => new WaitTimeoutError(message, { job, jobId: job.id, timeoutMs });
  // What a program does takes real time, also under the clock of a sandbox.
  const deadline = startDeadline({ clock: systemClock, ms: leftMs ?? Number.POSITIVE_INFINITY, signal, late });
  try {
    await deadline.race(Promise.resolve(onCreated(created)));
  } finally {
    deadline.end();
  }
}
