import { abortable, onAbort } from '../abort.js';
import { callerContext, callObserver } from '../callbacks.js';
import { type Clock, systemClock } from '../clock.js';
import { Deadline } from '../deadline.js';
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
import { isFields } from '../schemas/envelope.js';
import { type CompletedJob, isSettled, type Job } from '../schemas/job.js';
import { jobIdIn, jobIn, type WebhookEvent } from '../schemas/webhook-event.js';
import type { Wake } from '../wake.js';
import { JobWatcher } from './job-watcher.js';
import type { ReadLimiter } from './pace.js';
import { endsWait } from './poll-order.js';
import { WAIT_OPTIONS, type WaitOptions } from './wait-options.js';
import { RESTART, type Watch } from './watch.js';

/** Where the one scheduler of an account is kept. */
export interface SharedState {
  shared<T extends object>(name: string, make: () => T): T;
}

/** What waiting needs of the client. */
export interface WaiterContext {
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
  /** Carries notices between processes. */
  readonly wake?: Wake | undefined;
  /** Where the wait is traced, while somebody listens. */
  readonly waits?: (() => TraceChannel | undefined) | undefined;
  /** Told of an event whose job nobody waits for in this process. A wait reads its job at once. */
  readonly announced?: ((job: Job) => void) | undefined;
  /** Told of an `onUpdate` that threw, which must not end the wait. */
  readonly warn?: ((message: string) => void) | undefined;
}

/** A verified webhook event, or the part of it that says which job it is about. An event without a job wakes nobody. */
export type JobNotice = WebhookEvent | { readonly data: { readonly job: { readonly id: string } } };

/** Waits for jobs. All waits under one account share one scheduler. */
export interface Waiter {
  /** Resolves with the final job; see {@link WaitOptions}. */
  waitForJob(job: Job | string, options: WaitOptions & { readonly throwOnFailure: false }): Promise<Job>;
  waitForJob(job: Job | string, options?: WaitOptions): Promise<CompletedJob>;
  /** Wakes the waits on the event's job, which read it at once. */
  notify(event: JobNotice): void;
  /** For what waits between two calls. */
  readonly clock: Clock;
}

/** How long a wait lasts at most unless it says otherwise. */
export const DEFAULT_TIMEOUT_MS = 30 * 60_000;
/** Copies of the package share the scheduler by this name. The number is the protocol's. */
const WATCHER = 'watcher/2';

/** Makes the waiting of one client. */
export function createWaiter(context: WaiterContext): Waiter {
  const clock = context.clock ?? systemClock;
  const watcher = async () => (await context.account()).shared(WATCHER, () => new JobWatcher(clock));
  return {
    clock,
    async waitForJob(target: Job | string, options: WaitOptions = {}): Promise<CompletedJob> {
      const { id, job } = targetOf(target);
      checkOptions('waitForJob', WAIT_OPTIONS, options);
      options.signal?.throwIfAborted();
      const work = () => follow({ ...context, clock, watcher }, { id, job, options });
      const settled = job && isSettled(job) ? job : await traced(context.waits?.(), waitOf(id), work);
      return outcome(settled, options);
    },
    notify(event) {
      const id = jobIdIn(event);
      const job = jobIn(event);
      if (id === undefined) return;
      callObserver(() => context.wake?.publish(id));
      // Without a key there are no waits to wake.
      watcher().then(
        (shared) => {
          if (!shared.notify(id) && job) context.announced?.(job);
        },
        () => {},
      );
    },
  };
}

function waitOf(jobId: string): WaitTrace {
  return { jobId };
}

interface FollowContext extends WaiterContext {
  readonly clock: Clock;
  readonly watcher: () => Promise<JobWatcher>;
}

interface Followed {
  readonly id: string;
  readonly job: Job | undefined;
  readonly options: WaitOptions;
}

