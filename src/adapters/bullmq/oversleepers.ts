import type { Queue } from 'bullmq';
import type { Clock } from '../../runtime/clock.js';
import type { GenJobData, GenJobResult } from './call-record.js';
import { type Notes, wakeCall } from './notes.js';

/** So far apart are the clocks of two workers that need no help. */
const CLOCKS_APART_MS = 5_000;
/** So many calls are looked at in one go. */
const PAGE = 100;

/**
 * Wakes calls that another worker has put to sleep by a clock that is ahead: when that worker has died, they would sleep
 * longer by as much. A record that was stored in the future shows it. Each time it looks at the next calls that have a job.
 */
export function wakeOversleepers({
  notes,
  queue,
  clock,
}: {
  readonly notes: Pick<Notes, 'owners'>;
  readonly queue: Pick<Queue<GenJobData, GenJobResult>, 'getJob'>;
  readonly clock: Pick<Clock, 'now'>;
}): () => Promise<void> {
  let from = 0;
  return async () => {
    const page = await notes.owners(from, PAGE);
    from = page.length < PAGE ? 0 : from + PAGE;
    for (const id of page) {
      const call = await queue.getJob(id);
      const isAhead = (call?.data.storedAt ?? 0) > clock.now() + CLOCKS_APART_MS;
      if (isAhead) await wakeCall(queue, id, { lifo: false });
    }
  };
}
