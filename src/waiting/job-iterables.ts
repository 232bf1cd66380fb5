import { seenFromCallerOf } from '../errors/gen-error.js';
import { GenError } from '../errors/index.js';
import { ENDED, type JobProgress } from '../rules/polling.js';
import { onAbort } from '../runtime/deadline.js';
import { invalidValueMessage } from '../schemas/format-value.js';
import { isCompleted, type Job } from '../schemas/job.js';
import type { JobWaits } from './job-waits.js';
import { outcomeOf } from './wait.js';
import type { WaitOptions } from './wait-options.js';

/** A job's state after a poll, and its progress. */
export interface JobUpdate extends JobProgress {
  /** Polled job. In the last update, it is final. */
  readonly job: Job;
}

/**
 * Yields the job after each poll, and the final job last. Throws what `waitForJob` throws. Exiting the loop ends the wait, but
 * doesn't cancel the job.
 */
export async function* watchJob(
  job: Job | string,
  jobWaits: JobWaits,
  options: WaitOptions = {},
): AsyncGenerator<JobUpdate, void, undefined> {
  const { signal, onUpdate } = options;
  const stop = new AbortController();
  const removeListener = onAbort(signal, () => stop.abort(signal?.reason));
  const updates = createFeed<JobUpdate>();
  let hasUpdated = false;
  const update = (polled: Job, progress: JobProgress) => {
    updates.push({ job: polled, ...progress });
    hasUpdated = true;
    return onUpdate?.(polled, progress);
  };
  const wait = jobWaits.waitInLoop(job, { ...options, signal: stop.signal, onUpdate: update });
  wait.then(updates.close, updates.close);
  try {
    yield* updates.values();
    const finalJob = await wait;
    // A job that is already final isn't polled.
    if (!hasUpdated && (isCompleted(finalJob) || options.throwOnFailure === false)) yield { job: finalJob, ...ENDED };
    jobWaits.markDelivered(finalJob);
    outcomeOf(finalJob, options.throwOnFailure);
  } catch (error) {
    throw seenFromCallerOf(error, watchJob);
  } finally {
    removeListener();
    stop.abort();
  }
}

/**
 * Yields the jobs in completion order. A failed job is yielded like any other, unless `throwOnFailure` is true.
 *
 * If a wait fails (for example, for an unknown ID or a timeout), the others continue. The error is thrown after the
 * last job, several as an AggregateError. An abort throws immediately. Exiting the loop ends all waits, but
 * doesn't cancel the jobs.
 */
export async function* waitForJobs(
  jobs: Iterable<Job | string>,
  jobWaits: JobWaits,
  options: WaitOptions = {},
): AsyncGenerator<Job, void, undefined> {
  // A string is iterable, so its characters would become job IDs.
  if (typeof jobs === 'string' || typeof jobs?.[Symbol.iterator] !== 'function') {
    throw new GenError(invalidValueMessage('waitForJobs: jobs', 'a list such as [first.id, second]', jobs));
  }
  const { throwOnFailure = false } = options;
  const waitForOne = (job: Job | string, signal: AbortSignal) => jobWaits.waitInLoop(job, { ...options, signal });
  try {
    for await (const job of inCompletionOrder(jobs, waitForOne, options.signal, 'could not be waited for')) {
      if (throwOnFailure) jobWaits.markDelivered(job);
      yield outcomeOf(job, throwOnFailure);
      // The caller requested the next job, so it has handled this one.
      jobWaits.markDelivered(job);
    }
  } catch (error) {
    throw seenFromCallerOf(error, waitForJobs);
  }
}

/**
 * Yields the results in completion order, and then throws the collected errors. An abort of `signal` throws immediately. Exiting
 * the loop aborts the signal that `waitForResult` receives. `failureText` completes the message "2 jobs …".
 */
export async function* inCompletionOrder<T, R extends object>(
  items: Iterable<T>,
  waitForResult: (item: T, signal: AbortSignal) => Promise<R>,
  signal: AbortSignal | undefined,
  failureText: string,
): AsyncGenerator<R, void, undefined> {
  const stop = new AbortController();
  const results = createFeed<R>();
  const errors: unknown[] = [];
  const removeListener = onAbort(signal, () => {
    stop.abort(signal?.reason);
    results.close();
  });
  try {
    const waits = Array.from(items, (item) =>
      waitForResult(item, stop.signal).then(results.push, (error) => void errors.push(error)),
    );
    Promise.all(waits).then(results.close);
    for await (const result of results.values()) {
      signal?.throwIfAborted();
      yield result;
    }
    signal?.throwIfAborted();
  } finally {
    removeListener();
    stop.abort();
  }
  if (errors.length > 1) throw new AggregateError(errors, `${errors.length} jobs ${failureText}.`);
  if (errors.length > 0) throw errors[0];
}

/** A queue of values for one consumer, open until `close` is called. */
function createFeed<T extends object>() {
  const queue: T[] = [];
  let isOpen = true;
  let wake = () => {};
  return {
    push(value: T) {
      queue.push(value);
      wake();
    },
    close() {
      isOpen = false;
      wake();
    },
    async *values(): AsyncGenerator<T, void, undefined> {
      for (;;) {
        const value = queue.shift();
        if (value !== undefined) yield value;
        else if (!isOpen) return;
        else {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      }
    },
  };
}