/** Follows a job until it is settled. Whatever ends the wait takes its timer, listener and place at the watcher along. */
async function follow(context: FollowContext, { id, job: known, options }: Followed): Promise<Job> {
  const { clock, warn } = context;
  const { signal, onUpdate, timeoutMs = DEFAULT_TIMEOUT_MS, pollIntervalMs } = options;
  const inContext = onUpdate && callerContext();
  const limitMs = timeoutMs === false ? Number.POSITIVE_INFINITY : timeoutMs;
  let job = known;
  let watch: Watch | undefined;
  let stopListening: (() => void) | undefined;
  const late = () => timedOut({ id, job, timeoutMs: limitMs, cause: watch?.lastError });
  const deadline = new Deadline({ clock, ms: limitMs, signal, late });
  try {
    const watcher = await deadline.race(context.watcher());
    watch = watcher.watch(id, { job, pollIntervalMs, limiter: context.limiter?.() ?? 'documented' });
    stopListening = context.wake?.listen(id, () => watcher.notify(id));
    for (;;) {
      const step = watch.next();
      if (step.kind === 'sleep') await deadline.race(watch.sleeper.sleep(step.ms));
      else if (step.kind === 'read')
        await readOnce(context, { id, watch, reading: step.signal, ended: deadline.signal });
      else {
        job = step.job;
        const seen = job;
        if (onUpdate) {
          inContext?.(() =>
            callObserver(
              () => onUpdate(seen),
              (reason) => warn?.(`onUpdate failed, and the wait for job ${id} goes on: ${reason}`),
            ),
          );
        }
        if (isSettled(job)) return job;
      }
    }
  } finally {
    stopListening?.();
    watch?.leave();
    deadline.end();
  }
}

interface Reading {
  readonly id: string;
  readonly watch: Watch;
  /** Aborted when the read is to be made again. */
  readonly reading: AbortSignal;
  /** Aborted when the wait has ended. */
  readonly ended: AbortSignal;
}

/** Reads the job and tells the watcher. Throws what ends the wait. */
async function readOnce(context: FollowContext, { id, watch, reading, ended }: Reading): Promise<void> {
  const controller = new AbortController();
  const forget = [reading, ended].map((signal) => onAbort(signal, () => controller.abort(signal.reason)));
  try {
    const read = Promise.resolve().then(() => context.readJob(id, controller.signal));
    watch.seen(await abortable(read, controller.signal));
  } catch (error) {
    ended.throwIfAborted();
    const isRestart = reading.aborted && reading.reason === RESTART;
    const ends = !isRestart && endsWait(error);
    watch.missed({ error: isRestart ? RESTART : error, ends, mostAskedMs: context.maxRetryAfterMs ?? 120_000 });
    if (ends) throw error;
  } finally {
    for (const stop of forget) stop();
  }
}

/** The error of a wait whose time is over. */
export function timedOut(seen: {
  id: string;
  job: Job | undefined;
  timeoutMs: number;
  cause: unknown;
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

const FAILURES: Readonly<Record<string, typeof JobError>> = {
  failed: JobFailedError,
  canceled: JobCanceledError,
  blocked: JobBlockedError,
};

/** What to do, in words, for each recovery that a job error can have. */
const ADVICE: Readonly<Record<string, string>> = {
  change_reference: 'Use another reference.',
  change_request: 'Change the prompt, references or options.',
  wait_and_retry: 'Wait errorData.retry_after seconds and send it again under a new idempotency key.',
  retry_with_new_key: 'Send it again under a new idempotency key.',
  retry_later: 'Try again later or with another model.',
};

/** The final job, or its error. */
function outcome(job: Job, { throwOnFailure = true }: WaitOptions): CompletedJob {
  const Failure = FAILURES[job.status];
  if (!Failure || !throwOnFailure) return job as CompletedJob;
  const { id, status, errorCode, errorMessage } = job;
  const reason = [errorCode, errorMessage].filter(Boolean).join(': ');
  const error = new Failure(`Job ${id} ${status === 'failed' ? status : `was ${status}`}${reason && ` (${reason})`}.`, {
    job,
  });
  const advice = ADVICE[error.recovery];
  if (advice) error.message += ` ${advice}`;
  throw error;
}

function targetOf(target: unknown): { readonly id: string; readonly job: Job | undefined } {
  if (typeof target === 'string' && target) return { id: target, job: undefined };
  const { id, status, job } = isFields(target) ? target : {};
  if (typeof id === 'string' && id) return { id, job: typeof status === 'string' ? (target as Job) : undefined };
  throw new GenError(
    job === undefined
      ? 'waitForJob takes a job or its id.'
      : 'waitForJob takes a job or its id. Pass the `job` of what create returns: waitForJob(created.job).',
  );
}
