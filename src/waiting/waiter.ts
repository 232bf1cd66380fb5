import { GenError } from '../errors/index.js';
import { DEFAULT_WAIT_MS } from '../rules/limits.js';
import { checkOptions } from '../rules/options.js';
import { type Clock, nextTurn } from '../runtime/clock.js';
import { keepLast } from '../runtime/keep-last.js';
import { isFields } from '../schemas/envelope.js';
import { type CompletedJob, isSettled, type Job } from '../schemas/job.js';
import { jobIn } from '../schemas/webhook-event.js';
import { type TraceChannel, traced, type WaitTrace } from '../transport/events.js';
import { createNotices, type JobNotice, type NoticesContext, noticeOf } from './notices.js';
import type { ReadScheduler } from './scheduler.js';
import { followJob, learnCharge, outcomeOf, type Scheduling, type WaitContext, type WaitTarget } from './wait.js';
import { WAIT_OPTIONS, type WaitOptions } from './wait-options.js';

export interface WaiterContext extends NoticesContext, Omit<WaitContext, 'listen' | 'scheduling'> {
  /** The scheduler that all clients of the account share, which `id` names. */
  readonly scheduling: () => Promise<Scheduling & { readonly id: string }>;
  /** Whether the account is known only when a key function was asked. */
  readonly asksAccount?: boolean | undefined;
  /** A wait for the job has begun: no other process takes it up until the returned function is called. */
  readonly hold?: ((jobId: string) => () => void) | undefined;
  /** A wait has thrown the outcome of a job that did not complete. */
  readonly handedOver?: ((jobId: string) => Promise<void>) | undefined;
  /** Where the wait is traced, while somebody listens. */
  readonly waits?: (() => TraceChannel | undefined) | undefined;
}

/** Waits for jobs. All waits under one account share one scheduler. */
export interface Waiter {
  /** Resolves with the final job; see {@link WaitOptions}. */
  waitForJob(job: Job | string, options: WaitOptions & { readonly throwOnFailure: false }): Promise<Job>;
  waitForJob(job: Job | string, options?: WaitOptions): Promise<CompletedJob>;
  /** The wait of a loop, which says itself when its program has the outcome. Resolves with the final job. */
  waitInLoop(job: Job | string, options: WaitOptions): Promise<Job>;
  told(job: Job): void;
  /** The wait as a part of a longer call, whose options are checked. Resolves with the final job, whatever its status. */
  follow(target: WaitTarget): Promise<Job>;
  notify(event: JobNotice): void;
  /** For what waits between two calls. */
  readonly clock: Clock;
}

/** Accounts whose waits one client notifies: a key function may give the key of each tenant. */
const MOST_ACCOUNTS = 1_000;

export function createWaiter(given: WaiterContext): Waiter {
  const { clock, asksAccount, handedOver, announced } = given;
  const used = new Map<string, ReadScheduler>();
  const scheduling = async () => {
    const { id, ...at } = await given.scheduling();
    keepLast(used, id, at.scheduler, MOST_ACCOUNTS);
    return at;
  };
  // Whose job it is, an event does not say. Whether anybody waits for it:
  const deliver = (notice: Parameters<ReadScheduler['notify']>[0]) =>
    [...used.values()].map((scheduler) => scheduler.notify(notice)).includes(true);
  const notices = createNotices(given, deliver);
  const context = { ...given, scheduling, listen: given.store?.subscribe && notices.listen };
  const follow = (target: WaitTarget) => {
    const channel = given.waits?.();
    if (!channel) return followJob(context, target);
    const trace: WaitTrace = { jobId: target.id };
    return traced(channel, trace, () => followJob(context, target));
  };
  // That the program has the outcome is noted afterwards: one that dies before gets it again.
  const told = ({ id, status }: Job) => {
    if (handedOver && status !== 'completed') void nextTurn().then(() => handedOver(id));
  };
  // Not async functions, whose frame would be half a kilobyte for each of thousands of waits.
  const wait = (job: Job | string, options: WaitOptions): Promise<Job> => {
    try {
      const target = targetOf(job);
      checkOptions('waitForJob', WAIT_OPTIONS, options);
      const { timeoutMs = DEFAULT_WAIT_MS, signal } = options;
      signal?.throwIfAborted();
      const leftMs = timeoutMs === false ? Number.POSITIVE_INFINITY : timeoutMs;
      const isOver = target.job && isSettled(target.job);
      const release = isOver ? undefined : given.hold?.(target.id);
      const ended = isOver ? Promise.resolve(target.job) : follow({ ...target, options, leftMs, timeoutMs: leftMs });
      if (release) ended.then(release, release);
      return ended;
    } catch (error) {
      return Promise.reject(error);
    }
  };
  return {
    clock,
    follow,
    told,
    waitInLoop: wait,
    waitForJob: (job: Job | string, options: WaitOptions = {}): Promise<CompletedJob> =>
      wait(job, options).then((final) => {
        told(final);
        return outcomeOf(final, options.throwOnFailure);
      }),
    notify(event) {
      const notice = noticeOf(event, given.baseUrl?.());
      if (!notice) return;
      notices.publish(event);
      const job = jobIn(event);
      const known: Promise<Scheduling | undefined> = asksAccount ? Promise.resolve(undefined) : scheduling();
      known.then(
        (at) => {
          if (deliver(notice) || !job) return;
          const { id, status } = job;
          if (at && notice.isVerified) void learnCharge(context, at, { id, status });
          else announced?.({ id, status }, notice.isVerified === true);
        },
        // Without a key there are no waits.
        () => {},
      );
    },
  };
}

/** The job that a wait is for. Throws a GenError for anything but a job or an id. */
function targetOf(target: unknown): Pick<WaitTarget, 'id' | 'job'> {
  if (typeof target === 'string' && target) return { id: target, job: undefined };
  const { id, status, job, then } = isFields(target) ? target : {};
  if (typeof id === 'string' && id) return { id, job: typeof status === 'string' ? (target as Job) : undefined };
  const hint = then !== undefined ? ' Await the create first.' : '';
  const created = job !== undefined || then !== undefined;
  throw new GenError(
    `waitForJob takes a job or its id.${hint}${created ? ' Pass the `job` of what create returns: waitForJob(created.job).' : ''}`,
  );
}
