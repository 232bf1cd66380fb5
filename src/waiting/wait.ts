import { JobBlockedError, JobCanceledError, JobError, JobFailedError, WaitTimeoutError } from '../errors/index.js';
import { backoff } from '../rules/backoff.js';
import { endsWait } from '../rules/fate.js';
import { callerContext, callObserver } from '../runtime/callbacks.js';
import type { Clock } from '../runtime/clock.js';
import { abortable, onAbort, sleep } from '../runtime/deadline.js';
import { LOOK_AGAIN_MS } from '../runtime/platform.js';
import { type CompletedJob, isSettled, type Job } from '../schemas/job.js';
import type { createNotices } from './notices.js';
import type { ReadLimits } from './read-queue.js';
import type { WaitOptions } from './wait-options.js';
import { type JobSubscriber, RESTART } from './waited-job.js';
import type { JobWatcher } from './watcher.js';

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

/** The scheduler of an account, and the rate limits that its reads go through. */
export interface Scheduler {
  readonly watcher: JobWatcher;
  readonly limits: ReadLimits;
}

/** What a wait needs of the client. */
export interface FollowContext {
  /** Reads the job once. A failed read is not repeated, because the watcher does that. */
  readonly readJob: (id: string, signal: AbortSignal) => Promise<Job>;
  /** The scheduler of the account. Its key may fail, and come later. */
  readonly watcher: () => Promise<Scheduler>;
  /** Between the processes that share a store, where there is one. */
  readonly notices: ReturnType<typeof createNotices> | undefined;
  readonly clock: Clock;
  /** Longest Retry-After of a failed read that is waited for, in milliseconds. @default 120_000 */
  readonly maxRetryAfterMs?: number | undefined;
  readonly warn?: ((message: string) => void) | undefined;
  /** Called for an event whose job is not waited for in this process. A wait reads its job by itself. */
  readonly announced?: ((job: Job) => void) | undefined;
  /** Whether a hook, a budget or a trace learns the charge of the job by a read. */
  readonly learnsCharge?: ((id: string) => boolean) | undefined;
}

const DEFAULT_MAX_RETRY_AFTER_MS = 120_000;
/** The pause after a key function that failed before the first read. */
const KEY_PAUSE = { firstMs: 1_000, mostMs: 60_000 } as const;

/** Follows a job until it is settled. Whatever ends the wait takes its timer, its listener and its place at the watcher along. */
export async function followJob(
  context: FollowContext,
  { id, job: known }: WaitTarget,
  { options, leftMs, timeoutMs, throwOnFailure }: WaitPart,
): Promise<CompletedJob> {
  const { clock } = context;
  const { signal, pollIntervalMs, onUpdate } = options;
  const update = onUpdate && inCallersContext(onUpdate, context, id);
  let job = known;
  let keyError: unknown;
  let watcher: JobWatcher | undefined;
  let limits: ReadLimits = 'documented';
  let subscriber: JobSubscriber | undefined;
  let stopListening: (() => void) | undefined;
  const late = () => timedOut({ id, job, timeoutMs, cause: subscriber?.entry.lastError ?? keyError });
  const wait = new Wait(clock, { limitMs: leftMs, signal, late });
  try {
    for (let failures = 1; watcher === undefined; failures++) {
      try {
        ({ watcher, limits } = await wait.during(context.watcher));
      } catch (error) {
        if (endsWait(error)) throw error;
        keyError = error;
        await wait.during((ended) => sleep(clock, backoff(KEY_PAUSE, failures), ended));
      }
    }
    subscriber = watcher.join({ id, job, limits, pollIntervalMs, wait });
    stopListening = context.notices?.listen(watcher);
    for (;;) {
      const step = watcher.next(subscriber);
      if (step.kind === 'sleep') await wait.sleep();
      else if (step.kind === 'read') await readOnce(context, { watcher, subscriber, wait, stop: step.stop });
      else {
        job = step.job;
        update?.(job, step.progress);
        if (!isSettled(job)) continue;
        if (!step.isRead) learnCharge(context, watcher, subscriber, job);
        return outcomeOf(job, throwOnFailure);
      }
    }
  } finally {
    stopListening?.();
    if (subscriber) watcher?.leave(subscriber);
    wait.close();
  }
}

/**
 * One wait in the context of its caller: it sleeps, reads and ends by itself, with one timer for its time limit and one
 * listener on its signal. The watcher says what to do next.
 */
class Wait {
  readonly #clock: Clock;
  readonly #stopTimer: (() => void) | undefined;
  readonly #forgetAbort: () => void;
  #ended: { readonly reason: unknown } | undefined;
  #isWoken = false;
  /** Ends the sleep under way. */
  #endSleep: (() => void) | undefined;
  /** Of the work under way. */
  #working: AbortController | undefined;

