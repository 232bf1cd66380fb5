// Executes a run's steps in this process: sends its creates, and waits for their jobs.
import { WaitTimeoutError } from '../errors/index.js';
import { callFailure } from '../rules/failure-kind.js';
import { DEFAULT_WAIT_MS } from '../rules/limits.js';
import { nextStep } from '../rules/run.js';
import type { CreateStep, JobRunState, RunEvent, WaitStep } from '../rules/run-state.js';
import { type SteadyClock, steady, systemClock } from '../runtime/clock.js';
import { sleep, startDeadline } from '../runtime/deadline.js';
import { isFields } from '../schemas/envelope.js';
import type { CompletedJob, CreatedJob } from '../schemas/job.js';
import { type CreateRun, saveRun } from '../transport/create-run.js';
import type { JsonRequest } from '../transport/transport.js';
import { outcomeOf } from '../waiting/wait.js';
import type { CreateOptions } from './create-options.js';
import type { CreateDependencies } from './endpoint.js';

export type RunRequest = JsonRequest<CreatedJob> & { readonly run: CreateRun };

/**
 * Executes a run until it ends. The timeout starts with the service's first response. All keys are derived from the first, so a
 * program that repeats the call after a crash finds the same jobs. The creates are traced until the run ends.
 */
export async function executeRun(
  dependencies: CreateDependencies,
  request: RunRequest,
  state: JobRunState,
  options: CreateOptions,
): Promise<CompletedJob> {
  let endTrace = () => {};
  const waits = new Promise<void>((resolve) => {
    endTrace = resolve;
  });
  try {
    return await new RunExecution(dependencies, { ...request, waits }, options).execute(state);
  } finally {
    endTrace();
  }
}

class RunExecution {
  readonly #dependencies: CreateDependencies;
  readonly #request: RunRequest;
  readonly #options: CreateOptions;
  readonly #clock: SteadyClock;
  /** Time of the last event. */
  #sinceMs: number;
  #created: CreatedJob | undefined;
  #lastError: unknown;

  constructor(dependencies: CreateDependencies, request: RunRequest, options: CreateOptions) {
    this.#dependencies = dependencies;
    this.#request = request;
    this.#options = options;
    this.#clock = steady(dependencies.jobWaits.clock);
    this.#sinceMs = this.#clock.now();
  }

  async execute(initialState: JobRunState): Promise<CompletedJob> {
    const { signal, throwOnFailure } = this.#options;
    for (let state = initialState; ; ) {
      const { step, tries } = state;
      if (step.type === 'end')
        return outcomeOf({ ...step.job, tries }, throwOnFailure, step.refusal && this.#lastError);
      if (step.type === 'fail') throw this.#lastError;
      // A run that doesn't store files only creates and waits.
      if (step.type !== 'create' && step.type !== 'wait') throw new TypeError(`createAndWait does not ${step.type}`);
      const event = await (step.type === 'create' ? this.#create(step) : this.#wait(step));
      const nowMs = this.#clock.now();
      state = nextStep(state, { ...event, passedMs: nowMs - this.#sinceMs });
      this.#sinceMs = nowMs;
      if (isPause(state)) await saveRun(this.#request.run, state, signal);
      if (step.type === 'create' && event.type === 'job') await this.#reportCreated(state);
    }
  }

  async #create({ key, model, isSecondKey }: CreateStep): Promise<RunEvent> {
    const { body } = this.#request;
    const request: RunRequest = {
      ...this.#request,
      body: model !== null && isFields(body) ? { ...body, model } : body,
      options: 'checked',
      ...(isSecondKey && { neverWaits: true }),
    };
    try {
      const call = { ...callOptions(this.#options), idempotencyKey: key };
      this.#created = await this.#dependencies.transport.send(request, call);
      return { type: 'job', job: this.#created.job };
    } catch (error) {
      const failure = callFailure(error);
      if (failure === undefined) throw error;
      this.#lastError = error;
      return { type: 'failed', failure };
    }
  }

  async #wait({ jobId: id, ms, leftMs }: WaitStep): Promise<RunEvent> {
    const options = this.#options;
    const { signal, timeoutMs = DEFAULT_WAIT_MS } = options;
    if (id === null) {
      await sleep(this.#clock, ms, signal);
      return { type: 'waited', woken: false };
    }
    signal?.throwIfAborted();
    const passedMs = this.#clock.now() - this.#sinceMs;
    const remainingMs = leftMs === null ? Number.POSITIVE_INFINITY : Math.max(1, leftMs - passedMs);
    const target = { id, job: this.#created?.job, options, leftMs: remainingMs, timeoutMs: Number(timeoutMs) };
    return { type: 'job', job: await this.#dependencies.jobWaits.follow(target) };
  }

  /** Awaits `onCreated`, at most until the call's deadline, so that a hanging database can't block a paid job. */
  async #reportCreated({ step }: JobRunState): Promise<void> {
    const { onCreated, signal, timeoutMs = DEFAULT_WAIT_MS } = this.#options;
    const created = this.#created;
    if (!created || !onCreated) return;
    const { job } = created;
    const message = `onCreated did not settle within ${timeoutMs} ms (timeoutMs). Job ${job.id} continues. Wait for it by its ID.`;
    const late = () => new WaitTimeoutError(message, { job, jobId: job.id, timeoutMs: Number(timeoutMs) });
    const leftMs = step.type === 'wait' ? step.leftMs : timeoutMs || null;
    // The callback's work takes real time, even with a sandbox's clock.
    const deadline = startDeadline({ clock: systemClock, ms: leftMs ?? Number.POSITIVE_INFINITY, signal, late });
    try {
      await deadline.race(Promise.resolve(onCreated(created)));
    } finally {
      deadline.end();
    }
  }
}

function callOptions(options: CreateOptions) {
  const { signal, maxRetries, headers, extraBody, preflight, budget, onUploadProgress, label } = options;
  return { signal, maxRetries, headers, extraBody, preflight, budget, onUploadProgress, label };
}

function isPause({ step }: JobRunState): boolean {
  return step.type === 'create' || (step.type === 'wait' && step.jobId === null);
}
