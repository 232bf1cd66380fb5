import type { Worker } from 'bullmq';
import { GenError } from '../../errors/index.js';
import { backoff } from '../../rules/backoff.js';
import { DAY_MS } from '../../rules/limits.js';
import type { Clock } from '../../runtime/clock.js';
import { sleep } from '../../runtime/deadline.js';
import type { GenJobData, GenJobResult, GenQueueJob } from './call-record.js';

interface Telling {
  readonly onFailed?: ((error: GenError, queueJob: GenQueueJob) => unknown) | undefined;
  readonly onError: (error: Error) => void;
  readonly closing: AbortSignal;
  readonly clock: Clock;
}

const PAUSES = { firstMs: 1_000, mostMs: 60_000 };

/**
 * Calls `onFailed` for a call that the engine has failed by itself: a hand-written child of a flow that has used up its
 * attempts, a parent whose child has failed. Its record has no failure of ours.
 */
export function tellEngineFailures(worker: Worker<GenJobData, GenJobResult>, telling: Telling): void {
  worker.on('failed', (queueJob, reason) => {
    // One that is not finished is tried again by the engine.
    if (queueJob === undefined || queueJob.finishedOn === undefined || queueJob.data.failure !== undefined) return;
    const { id = '', data } = queueJob;
    const job = data.jobId === undefined ? '' : ` Its job is ${data.jobId}, and retry() of its record takes it up.`;
    const error = new GenError(`The engine has ended "${id}": ${reason.message}.${job}`, {
      cause: reason,
      recovery: 'retry',
    });
    tell(queueJob, error, telling).catch(telling.onError);
  });
}

async function tell(
  queueJob: GenQueueJob,
  error: GenError,
  { onFailed, onError, closing, clock }: Telling,
): Promise<void> {
  const until = clock.now() + DAY_MS;
  for (let failures = 1; ; failures++) {
    try {
      await onFailed?.(error, queueJob);
      break;
    } catch (thrown) {
      if (clock.now() >= until) throw thrown;
      onError(thrown instanceof Error ? thrown : new Error(String(thrown)));
      await sleep(clock, backoff(PAUSES, failures), closing);
    }
  }
  // Also where the engine keeps no record of a failed call.
  await queueJob
    .updateData({ ...queueJob.data, failure: error.toJSON(), stalls: queueJob.stalledCounter })
    .catch(() => {});
}
