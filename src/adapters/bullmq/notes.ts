import { type ConnectionOptions, Queue } from 'bullmq';
import type { Clock } from '../../runtime/clock.js';
import { type QueueLocation, queueNames } from './connection.js';

/**
 * How long a note is kept that nobody takes back: a webhook may be for a job made elsewhere, and a call may be removed by
 * hand. A call that runs longer writes its note again at each read.
 */
const NOTE_KEPT_MS = 60 * 60 * 1000;

/** Records that one command removes. */
const CLEANED_AT_ONCE = 1000;

export type Notes = ReturnType<typeof openNotes>;

/**
 * What is known of the service's jobs by their own ids, kept as records of a second queue that no worker reads. Built on
 * the queue's own interface and not on Redis commands, so that it holds on every backend of the engine.
 *
 * An owner waits in the list of that queue, so its length tells how many jobs are under way. A wake is a delayed record.
 */
export function openNotes(connection: ConnectionOptions, location: QueueLocation) {
  const { notes, options } = queueNames(connection, location);
  const queue = new Queue<{ readonly queueJobId?: string }>(notes, options);
  queue.on('error', () => {
    // The engine reconnects by itself; the call that needs the connection gets the error.
  });
  const woken = async (jobId: string) => (await queue.getJob(wakeNote(jobId))) !== undefined;
  return {
    woken,
    /** Which queue job waits for this job of the service. */
    owner: async (jobId: string) => (await queue.getJob(ownerNote(jobId)))?.data.queueJobId,
    async own(jobId: string, queueJobId: string): Promise<void> {
      await queue.add('owner', { queueJobId }, { jobId: ownerNote(jobId) });
    },
    /** How many jobs of the service are waited for, also by calls that somebody has removed meanwhile. */
    owned: () => queue.getWaitingCount(),
    /** The jobs of the service and the queue jobs that wait for them: so many of them, from the given one on. */
    async owners(from: number, count: number) {
      const owners = await queue.getWaiting(from, from + count - 1);
      return owners.map(({ id = '', data: { queueJobId = '' } }) => ({
        jobId: decodeURIComponent(id.slice(OWNER.length)),
        queueJobId,
      }));
    },
    async wake(jobId: string): Promise<void> {
      await queue.add('wake', {}, { jobId: wakeNote(jobId), delay: NOTE_KEPT_MS });
    },
    /** Whether a webhook came, taken back: the read that it asks for is about to be made. */
    async takeWake(jobId: string) {
      // The engine says that it has removed a record also where there was none.
      const isWoken = await woken(jobId);
      if (isWoken) await queue.remove(wakeNote(jobId));
      return isWoken;
    },
    /** The call of the job has ended. */
    async forget(jobId: string) {
      await queue.remove(wakeNote(jobId));
      await queue.remove(ownerNote(jobId));
    },
    /** Drops what has been kept for too long. */
    async clean() {
      for (const type of ['wait', 'delayed'] as const) {
        while ((await queue.clean(NOTE_KEPT_MS, CLEANED_AT_ONCE, type)).length === CLEANED_AT_ONCE);
      }
    },
    close: () => queue.close(),
    disconnect: () => queue.disconnect(),
  };
}

// The engine takes neither a colon nor a bare number for an id.
const OWNER = 'owner-';
const ownerNote = (jobId: string) => OWNER + encodeURIComponent(jobId);
const wakeNote = (jobId: string) => `wake-${encodeURIComponent(jobId)}`;

/** Wakes a sleeping call, in front of all others or behind those that are awake. One that is not asleep sees it by itself. */
export async function wakeCall(
  queue: Pick<Queue, 'getJob'>,
  queueJobId: string,
  { lifo }: { readonly lifo: boolean } = { lifo: true },
): Promise<void> {
  const job = await queue.getJob(queueJobId);
  if (!job || !(await job.isDelayed())) return;
  try {
    await job.promote();
  } catch (error) {
    // It woke by itself between the two calls.
    if (await job.isDelayed()) throw error;
  }
  // Promoted calls go to the end of the line; this one has something to bring.
  await job.changePriority({ priority: 0, lifo });
}

/** So far apart are the clocks of two workers that need no help. */
const CLOCKS_APART_MS = 5_000;
const PAGE = 100;

/**
 * Looks at the next calls that have a job, each time it is called. Wakes those that another worker has put to sleep by a
 * clock that is ahead, which a record that was stored in the future shows: when that worker has died, they would sleep longer
 * by as much. Forgets the notes of calls that somebody has removed, so that they do not count in the pace of the reads.
 */
export function createSweep(notes: Notes, queue: Pick<Queue, 'getJob'>, clock: Clock): () => Promise<void> {
  let from = 0;
  return async () => {
    const page = await notes.owners(from, PAGE);
    from = page.length < PAGE ? 0 : from + PAGE;
    for (const { jobId, queueJobId } of page) {
      const call = await queue.getJob(queueJobId);
      const { storedAt = 0 }: { readonly storedAt?: number } = call?.data ?? {};
      if (call === undefined) await notes.forget(jobId);
      else if (storedAt > clock.now() + CLOCKS_APART_MS) await wakeCall(queue, queueJobId, { lifo: false });
    }
  };
}
