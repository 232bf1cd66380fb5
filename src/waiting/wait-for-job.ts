import { GenError, WaitTimeoutError } from '../errors/index.js';
import { callFailure } from '../rules/fate.js';
import { DEFAULT_WAIT_MS } from '../rules/limits.js';
import { checkOptions } from '../rules/options.js';
import { nextStep } from '../rules/run.js';
import {
  type CreateStep,
  type JobRunState,
  type Recover,
  type RunEvent,
  type RunRules,
  startRun,
} from '../rules/run-state.js';
import { type Clock, nextTurn, steady, systemClock } from '../runtime/clock.js';
import { sleep, startDeadline } from '../runtime/deadline.js';
import { keepLast } from '../runtime/keep-last.js';
import { isFields } from '../schemas/envelope.js';
import { type CompletedJob, type CreatedJob, isSettled, type Job } from '../schemas/job.js';
import { jobIn } from '../schemas/webhook-event.js';
import { lengthsOf } from '../store/facts.js';
import type { Store } from '../store/store.js';
import { type TraceChannel, traced, type WaitTrace } from '../transport/events.js';
import { createNotices, type JobNotice, type NoticesContext, noticeOf } from './notices.js';
import type { ReadLimits } from './read-queue.js';
import { type FollowContext, followJob, outcomeOf, type WaitPart, type WaitTarget } from './wait.js';
import { CREATE_AND_WAIT_OPTIONS, recoverRules, WAIT_OPTIONS, type WaitOptions } from './wait-options.js';
import { JobWatcher } from './watcher.js';

/** What the scheduler needs of an account. */
export interface SharedState {
  readonly id?: string;
  shared<T extends object>(name: string, make: () => T): T;
}

/** What waiting needs of the client. */
export interface WaiterContext<Account extends SharedState = SharedState>
  extends Omit<NoticesContext, 'clock' | 'store'>,
    Omit<FollowContext, 'clock' | 'watcher' | 'notices'> {
  /** What all clients of the account share. */
  readonly account: () => Promise<Account>;
  /** The rate limits that the reads of an account go through. @default the documented limit */
  readonly limits?: ((account: Account) => ReadLimits) | undefined;
  /** Whether the account is known only when a key function was asked. */
  readonly asksAccount?: boolean | undefined;
  /** A wait has thrown the outcome of a job that did not complete. */
  readonly handedOver?: ((jobId: string) => Promise<void>) | undefined;
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

/** Accounts whose waits one client notifies: a key function may give the key of each tenant. */
const MOST_ACCOUNTS = 1_000;

/** Makes the waiting of one client. */
export function createWaiter<Account extends SharedState>(given: WaiterContext<Account>): Waiter {
  const { clock = systemClock, account, waits, store, handedOver } = given;
  const notices = store && createNotices({ ...given, clock, store });
  const used = new Map<string, JobWatcher>();
  const watcher = async () => {
    const state = await account();
    const scheduler = state.shared(WATCHER, () => new JobWatcher(clock, undefined, lengthsOf(state)));
    keepLast(used, state.id ?? '', scheduler, MOST_ACCOUNTS);
    return { watcher: scheduler, limits: given.limits?.(state) ?? 'documented' };
  };
  // Whose job it is, an event does not say.
  const schedulers = async () => (given.asksAccount ? [...used.values()] : [(await watcher()).watcher]);
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
        const leftMs = timeoutMs === false ? Number.POSITIVE_INFINITY : timeoutMs;
        const part = { options, leftMs, timeoutMs: leftMs, throwOnFailure };
        const isOver = target.job && isSettled(target.job);
        if (handedOver) {
          const ended = isOver ? Promise.resolve(target.job) : follow(target, { ...part, throwOnFailure: false });
          return toldOutcome(ended, handedOver, throwOnFailure);
        }
        return isOver ? Promise.resolve(outcomeOf(target.job, throwOnFailure)) : follow(target, part);
      } catch (error) {
        return Promise.reject(error);
      }
    },
    notify(event) {
      const notice = noticeOf(event, given.baseUrl?.());
      if (!notice) return;
      notices?.publish(event);
      const job = jobIn(event);
      schedulers().then(
        (all) => {
          const isAwaited = all.map((scheduler) => scheduler.notify(notice)).some(Boolean);
          if (!isAwaited && job) given.announced?.({ id: job.id, status: job.status });
        },
        // Without a key there are no waits.
        () => {},
      );
    },
  };
}

