import { seenFromCallerOf } from '../errors/stack.js';
import { ENDED, type JobProgress } from '../rules/lengths.js';
import { onAbort } from '../runtime/abort.js';
import type { Job } from '../schemas/job.js';
import type { Waiter } from './wait-for-job.js';
import type { WaitOptions } from './wait-options.js';

/** A job as a read has shown it, and how far it is. */
export interface JobUpdate extends JobProgress {
  /** The job. The last one is final. */
  readonly job: Job;
}

/**
 * The job each time that a read shows it, and at last the final job. Throws what `waitForJob` throws. Leaving the loop ends
 * the wait at once, not the job.
 */
export async function* watchJob(
  job: Job | string,
  waiter: Waiter,
  options: WaitOptions = {},
): AsyncGenerator<JobUpdate, void, undefined> {
  const { signal, onUpdate } = options;
  const stop = new AbortController();
  const forget = onAbort(signal, () => stop.abort(signal?.reason));
  const updates: JobUpdate[] = [];
  let wake = () => {};
  let hasEnded = false;
  let wasShown = false;
  const update = (seen: Job, progress: JobProgress) => {
    updates.push({ job: seen, ...progress });
    wasShown = true;
    wake();
    return onUpdate?.(seen, progress);
  };
  const wait = waiter.waitForJob(job, { ...options, signal: stop.signal, onUpdate: update });
  const ended = () => {
    hasEnded = true;
    wake();
  };
  wait.then(ended, ended);
  try {
    for (;;) {
      for (const next of updates.splice(0)) yield next;
      if (updates.length > 0) continue;
      if (hasEnded) break;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
    const final = await wait;
    // A job that was final before is not read.
    if (!wasShown) yield { job: final, ...ENDED };
  } catch (error) {
    throw seenFromCallerOf(error, watchJob);
  } finally {
    forget();
    stop.abort();
  }
}