  /** `late` makes the error of a wait that has lasted `limitMs`. */
  constructor(
    clock: Clock,
    options: { readonly limitMs: number; readonly signal: AbortSignal | undefined; readonly late: () => Error },
  ) {
    const { limitMs, signal, late } = options;
    this.#clock = clock;
    if (limitMs < Number.POSITIVE_INFINITY) this.#stopTimer = clock.after(limitMs, () => this.#end(late()));
    this.#forgetAbort = onAbort(signal, () => this.#end(signal?.reason));
  }

  /** Throws the reason for which the wait has ended, if it has. */
  throwIfEnded(): void {
    if (this.#ended) throw this.#ended.reason;
  }

  /** Resolves when the wait is woken; rejects with the reason when it ends. It may resolve early. */
  sleep(): Promise<void> {
    return new Promise((resolve, reject) => {
      // Where promises belong to requests, the sleeping wait finds out by itself that it is woken.
      let stopLooking: (() => void) | undefined;
      if (this.#clock.perRequest) stopLooking = this.#clock.after(LOOK_AGAIN_MS, () => this.#endSleep?.());
      this.#endSleep = () => {
        this.#endSleep = undefined;
        this.#isWoken = false;
        stopLooking?.();
        if (this.#ended) reject(this.#ended.reason);
        else resolve();
      };
      if (this.#ended || this.#isWoken) this.#endSleep();
    });
  }

  /** Ends the sleep, or the next one at once when none is under way. */
  wake(): void {
    this.#isWoken = true;
    if (!this.#clock.perRequest) this.#endSleep?.();
  }

  /** The outcome of `work`; the reason as soon as the wait ends, or the reason of `stop` when that is aborted. */
  async during<T>(work: (signal: AbortSignal) => PromiseLike<T>, stop = new AbortController()): Promise<T> {
    this.throwIfEnded();
    this.#working = stop;
    try {
      return await abortable(work(stop.signal), stop.signal);
    } finally {
      this.#working = undefined;
    }
  }

  /** Takes timer and listener away. */
  close(): void {
    this.#stopTimer?.();
    this.#forgetAbort();
  }

  #end(reason: unknown): void {
    if (this.#ended) return;
    this.#ended = { reason };
    this.#endSleep?.();
    this.#working?.abort(reason);
  }
}

/** A read whose turn has come. */
interface ReadTurn {
  readonly watcher: JobWatcher;
  readonly subscriber: JobSubscriber;
  readonly wait: Wait;
  readonly stop: AbortController;
}

/** Reads the job and tells the watcher. Throws what ends the wait. */
async function readOnce(
  { readJob, maxRetryAfterMs }: FollowContext,
  { watcher, subscriber, wait, stop }: ReadTurn,
): Promise<void> {
  try {
    watcher.seen(subscriber, await wait.during((signal) => readJob(subscriber.entry.id, signal), stop));
  } catch (error) {
    wait.throwIfEnded();
    const isRestart = stop.signal.aborted && stop.signal.reason === RESTART;
    const ends = !isRestart && endsWait(error);
    watcher.missed(subscriber, { error: isRestart ? RESTART : error, ends, askedMs: askedMs(error, maxRetryAfterMs) });
    if (ends) throw error;
  }
}

function askedMs(error: unknown, most = DEFAULT_MAX_RETRY_AFTER_MS): number {
  const asked: unknown = typeof error === 'object' && error !== null ? Reflect.get(error, 'retryAfterMs') : undefined;
  return typeof asked === 'number' ? Math.min(asked, most) : 0;
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

/**
 * An event has ended the wait: the charge is learned by a read that nobody waits for, when one is free. Where no read shows
 * it, the end is told without it.
 */
function learnCharge(
  { learnsCharge, announced, readJob, maxRetryAfterMs }: FollowContext,
  watcher: JobWatcher,
  subscriber: JobSubscriber,
  { id, status }: Job,
): void {
  if (!learnsCharge?.(id)) return;
  const inContext = callerContext();
  const lost = () => announced?.({ id, status });
  const read = async () => {
    const job = await inContext(() => readJob(id, new AbortController().signal));
    if (!isSettled(job)) throw new Error('The job is still shown as running.');
  };
  if (!watcher.readLater(subscriber, { id, read, askedMs: (error) => askedMs(error, maxRetryAfterMs), lost })) lost();
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
  if (!FAILURES[job.status] || !throwOnFailure) return job as CompletedJob;
  throw jobErrorOf(job);
}

/** The error of a job that has ended without a file. */
export function jobErrorOf(job: Job): JobError {
  const { id, status, errorCode, errorMessage } = job;
  const Failure = FAILURES[status] ?? JobError;
  const reason = [errorCode, errorMessage].filter(Boolean).join(': ');
  const error = new Failure(`Job ${id} ${status === 'failed' ? status : `was ${status}`}${reason && ` (${reason})`}.`, {
    job,
  });
  const advice = JOB_ADVICE[error.recovery];
  if (advice) error.message += ` ${advice}`;
  return error;
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
