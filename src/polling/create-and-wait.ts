import { sleep, steady } from '../clock.js';
import { WaitTimeoutError } from '../errors/index.js';
import { checkOptions } from '../options.js';
import type { CreatedJob } from '../schemas/created-job.js';
import type { CompletedJob, Job } from '../schemas/job.js';
import { callFailure } from './call-failure.js';
import { nextStep } from './next-step.js';
import { recoverRules } from './recover-options.js';
import {
  type CreateStep,
  type LastStep,
  type Recover,
  type RunEvent,
  type RunRules,
  type RunStep,
  startRun,
} from './run-state.js';
import { DEFAULT_TIMEOUT_MS, timedOut, type Waiter } from './wait-for-job.js';
import { CREATE_AND_WAIT_OPTIONS, type WaitOptions } from './wait-options.js';

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
   * Each try is a job of its own under a key derived from the first; `tries` on the result tells them. `timeoutMs` is for
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
  /** Makes a key of fixed length of one that is too long to be extended. */
  readonly shortenKey: (key: string) => string;
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
  const { timeoutMs = DEFAULT_TIMEOUT_MS, resubmitPending = true, idempotencyKey: key = crypto.randomUUID() } = options;
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
  const { perform, lastError } = createDriver(ports, options);
  let run = startRun({ key, shortKey: ports.shortenKey(key), rules });
  for (;;) {
    const { step, tries } = run;
    if (step.type === 'fail') throw lastError();
    if (step.type === 'end') {
      const { signal, throwOnFailure } = options;
      // A final job costs no read: this gives it, or its error, as the options say.
      return ports.waiter.waitForJob({ ...step.job, tries }, { signal, throwOnFailure }) as Promise<CompletedJob>;
    }
    run = nextStep(run, await perform(step));
  }
}

interface Driver {
  readonly perform: (step: Exclude<RunStep, LastStep>) => Promise<RunEvent>;
  /** What the last call that failed was rejected with. */
  readonly lastError: () => unknown;
}

/** Does the steps of a run in this process. The scheduler of waits reads the job, so a wait ends with the final job. */
function createDriver({ create, waiter }: CreateAndWaitPorts, options: CreateAndWaitOptions): Driver {
  const { signal, pollIntervalMs, onUpdate, onCreated, timeoutMs: limitMs = DEFAULT_TIMEOUT_MS } = options;
  /** The limit that is told is that of the whole call, of which the last wait had what was left. */
  const ofWholeCall = (error: unknown) => {
    if (!WaitTimeoutError.isInstance(error)) throw error;
    const { jobId: id, job, cause } = error;
    throw timedOut({ id, job, cause, timeoutMs: Number(limitMs) });
  };
  const clock = steady(waiter.clock);
  let last: { readonly job?: Job; readonly error?: unknown } = {};
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
      last = { error };
      return { type: 'failed', failure, passedMs: passedMs() };
    }
    last = { job: created.job };
    const event: RunEvent = { type: 'job', job: created.job, passedMs: passedMs() };
    await onCreated?.(created);
    return event;
  }

  async function follow(jobId: string, leftMs: number | null): Promise<RunEvent> {
    const timeoutMs = leftMs === null ? false : Math.max(1, leftMs - (clock.now() - since));
    const waits = { signal, pollIntervalMs, onUpdate, timeoutMs, throwOnFailure: false } as const;
    const job = await waiter.waitForJob(last.job ?? jobId, waits).catch(ofWholeCall);
    return { type: 'job', job, passedMs: passedMs() };
  }

  return {
    lastError: () => last.error,
    async perform(step) {
      if (step.type === 'create') return send(step);
      if (step.type === 'read') return follow(step.jobId, null);
      if (step.type === 'store') return { type: 'stored' };
      if (step.jobId !== null) return follow(step.jobId, step.leftMs);
      await sleep(clock, step.ms, signal);
      return { type: 'waited', woken: false, passedMs: passedMs() };
    },
  };
}
