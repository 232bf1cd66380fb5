// The connection of a queue, and the notes by which a webhook finds its call.
import { type ConnectionOptions, Queue } from 'bullmq';
import { GenError } from '../../errors/index.js';
import * as option from '../../rules/options.js';
import { systemClock } from '../../runtime/clock.js';
import { sleep } from '../../runtime/deadline.js';

/** What queue and worker must agree on. */
export interface QueueLocation {
  /** The queue's name. @default 'gen-client' */
  readonly name?: string | undefined;
  /** The prefix of all keys in Redis. On a Redis Cluster it needs a hash tag: `'{gen}'`. @default 'bull' */
  readonly prefix?: string | undefined;
}

export const LOCATION_FIELDS = { name: option.text, prefix: option.text } as const;

/** The queues behind one name: the calls, and the notes by which a webhook finds its call. */
export function queueNames(connection: ConnectionOptions, { name = 'gen-client', prefix }: QueueLocation) {
  return { calls: name, notes: `${name}-notes`, options: { connection, ...(prefix !== undefined && { prefix }) } };
}

/** Throws a GenError for a connection that can never work, before one is opened. */
export function checkConnection(owner: string, connection: unknown, { prefix = '' }: QueueLocation): void {
  if (typeof connection !== 'object' || connection === null || connection instanceof URL) {
    // The URL may hold a password, so it is not repeated.
    const isNothing = connection === undefined || connection === null;
    const given = isNothing ? 'nothing' : connection instanceof URL ? 'a URL' : `a ${typeof connection}`;
    throw new GenError(
      `${owner} takes the connection as BullMQ does, not ${given}: pass { url: 'redis://…' }, or a client of Redis.`,
    );
  }
  if (Reflect.get(connection, 'isCluster') === true && !/\{[^{}]+\}/.test(prefix)) {
    throw new GenError(
      `${owner}: on a Redis Cluster, all keys of a queue have to be on one node. Pass a prefix with a hash tag to the queue and to every worker: { prefix: '{gen}' }.`,
    );
  }
}

/** A part of the engine with a connection of its own. */
interface Closable {
  close(): Promise<void>;
  /** Cuts the connection without a word to Redis. */
  disconnect?(): Promise<void>;
}

const CLOSE_MS = 4_500;

/** Closes what was opened on the connection, one after the other. When that takes too long, because Redis is away, it is cut. */
export async function closeInTime(connection: ConnectionOptions, parts: readonly Closable[]): Promise<void> {
  const isClosed = new AbortController();
  const closeAll = async () => {
    for (const part of parts) await part.close();
  };
  const late = async () => {
    await sleep(systemClock, CLOSE_MS, isClosed.signal);
    // A client that the caller made is the caller's to close.
    if ('disconnect' in connection) return;
    for (const part of parts) part.disconnect?.().catch(() => {});
  };
  try {
    await Promise.race([closeAll(), late()]);
  } finally {
    isClosed.abort();
  }
}

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
    /** How many jobs of the service are waited for, also by calls that were removed since the last sweep. */
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

/** Wakes a sleeping call, in front of all others. One that is not asleep sees it by itself. */
export async function wakeCall(queue: Pick<Queue, 'getJob'>, queueJobId: string): Promise<void> {
  const job = await queue.getJob(queueJobId);
  if (!job || !(await job.isDelayed())) return;
  try {
    await job.promote();
  } catch (error) {
    // It woke by itself between the two calls.
    if (await job.isDelayed()) throw error;
  }
  // Promoted calls go to the end of the line; this one has something to bring.
  await job.changePriority({ priority: 0, lifo: true });
}

const PAGE = 100;

/** Forgets the notes of calls that somebody has removed, a page each time, so that they do not count in the pace of the reads. */
export function createSweep(notes: Notes, queue: Pick<Queue, 'getJob'>): () => Promise<void> {
  let from = 0;
  return async () => {
    const page = await notes.owners(from, PAGE);
    from = page.length < PAGE ? 0 : from + PAGE;
    for (const { jobId, queueJobId } of page) {
      if ((await queue.getJob(queueJobId)) === undefined) await notes.forget(jobId);
    }
  };
}
