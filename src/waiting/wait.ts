import { JobBlockedError, JobCanceledError, JobError, JobFailedError, WaitTimeoutError } from '../errors/index.js';
import { backoff } from '../rules/backoff.js';
import { endsWait, missingFileError } from '../rules/failure-kind.js';
import { callerContext, callObserver } from '../runtime/callbacks.js';
import type { Clock } from '../runtime/clock.js';
import { abortable, onAbort, sleep } from '../runtime/deadline.js';
import { WORKERS_POLL_MS } from '../runtime/platform.js';
import { type CompletedJob, isFinal, isSettled, type Job } from '../schemas/job.js';
import type { JobReporter } from '../transport/call.js';
import type { PollLimits } from './poll-queue.js';
import type { JobSubscriber } from './polled-job.js';
import { type PollScheduler, RESTART } from './scheduler.js';
import type { WaitOptions } from './wait-options.js';

export interface WaitTarget {
  readonly id: string;
  readonly job: Job | undefined;
  readonly options: Pick<WaitOptions, 'signal' | 'pollIntervalMs' | 'onUpdate'>;
  /** Milliseconds left, or `Infinity` for no timeout. */
  readonly leftMs: number;
  /** Timeout of the entire call, for the error message. */
  readonly timeoutMs: number;
}

/** An account's scheduler, and the rate limits for its polls. */
export interface Scheduling {
  readonly scheduler: PollScheduler;
  readonly limits: PollLimits;
}

export interface WaitContext {
  readonly clock: Clock;
  readonly jobs: Pick<JobReporter, 'announce' | 'isWatched'>;
  readonly pollJob: (id: string, signal: AbortSignal) => Promise<Job>;
  readonly scheduling: (signal?: AbortSignal) => Promise<Scheduling>;
  /** Listens for jobs that other processes announce. Returns a function that stops. */
  readonly listen: (() => () => void) | undefined;
  /** Longest `Retry-After` of a failed poll to wait for, in milliseconds. */
  readonly maxRetryAfterMs: number;
  readonly warn: (message: string) => void;
}

/** Backoff between calls of a key function that fails before the first poll. */
const KEY_PAUSE = { firstMs: 1_000, maxMs: 60_000 } as const;
/** Maximum charge-only polls for a job. With their backoff, they take five minutes. */
const MAX_CHARGE_POLLS = 8;

/** Waits until a job is settled, and returns it. */
export async function followJob(context: WaitContext, target: WaitTarget): Promise<Job> {
  const { id, leftMs, timeoutMs } = target;
  const { signal, pollIntervalMs, onUpdate } = target.options;
  const update = onUpdate && bindToCaller(onUpdate, context, id);
  let { job } = target;
  let keyError: unknown;
  let scheduling: Scheduling | undefined;
  let subscriber: JobSubscriber | undefined;
  let stopListening: (() => void) | undefined;
  const timeoutError = () => waitTimeoutError({ id, job, timeoutMs, cause: subscriber?.entry.lastError ?? keyError });
  const isOutdated = () => subscriber !== undefined && scheduling?.scheduler.isOutdated(subscriber) === true;
  const hasStalled = () => subscriber !== undefined && scheduling?.scheduler.hasStalled(subscriber) === true;
  const wait = new WaitLoop(context.clock, { limitMs: leftMs, signal, timeoutError, isOutdated, hasStalled });
  try {
    for (let failures = 1; scheduling === undefined; failures++) {
      try {
        scheduling = await wait.during(context.scheduling);
      } catch (error) {
        if (endsWait(error)) throw error;
        keyError = error;
        await wait.during((waitSignal) => sleep(context.clock, backoff(KEY_PAUSE, failures), waitSignal));
      }
    }
    const { scheduler, limits } = scheduling;
    subscriber = scheduler.join(limits, { id, job, pollIntervalMs, maxRetryAfterMs: context.maxRetryAfterMs, wait });
    stopListening = context.listen?.();
    for (;;) {
      const step = scheduler.next(subscriber);
      if (typeof step !== 'object') {
        if (wait.pollsOnceMore() || step === 'poll') await pollOnce(scheduler, subscriber, wait, context.pollJob);
        else await wait.sleep();
      } else {
        job = step.job;
        update?.(job, step.progress);
        if (step.isFileMissing) throw missingFileError(job);
        if (!isSettled(job)) continue;
        if (!step.isPolled && context.jobs.isWatched(id)) void learnCharge(context, scheduling, job);
        return job;
      }
    }
  } finally {
    stopListening?.();
    if (subscriber) scheduling?.scheduler.leave(subscriber);
    wait.close();
  }
}

