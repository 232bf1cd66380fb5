import {
  GenError,
  JobBlockedError,
  JobCanceledError,
  type JobError,
  JobFailedError,
  WaitTimeoutError,
} from '../errors/index.js';
import { type TraceChannel, traced, type WaitTrace } from '../events.js';
import { checkOptions } from '../options.js';
import { backoff } from '../rules/backoff.js';
import { endsWait } from '../rules/fate.js';
import { DEFAULT_WAIT_MS } from '../rules/limits.js';
import { callerContext, callObserver } from '../runtime/callbacks.js';
import { type Clock, systemClock } from '../runtime/clock.js';
import { isFields } from '../schemas/envelope.js';
import { type CompletedJob, isSettled, type Job } from '../schemas/job.js';
import { jobIn } from '../schemas/webhook-event.js';
import { lengthsOf } from '../shared/facts.js';
import { createNotices, type JobNotice, type NoticesContext, noticeOf } from './notices.js';
import type { ReadLimiter } from './read-queue.js';
import { type SettleOn, WAIT_OPTIONS, type WaitOptions } from './wait-options.js';
import { RESTART, Watch } from './watch.js';
import { JobWatcher } from './watcher.js';

/** Where the one scheduler of an account is kept. */
export interface SharedState {
  shared<T extends object>(name: string, make: () => T): T;
}

/** What waiting needs of the client. */
export interface WaiterContext extends Omit<NoticesContext, 'clock'> {
  /** Reads the job once. A failed read is not repeated, because the watcher does that. */
  readonly readJob: (id: string, signal: AbortSignal) => Promise<Job>;
  /** What all clients of the account share. */
  readonly account: () => Promise<SharedState>;
  /** The limiter that reads go through. @default the documented limit */
  readonly limiter?: (() => ReadLimiter) | undefined;
  /** Longest Retry-After of a failed read that is waited for, in milliseconds. @default 120_000 */
  readonly maxRetryAfterMs?: number | undefined;
  /** @default the runtime's own */
  readonly clock?: Clock | undefined;
  /** @default 'event' */
  readonly settleOn?: SettleOn | undefined;
  /** Where the wait is traced, while somebody listens. */
  readonly waits?: (() => TraceChannel | undefined) | undefined;
  /** Called for an event whose job is not waited for in this process. A wait reads its job by itself. */
  readonly announced?: ((job: Job) => void) | undefined;
  /** Whether a hook, a budget or a trace learns the charge of the job by a read. */
  readonly learnsCharge?: ((id: string) => boolean) | undefined;
}

/** What a wait is for. */
export interface WaitTarget {
  readonly id: string;
  /** The job as far as it is known. */
  readonly job: Job | undefined;
}

