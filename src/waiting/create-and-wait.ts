import { checkOptions } from '../options.js';
import { callFailure } from '../rules/fate.js';
import { DEFAULT_WAIT_MS } from '../rules/limits.js';
import { nextStep } from '../rules/run.js';
import {
  type CreateStep,
  type JobRunState,
  type Recover,
  type RunEvent,
  type RunRules,
  startRun,
} from '../rules/run-state.js';
import { steady } from '../runtime/clock.js';
import { sleep } from '../runtime/deadline.js';
import type { CompletedJob, CreatedJob, Job } from '../schemas/job.js';
import { outcomeOf, type Waiter } from './wait-for-job.js';
import { CREATE_AND_WAIT_OPTIONS, recoverRules, type WaitOptions } from './wait-options.js';

/** How to wait for a job that a call creates. */
export interface CreateAndWaitOptions extends WaitOptions {
  /** Key of the first create. The same call under the same key takes up a crashed run. @default a fresh UUID */
  readonly idempotencyKey?: string | undefined;
  /**
   * Called each time the service has accepted a job, and awaited before the wait: the place to note its id. What it throws
   * ends the call; the job goes on.
   */
  readonly onCreated?: ((created: CreatedJob) => unknown) | undefined;
  /**
   * Whether what waits for the review of a reference or a character is sent again: a job that failed with
   * `reference_asset_pending`, and a create refused with `character_pending`. It is sent when the service says so, at most
   * 20 times and within `timeoutMs`.
   * @default true
   */
  readonly resubmitPending?: boolean | undefined;
  /**
   * How to go on after a failed job, by its error code: a number of further tries, or one try with each of some models.
   * Each try is a job of its own under a key derived from the first; `tries` on the result lists them. `timeoutMs` is for
   * all of them. When no try is left, the call throws the error of the last one.
   * @default {}: a failed job ends the call
   * @example { generation_timeout: 2, generation_unavailable: { models: ['svc-video-mini'] } }
   */
  readonly recover?: Recover | undefined;
}

/** What `createAndWait` needs of the client. */
export interface CreateAndWaitPorts {
  /** Sends the create under the key of the step, with its model. */
  readonly create: (step: CreateStep) => Promise<CreatedJob>;
  /** The key of the first create. */
  readonly key: string;
  /** Stands for a key that is too long to be extended. */
  readonly shortKey: string;
  readonly waiter: Waiter;
}

/**
 * Creates a job and waits for its end, over pending references, characters under review and the failures that `recover`
 * names. `timeoutMs` counts from the service's first answer.
 *
 * Every key is derived from the first, so a crashed program that repeats its call comes to the jobs it has made already.
 */
export async function createAndWait(
  ports: CreateAndWaitPorts,
  options: CreateAndWaitOptions = {},
): Promise<CompletedJob> {
  checkOptions('createAndWait', CREATE_AND_WAIT_OPTIONS, options);
  const { timeoutMs = DEFAULT_WAIT_MS, resubmitPending = true } = options;
  const rules: RunRules = {
    timeoutMs: timeoutMs === false ? null : timeoutMs,
    resubmitPending,
    recover: recoverRules(options.recover),
    // The transport has retried whatever may be retried.
    persistent: false,
    stores: false,
    pollMs: null,
    retryMs: null,
  };
  const perform = createDriver(ports, options);
  let run = startRun({ key: ports.key, shortKey: ports.shortKey, rules });
  while (run.step.type !== 'end') run = nextStep(run, await perform(run));
  return outcomeOf({ ...run.step.job, tries: run.tries }, options.throwOnFailure);
}

/**
 * Does the steps of a run in this process. The scheduler of waits reads the job, so a wait ends with the final job. The run
 * alone counts the time: a wait lasts as long as the run says is left.
 */
function createDriver({ create, waiter }: CreateAndWaitPorts, options: CreateAndWaitOptions) {
  const { signal, pollIntervalMs, onUpdate, onCreated, settleOn, timeoutMs: limitMs = DEFAULT_WAIT_MS } = options;
  const waits = { signal, pollIntervalMs, onUpdate, settleOn };
  const clock = steady(waiter.clock);
  let lastError: unknown;
  let job: Job | undefined;
  let since = clock.now();
  /** Milliseconds since it was last asked. */
  const passedMs = () => {
    const before = since;
    since = clock.now();
    return since - before;
  };

  async function send(step: CreateStep): Promise<RunEvent> {
    let created: CreatedJob;
    try {
      created = await create(step);
    } catch (error) {
      const failure = callFailure(error);
      if (failure === undefined) throw error;
      lastError = error;
      return { type: 'failed', failure, passedMs: passedMs() };
    }
    job = created.job;
    const event: RunEvent = { type: 'job', job, passedMs: passedMs() };
    await onCreated?.(created);
    return event;
  }

  async function follow(id: string, leftMs: number | null): Promise<RunEvent> {
    const left = leftMs === null ? Number.POSITIVE_INFINITY : Math.max(1, leftMs - (clock.now() - since));
    signal?.throwIfAborted();
    const part = { options: waits, leftMs: left, timeoutMs: Number(limitMs), throwOnFailure: false };
    return { type: 'job', job: await waiter.follow({ id, job }, part), passedMs: passedMs() };
  }

  return async ({ step }: JobRunState): Promise<RunEvent> => {
    if (step.type === 'create') return send(step);
    if (step.type === 'fail') throw lastError;
    // A run that does not store files has no other step than a wait.
    if (step.type !== 'wait') throw new TypeError(`createAndWait does not ${step.type}`);
    if (step.jobId !== null) return follow(step.jobId, step.leftMs);
    await sleep(clock, step.ms, signal);
    return { type: 'waited', woken: false, passedMs: passedMs() };
  };
}