/** The outcome of a wait. That the program has it is noted afterwards: one that dies before gets it again. */
async function toldOutcome(
  wait: Promise<Job>,
  handedOver: (jobId: string) => Promise<void>,
  throws: boolean | undefined,
): Promise<CompletedJob> {
  const job = await wait;
  if (job.status !== 'completed') void nextTurn().then(() => handedOver(job.id));
  return outcomeOf(job, throws);
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
   * ends the call, and so do an abort and `timeoutMs` while it runs; the job goes on.
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
  /** Where the run goes on, for one that is resumed. */
  readonly run?: JobRunState | undefined;
  /** Told where the run stands before it pauses or creates again. */
  readonly keep?: ((run: JobRunState) => Promise<void>) | undefined;
}

/**
 * Creates a job and waits for its end, over pending references, characters under review and the failures that `recover`
 * names. `timeoutMs` counts from the service's first answer.
 *
 * Every key is derived from the first, so a crashed program that repeats its call comes to the jobs it has made already.
 */
export async function createAndWait(
  { create, key, shortKey, waiter, run: begun, keep }: CreateAndWaitPorts,
  options: CreateAndWaitOptions = {},
): Promise<CompletedJob> {
  checkOptions('createAndWait', CREATE_AND_WAIT_OPTIONS, options);
  const { signal, onCreated, timeoutMs = DEFAULT_WAIT_MS } = options;
  const clock = steady(waiter.clock);
  let sinceMs = clock.now();
  let created: CreatedJob | undefined;
  let lastError: unknown;
  let run = begun ?? startRun({ key, shortKey, rules: runRulesOf(options) });
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
    if (keep && isPause(run)) await keep(run);
    if (step.type === 'create' && event.type === 'job' && created && onCreated) {
      const leftMs = run.step.type === 'wait' ? run.step.leftMs : timeoutMs || null;
      await tellCreated(created, onCreated, { signal, leftMs, timeoutMs: Number(timeoutMs) });
    }
  }
}

/** Awaits `onCreated` for no longer than the call may last: a database that hangs must not hold up a paid create for ever. */
async function tellCreated(
  created: CreatedJob,
  onCreated: (created: CreatedJob) => unknown,
  call: { signal: AbortSignal | undefined; leftMs: number | null; timeoutMs: number },
): Promise<void> {
  const { job } = created;
  const { signal, leftMs, timeoutMs } = call;
  const message = `onCreated did not settle within ${timeoutMs} ms (timeoutMs). Job ${job.id} goes on: wait for it by its id.`;
  const late = () => new WaitTimeoutError(message, { job, jobId: job.id, timeoutMs });
  // What a program does takes real time, also under the clock of a sandbox.
  const deadline = startDeadline({ clock: systemClock, ms: leftMs ?? Number.POSITIVE_INFINITY, signal, late });
  try {
    await deadline.race(Promise.resolve(onCreated(created)));
  } finally {
    deadline.end();
  }
}

/** Whether the run is between two creates. */
function isPause({ step }: JobRunState): boolean {
  return step.type === 'create' || (step.type === 'wait' && step.jobId === null);
}

/** The rules of a run, as the options of its call give them. */
export function runRulesOf({
  timeoutMs = DEFAULT_WAIT_MS,
  resubmitPending = true,
  recover,
}: CreateAndWaitOptions): RunRules {
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
