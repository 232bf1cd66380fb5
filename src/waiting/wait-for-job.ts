import { GenError } from '../errors/index.js';
import { type TraceChannel, traced, type WaitTrace } from '../events.js';
import { checkOptions } from '../options.js';
import { DEFAULT_WAIT_MS } from '../rules/limits.js';
import { type Clock, systemClock } from '../runtime/clock.js';
import { isFields } from '../schemas/envelope.js';
import { type CompletedJob, isSettled, type Job } from '../schemas/job.js';
import { jobIn } from '../schemas/webhook-event.js';
import { lengthsOf } from '../shared/facts.js';
import type { SharedStore } from '../shared/shared-store.js';
import { createNotices, type JobNotice, type NoticesContext, noticeOf } from './notices.js';
import { type FollowContext, followJob, outcomeOf, type WaitPart, type WaitTarget } from './wait.js';
import { WAIT_OPTIONS, type WaitOptions } from './wait-options.js';
import { JobWatcher } from './watcher.js';

/** Where the one scheduler of an account is kept. */
export interface SharedState {
  shared<T extends object>(name: string, make: () => T): T;
}

/** What waiting needs of the client. */
export interface WaiterContext
  extends Omit<NoticesContext, 'clock' | 'shared'>,
    Omit<FollowContext, 'clock' | 'watcher' | 'notices'> {
  /** What all clients of the account share. */
  readonly account: () => Promise<SharedState>;
  /** The store through which the processes of an account notify each other. */
  readonly shared?: SharedStore | undefined;
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
  const { clock = systemClock, account, waits, shared } = given;
  const notices = shared && createNotices({ ...given, clock, shared });
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