interface WaitEnd extends Pick<WaitTarget['options'], 'signal'> {
  readonly limitMs: number;
  readonly timeoutError: () => Error;
  /** If true, the last poll is too old to report a timeout. */
  readonly isOutdated: () => boolean;
  /** If true, the poll in flight has hung. */
  readonly hasStalled: () => boolean;
}

/** Timeout of the extra poll after the wait's timeout. */
const LAST_POLL_MS = 5_000;

/** A wait in its caller's context, with a single timer for its timeout and a single listener on its signal. */
class WaitLoop {
  readonly #clock: Clock;
  readonly #limit: WaitEnd | undefined;
  #stopTimer: (() => void) | undefined;
  #lastPoll: 'due' | 'done' | undefined;
  readonly #removeListener: (() => void) | undefined;
  #ended: { readonly reason: unknown } | undefined;
  #isWoken = false;
  #endSleep: (() => void) | undefined;
  #working: AbortController | undefined;

  /** If the last poll is outdated when `limitMs` expires, the wait polls once more before it throws `timeoutError`. */
  constructor(clock: Clock, end?: WaitEnd) {
    this.#clock = clock;
    if (!end) return;
    const { limitMs, signal, timeoutError, isOutdated, hasStalled } = end;
    this.#limit = end;
    const expire = () => {
      if (!isOutdated()) return this.#end(timeoutError());
      this.#lastPoll = 'due';
      this.#stopTimer = clock.after(LAST_POLL_MS, () => this.#end(timeoutError()));
      if (hasStalled()) this.restart();
      this.#endSleep?.();
    };
    if (limitMs < Number.POSITIVE_INFINITY) this.#stopTimer = clock.after(limitMs, expire);
    this.#removeListener = onAbort(signal, () => this.#end(signal?.reason));
  }

