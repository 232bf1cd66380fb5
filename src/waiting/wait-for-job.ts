import { GenError } from '../errors/index.js';
import { callFailure } from '../rules/fate.js';
import { DEFAULT_WAIT_MS } from '../rules/limits.js';
import { checkOptions } from '../rules/options.js';
import { nextStep } from '../rules/run.js';
import { type CreateStep, type Recover, type RunEvent, type RunRules, startRun } from '../rules/run-state.js';
import { type Clock, steady, systemClock } from '../runtime/clock.js';
import { sleep } from '../runtime/deadline.js';
import { isFields } from '../schemas/envelope.js';
import { type CompletedJob, type CreatedJob, isSettled, type Job } from '../schemas/job.js';
import { jobIn } from '../schemas/webhook-event.js';
import { lengthsOf } from '../store/facts.js';
import type { Store } from '../store/store.js';
import { type TraceChannel, traced, type WaitTrace } from '../transport/events.js';
import { createNotices, type JobNotice, type NoticesContext, noticeOf } from './notices.js';
import { type FollowContext, followJob, outcomeOf, type WaitPart, type WaitTarget } from './wait.js';
import { CREATE_AND_WAIT_OPTIONS, recoverRules, WAIT_OPTIONS, type WaitOptions } from './wait-options.js';
import { JobWatcher } from './watcher.js';

/** Where the one scheduler of an account is kept. */
export interface SharedState {
  shared<T extends object>(name: string, make: () => T): T;
}

/** What waiting needs of the client. */
export interface WaiterContext
  extends Omit<NoticesContext, 'clock' | 'store'>,
    Omit<FollowContext, 'clock' | 'watcher' | 'notices'> {
  /** What all clients of the account share. */
  readonly account: () => Promise<SharedState>;
  /** The store through which the processes of an account notify each other. */
  readonly store?: Store | undefined;
  /** @default the runtime's own */
  readonly clock?: Clock | undefined;
  /** Where the wait is traced, while somebody listens. */
  readonly waits?: (() => TraceChannel | undefined) | undefined;
}

/** Waits for jobs. All waits under one account share one scheduler. */
export interface Waiter {
  /** Resolves with the final job; see {@link WaitOptions}. */
  waitForJob(job: Job | string, options: WaitOptions & { readonly throwOnFailure: false }): Promise<Job>;
  waitForJob(job: Job | string, options?: WaitOptions): Promise<CompletedJob>;
  /** The wait as a part of a longer call, whose options are checked. */
  follow(target: WaitTarget, part: WaitPart): Promise<Job>;
  /** Notifies the waits on the event's job. */
  notify(event: JobNotice): void;
  /** For what waits between two calls. */
  readonly clock: Clock;
}

/** Copies of the package share the scheduler by this name. */
const WATCHER = 'waits';

/** Makes the waiting of one client. */
export function createWaiter(given: WaiterContext): Waiter {
  const { clock = systemClock, account, waits, store } = given;
  const notices = store && createNotices({ ...given, clock, store });
  const watcher = async () => {
    const state = await account();
    return state.shared(WATCHER, () => new JobWatcher(clock, undefined, lengthsOf(state)));
  };
  const context = { ...given, clock, notices, watcher };
  function follow(target: WaitTarget, part: WaitPart): Promise<CompletedJob> {
    const channel = waits?.();
    if (!channel) return followJob(context, target, part);
    const trace: WaitTrace = { jobId: target.id };
    // A job that failed is not a wait that failed.
    const wait = traced(channel, trace, () => followJob(context, target, { ...part, throwOnFailure: false }));
    return wait.then((job) => outcomeOf(job, part.throwOnFailure));
  }
  return {
    clock,
    follow,
    // Not an async function, whose frame would be half a kilobyte for each of thousands of waits.
    waitForJob(job: Job | string, options: WaitOptions = {}): Promise<CompletedJob> {
      try {
        const target = targetOf(job);
        checkOptions('waitForJob', WAIT_OPTIONS, options);
        const { throwOnFailure, timeoutMs = DEFAULT_WAIT_MS, signal } = options;
        signal?.throwIfAborted();
        if (target.job && isSettled(target.job)) return Promise.resolve(outcomeOf(target.job, throwOnFailure));
        const leftMs = timeoutMs === false ? Number.POSITIVE_INFINITY : timeoutMs;
        return follow(target, { options, leftMs, timeoutMs: leftMs, throwOnFailure });
      } catch (error) {
        return Promise.reject(error);
      }
    },
    notify(event) {
      const notice = noticeOf(event, given.baseUrl?.());
      if (!notice) return;
      notices?.publish(event);
      const job = jobIn(event);
      watcher().then(
        (scheduler) => {
          if (!scheduler.notify(notice) && job) given.announced?.({ id: job.id, status: job.status });
        },
        // Without a key there are no waits.
        () => {},
      );
    },
  };
}

