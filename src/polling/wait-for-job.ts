import { type Clock, systemClock } from '../clock.js';
import {
  GenError,
  JobBlockedError,
  JobCanceledError,
  type JobError,
  JobFailedError,
  WaitTimeoutError,
} from '../errors/index.js';
import { AbortFan } from '../limits/abort-fan.js';
import { type CompletedJob, isFinal, type Job } from '../schemas/job.js';
import { JobWatcher } from './job-watcher.js';
import type { WaitOptions } from './wait-options.js';

/** Where the one scheduler of an account is kept. */
export interface SharedState {
  shared<T extends object>(name: string, make: () => T): T;
}

/** What a waiter needs of the client. */
export interface WaiterPorts {
  /** Reads the job once; a failed read is not repeated, because the watcher does that. */
  readonly readJob: (id: string, signal: AbortSignal) => Promise<Job>;
  /** What all clients of the account share. */
  readonly account: () => Promise<SharedState>;
  /** @default the runtime's own */
  readonly clock?: Clock | undefined;
  /** Told of an `onUpdate` that threw, which must not end the wait. */
  readonly warn?: ((message: string) => void) | undefined;
}

/** The part of a webhook event that says which job it is about. */
export interface JobNotice {
  readonly data: { readonly job: { readonly id: string } };
}

/** Waits for jobs; all waits under one account share one scheduler. */
export interface Waiter {
  /** Resolves with the final job; see {@link WaitOptions}. */
  waitForJob(job: Job | string, options: WaitOptions & { readonly throwOnFailure: false }): Promise<Job>;
  waitForJob(job: Job | string, options?: WaitOptions): Promise<CompletedJob>;
  /** Wakes the waits on the event's job, which read it at once. */
  notify(event: JobNotice): void;
  /** For those who wait between two calls. */
  readonly clock: Clock;
}

/** How long a wait lasts at most unless it says otherwise. */
export const DEFAULT_TIMEOUT_MS = 30 * 60_000;
/** Copies of the package share the scheduler by this name; the number is the protocol's. */
const WATCHER = 'watcher/1';

/** Makes the waiting of one client. */
export function createWaiter(ports: WaiterPorts): Waiter {
  const clock = ports.clock ?? systemClock;
  const aborts = new AbortFan();
  const watcher = async () => (await ports.account()).shared(WATCHER, () => new JobWatcher(clock));

  async function waitForJob(target: Job | string, options: WaitOptions = {}): Promise<CompletedJob> {
    const { id, job } = targetOf(target);
    checkWait(options);
    const timeoutMs =
      options.timeoutMs === false ? Number.POSITIVE_INFINITY : (options.timeoutMs ?? DEFAULT_TIMEOUT_MS);
    options.signal?.throwIfAborted();
    if (job && isFinal(job)) return outcome(job, options);
    return outcome(await follow({ ...ports, clock, aborts, watcher }, { id, job, timeoutMs, options }), options);
  }

  return {
    waitForJob,
    notify(event) {
      const id: unknown = event?.data?.job?.id;
      // Without a key there are no waits to wake.
      if (typeof id === 'string')
        watcher().then(
          (shared) => shared.notify(id),
          () => {},
        );
    },
    clock,
  };
}

interface Following {
  readonly id: string;
  readonly job: Job | undefined;
  readonly timeoutMs: number;
  readonly options: WaitOptions;
}

interface FollowPorts extends WaiterPorts {
  readonly clock: Clock;
  readonly aborts: AbortFan;
  readonly watcher: () => Promise<JobWatcher>;
}

/** Follows a job to its final status. Whatever ends it takes timer, listener and watch along. */
function follow(ports: FollowPorts, { id, job: known, timeoutMs, options }: Following): Promise<Job> {
  const { readJob, watcher, clock, aborts, warn } = ports;
  const { signal, pollIntervalMs, onUpdate } = options;
  return new Promise((resolve, reject) => {
    let job = known;
    let cause: unknown;
    let open = true;
    let leave = () => {};
    const close = () => {
      open = false;
      stopTimer();
      forgetAbort();
      leave();
    };
    const fail = (error: unknown) => {
      close();
      reject(error);
    };
    const stopTimer =
      timeoutMs < Number.POSITIVE_INFINITY
        ? clock.after(timeoutMs, () => fail(timedOut({ id, job, timeoutMs, cause })))
        : () => {};
    const forgetAbort = aborts.on(signal, () => fail(signal?.reason));
    const onRead = (read: Job) => {
      if (!open) return;
      job = read;
      cause = undefined;
      try {
        onUpdate?.(read);
      } catch (error) {
        warn?.(`onUpdate threw, the wait for job ${id} goes on: ${error}`);
      }
      if (open && isFinal(read)) {
        close();
        resolve(read);
      }
    };
    const onMiss = (error: unknown, ends: boolean) => {
      cause = error;
      if (open && ends) fail(error);
    };
    watcher().then((shared) => {
      if (open) leave = shared.watch(id, { readJob, job, pollIntervalMs, onRead, onMiss });
    }, fail);
  });
}

function timedOut(seen: { id: string; job: Job | undefined; timeoutMs: number; cause: unknown }): WaitTimeoutError {
  const state = seen.job ? `was ${seen.job.status} when last read` : 'could not be read';
  return new WaitTimeoutError(
    `Job ${seen.id} did not end within ${seen.timeoutMs} ms (it ${state}). It goes on: wait again, or raise timeoutMs.`,
    { ...seen, jobId: seen.id },
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
  const { id, status } = Object(target);
  if (typeof id !== 'string' || !id)
    throw new GenError('waitForJob takes a job or its id; of what a create gives, its job.');
  return { id, job: typeof status === 'string' ? (target as Job) : undefined };
}

/** Throws a {@link GenError} for numbers that are none, before anything is sent. */
export function checkWait({ timeoutMs = 1, pollIntervalMs = 1 }: WaitOptions): void {
  if (timeoutMs !== false && !(timeoutMs > 0))
    throw new GenError(`timeoutMs must be a positive number of milliseconds, or false for no limit, not ${timeoutMs}.`);
  if (!(pollIntervalMs > 0 && pollIntervalMs < Number.POSITIVE_INFINITY))
    throw new GenError(`pollIntervalMs must be a positive number of milliseconds, not ${pollIntervalMs}.`);
}
