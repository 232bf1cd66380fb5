import { GenError } from '../errors/index.js';
import { seenFromCallerOf } from '../errors/stack.js';
import type { Job } from '../schemas/job.js';
import { mustBe } from '../schemas/show.js';
import type { Waiter } from './wait-for-job.js';
import type { WaitOptions } from './wait-options.js';

/**
 * The jobs in the order in which they end, whatever their status: one failed job of many must not cost the others. With
 * `throwOnFailure: true` the first one that did not complete throws its JobError instead.
 *
 * A job that cannot be waited for (an unknown id, a deadline) does not stop the others either: its error is thrown after
 * the last of them, several as an AggregateError. An abort throws at once. Leaving the loop ends all waits, not the jobs.
 */
export async function* waitForJobs(
  jobs: Iterable<Job | string>,
  waiter: Waiter,
  options: WaitOptions = {},
): AsyncGenerator<Job, void, undefined> {
  if (typeof jobs?.[Symbol.iterator] !== 'function') throw new GenError(mustBe('waitForJobs: jobs', 'a list', jobs));
  const { signal: outer, throwOnFailure = false } = options;
  const stop = new AbortController();
  const ended: Job[] = [];
  const errors: unknown[] = [];
  let open = 0;
  let wake = () => {};
  const abort = () => {
    stop.abort(outer?.reason);
    wake();
  };
  outer?.addEventListener('abort', abort, { once: true });
  try {
    for (const job of jobs) {
      open++;
      waiter
        .waitForJob(job, { ...options, signal: stop.signal, throwOnFailure: false })
        .then(
          (final) => ended.push(final),
          (error) => errors.push(error),
        )
        .then(() => {
          open--;
          wake();
        });
    }
    for (;;) {
      outer?.throwIfAborted();
      for (const job of ended.splice(0)) yield throwOnFailure ? await waiter.waitForJob(job) : job;
      if (ended.length > 0) continue;
      if (open === 0) break;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  } finally {
    outer?.removeEventListener('abort', abort);
    stop.abort();
  }
  if (errors.length > 1) throw new AggregateError(errors, `${errors.length} jobs could not be waited for.`);
  if (errors.length > 0) throw seenFromCallerOf(errors[0], waitForJobs);
}