/** The job that a wait is for. Throws a GenError for anything but a job or an id. */
function targetOf(target: unknown): WaitTarget {
  if (typeof target === 'string' && target) return { id: target, job: undefined };
  const { id, status, job, then } = isFields(target) ? target : {};
  if (typeof id === 'string' && id) return { id, job: typeof status === 'string' ? (target as Job) : undefined };
  const hint = then !== undefined ? ' Await the create first.' : '';
  const created = job !== undefined || then !== undefined;
  throw new GenError(
    `waitForJob takes a job or its id.${hint}${created ? ' Pass the `job` of what create returns: waitForJob(created.job).' : ''}`,
  );
}

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
  { create, key, shortKey, waiter }: CreateAndWaitPorts,
  options: CreateAndWaitOptions = {},
): Promise<CompletedJob> {
  checkOptions('createAndWait', CREATE_AND_WAIT_OPTIONS, options);
  const { signal, onCreated, timeoutMs = DEFAULT_WAIT_MS } = options;
  const clock = steady(waiter.clock);
  let sinceMs = clock.now();
  let created: CreatedJob | undefined;
  let lastError: unknown;
  let run = startRun({ key, shortKey, rules: runRulesOf(options) });
  for (;;) {
    const { step } = run;
    let event: RunEvent;
    if (step.type === 'end') return outcomeOf({ ...step.job, tries: run.tries }, options.throwOnFailure);
    if (step.type === 'fail') throw lastError;
    if (step.type === 'create') {
      try {
        created = await create(step);
        event = { type: 'job', job: created.job };
      } catch (error) {
        const failure = callFailure(error);
        if (failure === undefined) throw error;
        lastError = error;
        event = { type: 'failed', failure };
      }
    } else if (step.type !== 'wait') {
      // A run that does not store files has no other step than a wait.
      throw new TypeError(`createAndWait does not ${step.type}`);
    } else if (step.jobId === null) {
      await sleep(clock, step.ms, signal);
      event = { type: 'waited', woken: false };
    } else {
      signal?.throwIfAborted();
      // The run alone counts the time: the wait lasts as long as the run says is left.
      const leftMs = step.leftMs === null ? Number.POSITIVE_INFINITY : step.leftMs - (clock.now() - sinceMs);
      const part = { options, leftMs: Math.max(1, leftMs), timeoutMs: Number(timeoutMs), throwOnFailure: false };
      // The scheduler of waits reads the job, so a wait ends with the final job.
      event = { type: 'job', job: await waiter.follow({ id: step.jobId, job: created?.job }, part) };
    }
    const now = clock.now();
    run = nextStep(run, { ...event, passedMs: now - sinceMs });
    sinceMs = now;
    if (step.type === 'create' && event.type === 'job' && created) await onCreated?.(created);
  }
}

function runRulesOf({ timeoutMs = DEFAULT_WAIT_MS, resubmitPending = true, recover }: CreateAndWaitOptions): RunRules {
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