/** A wait whose options are checked. */
export interface WaitPart {
  readonly options: Omit<WaitOptions, 'timeoutMs' | 'throwOnFailure'>;
  /** Milliseconds that are left; `Infinity` for no limit. */
  readonly leftMs: number;
  /** The limit of the whole call, for the error. */
  readonly timeoutMs: number;
  readonly throwOnFailure: boolean | undefined;
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
const DEFAULT_MAX_RETRY_AFTER_MS = 120_000;
/** The pause after a key function that failed before the first read. */
const KEY_PAUSE = { firstMs: 1_000, mostMs: 60_000 } as const;

/** Makes the waiting of one client. */
export function createWaiter(given: WaiterContext): Waiter {
  const clock = given.clock ?? systemClock;
  const notices = createNotices({ ...given, clock });
  const context = { ...given, clock };
  const watcher = async () => {
    const account = await context.account();
    return account.shared(WATCHER, () => new JobWatcher(clock, undefined, lengthsOf(account)));
  };
  const followed = { ...context, watcher, listen: notices.listen };
  function begin(target: WaitTarget, part: WaitPart): Promise<CompletedJob> {
    const channel = context.waits?.();
    if (!channel) return followJob(followed, target, part);
    const trace: WaitTrace = { jobId: target.id };
    // A job that failed is not a wait that failed.
    const wait = traced(channel, trace, () => followJob(followed, target, { ...part, throwOnFailure: false }));
    return wait.then((job) => outcomeOf(job, part.throwOnFailure));
  }
  return {
    clock,
    follow: begin,
    waitForJob(job: Job | string, options: WaitOptions = {}): Promise<CompletedJob> {
      try {
        const target = targetOf(job);
        checkOptions('waitForJob', WAIT_OPTIONS, options);
        const { throwOnFailure, timeoutMs = DEFAULT_WAIT_MS, signal } = options;
        signal?.throwIfAborted();
        if (target.job && isSettled(target.job)) return Promise.resolve(outcomeOf(target.job, throwOnFailure));
        const leftMs = timeoutMs === false ? Number.POSITIVE_INFINITY : timeoutMs;
        return begin(target, { options, leftMs, timeoutMs: leftMs, throwOnFailure });
      } catch (error) {
        return Promise.reject(error);
      }
    },
    notify(event) {
      const notice = noticeOf(event, context.baseUrl?.());
      if (!notice) return;
      notices.publish(event);
      const job = jobIn(event);
      watcher().then(
        (shared) => {
          if (!shared.notify(notice) && job) context.announced?.({ id: job.id, status: job.status });
        },
        // Without a key there are no waits.
        () => {},
      );
    },
  };
}

interface FollowContext extends WaiterContext {
  readonly clock: Clock;
  readonly watcher: () => Promise<JobWatcher>;
  readonly listen: ReturnType<typeof createNotices>['listen'];
}

/** Follows a job until it is settled. Whatever ends the wait takes its timer, listener and place at the watcher along. */
async function followJob(
  context: FollowContext,
  { id, job: known }: WaitTarget,
  part: WaitPart,
): Promise<CompletedJob> {
  const { clock } = context;
  const { signal, pollIntervalMs, settleOn = context.settleOn ?? 'event' } = part.options;
  const { onUpdate } = part.options;
  const update = onUpdate && inCallersContext(onUpdate, context, id);
  let job = known;
  let keyError: unknown;
  const late = () => timedOut({ id, job, timeoutMs: part.timeoutMs, cause: watch.entry?.lastError ?? keyError });
  const takesEvents = settleOn === 'event';
  const watch = new Watch({ clock, limitMs: part.leftMs, signal, pollIntervalMs, takesEvents, late });
  let watcher: JobWatcher | undefined;
  let stopListening: (() => void) | undefined;
  try {
    for (let failures = 1; watcher === undefined; failures++) {
      try {
        watcher = await watch.during(context.watcher);
      } catch (error) {
        watch.throwIfEnded();
        if (endsWait(error)) throw error;
        keyError = error;
        await watch.pause(backoff(KEY_PAUSE, failures));
      }
    }
    const shared = watcher;
    shared.join(watch, id, { job, limiter: context.limiter?.() ?? 'documented' });
    stopListening = context.listen(shared);
    for (;;) {
      const step = shared.next(watch);
      if (step.kind === 'sleep') await watch.sleep();
      else if (step.kind === 'read') await readOnce(context, shared, watch, step.stop);
      else {
        job = step.job;
        update?.(job, step.progress);
        if (!isSettled(job)) continue;
        if (!step.isRead) learnCharge(context, shared, watch, job);
        return outcomeOf(job, part.throwOnFailure);
      }
    }
  } finally {
    stopListening?.();
    watcher?.leave(watch);
    watch.close();
  }
}

/** Calls `onUpdate` in the async context of its caller. */
function inCallersContext(
  onUpdate: NonNullable<WaitOptions['onUpdate']>,
  { warn }: FollowContext,
  id: string,
): typeof onUpdate {
  const inContext = callerContext();
  const failed = (reason: string) => warn?.(`onUpdate failed, and the wait for job ${id} goes on: ${reason}`);
  return (job, progress) => inContext(() => callObserver(() => onUpdate(job, progress), failed));
}

/** Reads the job and tells the watcher. Throws what ends the wait. */
async function readOnce(
  { readJob, maxRetryAfterMs: mostAskedMs = DEFAULT_MAX_RETRY_AFTER_MS }: FollowContext,
  watcher: JobWatcher,
  watch: Watch,
  stop: AbortController,
): Promise<void> {
  const id = watch.entry?.id ?? '';
  try {
    watcher.seen(watch, await watch.during((signal) => readJob(id, signal), stop));
  } catch (error) {
    watch.throwIfEnded();
    const isRestart = stop.signal.aborted && stop.signal.reason === RESTART;
    const ends = !isRestart && endsWait(error);
    watcher.missed(watch, { error: isRestart ? RESTART : error, ends, askedMs: askedMs(error, mostAskedMs) });
    if (ends) throw error;
  }
}

function askedMs(error: unknown, most: number): number {
  const asked: unknown = typeof error === 'object' && error !== null ? Reflect.get(error, 'retryAfterMs') : undefined;
  return typeof asked === 'number' ? Math.min(asked, most) : 0;
}

/** An event has ended the wait: the charge is learned by a read that nobody waits for, when one is free. */
function learnCharge(
  { learnsCharge, announced, readJob }: FollowContext,
  watcher: JobWatcher,
  watch: Watch,
  job: Job,
): void {
  const { id, status } = job;
  if (!learnsCharge?.(id)) return;
  const inContext = callerContext();
  const read = () => inContext(() => readJob(id, new AbortController().signal));
  if (!watcher.readLater(watch, id, read)) announced?.({ id, status });
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

const FAILURES: Readonly<Record<string, typeof JobError>> = {
  failed: JobFailedError,
  canceled: JobCanceledError,
  blocked: JobBlockedError,
};

/** What to do, in words, for each recovery that a job error can have. */
const JOB_ADVICE: Readonly<Record<string, string>> = {
  change_reference: 'Use another reference.',
  change_request: 'Change the prompt, references or options.',
  wait_and_retry: 'Wait errorData.retry_after seconds and send it again under a new idempotency key.',
  retry_with_new_key: 'Send it again under a new idempotency key.',
  retry_later: 'Try again later or with another model.',
};

/** The final job; throws its JobError where it did not complete, unless `throwOnFailure` is false. */
export function outcomeOf(job: Job, throwOnFailure = true): CompletedJob {
  const Failure = FAILURES[job.status];
  if (!Failure || !throwOnFailure) return job as CompletedJob;
  const { id, status, errorCode, errorMessage } = job;
  const reason = [errorCode, errorMessage].filter(Boolean).join(': ');
  const error = new Failure(`Job ${id} ${status === 'failed' ? status : `was ${status}`}${reason && ` (${reason})`}.`, {
    job,
  });
  const advice = JOB_ADVICE[error.recovery];
  if (advice) error.message += ` ${advice}`;
  throw error;
}

/** The error of a wait whose time is over. */
export function timedOut(seen: {
  readonly id: string;
  readonly job: Job | undefined;
  readonly timeoutMs: number;
  readonly cause: unknown;
}): WaitTimeoutError {
  const { id, job, timeoutMs } = seen;
  const state =
    job === undefined
      ? 'it could not be read'
      : job.status === 'completed'
        ? 'it was completed when last read, but had no providerOutputUrl'
        : `it was ${job.status} when last read`;
  return new WaitTimeoutError(
    `Job ${id} did not end within ${timeoutMs} ms (${state}). The job goes on: wait for it again, or raise timeoutMs.`,
    { ...seen, jobId: id },
  );
}
