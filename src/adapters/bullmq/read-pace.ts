import type { Queue } from 'bullmq';
import type { GenClient } from '../../client/client.js';
import type { CallKind } from '../../client/run-calls.js';
import { queuedReadMs } from '../../rules/read-order.js';
import { systemRandom } from '../../runtime/clock.js';
import type { Creates } from './creates.js';
import type { Notes } from './notes.js';

/** What tells how many jobs are waited for. */
interface Counted {
  readonly client: Pick<GenClient, 'limits'>;
  readonly queue: Pick<Queue, 'getJobCountByTypes'>;
  readonly notes: Pick<Notes, 'owned'>;
  readonly creates: Pick<Creates, 'inLine'>;
}

/** Milliseconds until a job is read again. Notes of calls that somebody has removed by hand do not make it longer. */
export async function readPaceMs({ client, queue, notes, creates }: Counted, call: CallKind): Promise<number> {
  const unended = queue.getJobCountByTypes('active', 'delayed', 'waiting', 'prioritized', 'waiting-children');
  const [owned, calls, unmade] = await Promise.all([notes.owned(), unended, creates.inLine()]);
  const jobs = Math.max(1, Math.min(owned, calls - unmade));
  return queuedReadMs(call, jobs, client.limits()['jobs.get'], systemRandom.next());
}
