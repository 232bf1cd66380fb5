import type { Queue } from 'bullmq';
import type { Clock } from '../../runtime/clock.js';
import type { GenJobData, GenJobResult } from './call-record.js';
import { type Notes, wakeCall } from './notes.js';

/** So far apart are the clocks of two workers that need no help. */
const CLOCKS_APART_MS = 5_000;
/** So many calls are looked at in one go. */
const PAGE = 100;

/**
 * Looks at the next calls that have a job, each time it is called. Wakes those that another worker has put to sleep by a
 * clock that is ahead, which a record that was stored in the future shows: when that worker has died, they would sleep longer
 * by as much. Forgets the notes of calls that somebody has removed, so that they do not count in the pace of the reads.
 */
export function createSweep({
  notes,
  queue,
  clock,
}: {
  readonly notes: Pick<Notes, 'owners' | 'forget'>;
  readonly queue: Pick<Queue<GenJobData, GenJobResult>, 'getJob'>;
  readonly clock: Pick<Clock, 'now'>;
}): () => Promise<void> {
  let from = 0;
  return async () => {
    const page = await notes.owners(from, PAGE);
    from = page.length < PAGE ? 0 : from + PAGE;
    for (const { jobId, queueJobId } of page) {
      const call = await queue.getJob(queueJobId);
      if (call === undefined) await notes.forget(jobId);
      else if ((call.data.storedAt ?? 0) > clock.now() + CLOCKS_APART_MS)
        await wakeCall(queue, queueJobId, { lifo: false });
    }
  };
}