  /** Returns true once after the timeout if the wait must poll once more. Throws after that poll. */
  pollsOnceMore(): boolean {
    if (this.#lastPoll === undefined) return false;
    if (this.#lastPoll === 'done' || !this.#limit?.isOutdated()) this.#end(this.#limit?.timeoutError());
    this.throwIfEnded();
    this.#lastPoll = 'done';
    return true;
  }

  throwIfEnded(): void {
    if (this.#ended) throw this.#ended.reason;
  }

  /** Resolves when the wait is woken or, on Workers, when it must check again. Rejects with the reason when the wait ends. */
  sleep(): Promise<void> {
    return new Promise((resolve, reject) => {
      // On Workers, another request can't resolve this promise, so the wait checks periodically.
      let stopPolling: (() => void) | undefined;
      if (this.#clock.perRequest) stopPolling = this.#clock.after(WORKERS_POLL_MS, () => this.#endSleep?.());
      this.#endSleep = () => {
        this.#endSleep = undefined;
        this.#isWoken = false;
        stopPolling?.();
        if (this.#ended) reject(this.#ended.reason);
        else resolve();
      };
      if (this.#ended || this.#isWoken) this.#endSleep();
    });
  }

  /** Ends the current sleep, or the next one if none has started. */
  wake(): void {
    this.#isWoken = true;
    if (!this.#clock.perRequest) this.#endSleep?.();
  }

  /** Aborts the poll in flight, which is then retried. */
  restart(): void {
    this.#working?.abort(RESTART);
  }

  /** Returns the result of `work`. Throws the reason immediately if the wait ends. */
  async during<T>(work: (signal: AbortSignal) => PromiseLike<T>): Promise<T> {
    this.throwIfEnded();
    const controller = new AbortController();
    this.#working = controller;
    try {
      return await abortable(work(controller.signal), controller.signal);
    } finally {
      this.#working = undefined;
    }
  }

  close(): void {
    this.#stopTimer?.();
    this.#removeListener?.();
  }

  #end(reason: unknown): void {
    if (this.#ended) return;
    this.#ended = { reason };
    this.#endSleep?.();
    this.#working?.abort(reason);
  }
}

/** Polls the job and reports the result to the scheduler. Throws an error that ends the wait. */
async function pollOnce(
  scheduler: PollScheduler,
  subscriber: JobSubscriber,
  wait: WaitLoop,
  pollJob: WaitContext['pollJob'],
): Promise<void> {
  try {
    scheduler.pollSucceeded(subscriber, await wait.during((signal) => pollJob(subscriber.entry.id, signal)));
  } catch (error) {
    wait.throwIfEnded();
    if (scheduler.pollFailed(subscriber, error)) throw error;
  }
}

function bindToCaller(
  onUpdate: NonNullable<WaitOptions['onUpdate']>,
  { warn }: WaitContext,
  id: string,
): typeof onUpdate {
  const inContext = callerContext();
  const warnFailure = (reason: string) => warn(`onUpdate failed, and the wait for job ${id} continues: ${reason}`);
  return (job, progress) => inContext(() => callObserver(() => onUpdate(job, progress), warnFailure));
}

/** Polls for the charge of a job after an event reported its end. Without a charge, reports only the end. */
export async function learnCharge(context: WaitContext, scheduling: Scheduling, { id, status }: Job): Promise<void> {
  const mayPoll = !FAILURES[status] && context.jobs.isWatched(id) && scheduling.scheduler.pollsForCharge;
  const isPolled = mayPoll && (await pollCharge(context, scheduling, id).catch(() => false));
  if (!isPolled) context.jobs.announce({ id, status }, true);
}

async function pollCharge(context: WaitContext, { scheduler, limits }: Scheduling, id: string): Promise<boolean> {
  const { clock, pollJob, maxRetryAfterMs } = context;
  const wait = new WaitLoop(clock);
  const subscriber = scheduler.join(limits, { id, job: undefined, maxRetryAfterMs, wait, isChargeOnly: true });
  const pollEnd = async () => {
    const job = await pollJob(id, new AbortController().signal);
    if (!isSettled(job)) throw new Error('The job is still reported as running.');
    return job;
  };
  try {
    for (let attempts = 0; attempts < MAX_CHARGE_POLLS; ) {
      const step = scheduler.next(subscriber);
      if (step === 'sleep') await wait.sleep();
      else if (step !== 'poll') return true;
      else {
        attempts++;
        await pollOnce(scheduler, subscriber, wait, pollEnd);
      }
    }
    return typeof scheduler.next(subscriber) === 'object';
  } finally {
    scheduler.leave(subscriber);
  }
}

const FAILURES: Readonly<Record<string, typeof JobError>> = {
  failed: JobFailedError,
  canceled: JobCanceledError,
  blocked: JobBlockedError,
};

/** Advice by recovery. */
const JOB_ADVICE: Readonly<Record<string, string>> = {
  change_reference: 'Use another reference.',
  change_request: 'Change the prompt, references, or options.',
  wait_and_retry: 'Wait errorData.retry_after seconds and send it again under a new idempotency key.',
  retry_with_new_key: 'Send it again under a new idempotency key.',
  retry_later: 'Send it again later, or with another model, under a new idempotency key.',
};

/** Returns the final job. Throws its JobError if it didn't complete, unless `throwOnFailure` is false. */
export function outcomeOf(job: Job, throwOnFailure = true, cause?: unknown): CompletedJob {
  if (!FAILURES[job.status] || !throwOnFailure) return job as CompletedJob;
  throw jobErrorOf(job, cause);
}

export function jobErrorOf(job: Job, cause?: unknown): JobError {
  const { id, status, errorCode, errorMessage } = job;
  const Failure = FAILURES[status] ?? JobError;
  const reason = [errorCode, errorMessage].filter(Boolean).join(': ').replace(/\.$/, '');
  const error = new Failure(`Job ${id} ${status === 'failed' ? status : `was ${status}`}${reason && ` (${reason})`}.`, {
    job,
    cause,
  });
  const advice = JOB_ADVICE[error.recovery];
  if (advice) error.message += ` ${advice}`;
  return error;
}

export function waitTimeoutError(details: {
  readonly id: string;
  readonly job: Job | undefined;
  readonly timeoutMs: number;
  readonly cause: unknown;
}): WaitTimeoutError {
  const { id, job, timeoutMs } = details;
  const advice = 'It continues: call waitForJob again, or raise timeoutMs.';
  const state =
    job === undefined
      ? `No poll succeeded. ${advice}`
      : isFinal(job)
        ? 'It is completed, but its file is not available yet: call waitForJob again.'
        : `Its last status was ${job.status}. ${advice}`;
  return new WaitTimeoutError(`Job ${id} did not finish within ${timeoutMs} ms (timeoutMs). ${state}`, {
    ...details,
    jobId: id,
  });
}
