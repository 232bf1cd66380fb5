// A queue's connection, and the index by which a webhook finds its call.
import { type ConnectionOptions, Queue } from 'bullmq';
import { GenError } from '../../errors/index.js';
import * as option from '../../rules/options.js';
import { systemClock } from '../../runtime/clock.js';
import { sleep } from '../../runtime/deadline.js';

/** Options that must be the same for queue and worker. */
export interface QueueLocation {
  /** Queue name. It must not end with `.gen-client-jobs`. @default 'gen-client' */
  readonly name?: string | undefined;
  /** Prefix of all keys in Redis. A Redis Cluster needs a hash tag, such as `'{gen}'`. @default 'bull' */
  readonly prefix?: string | undefined;
}

export const LOCATION_FIELDS = { name: option.text, prefix: option.text } as const;

/** Suffix of the index queue's name. */
const INDEX_SUFFIX = '.gen-client-jobs';

/** Returns the names of the two queues: the calls, and the index of their jobs. */
export function queueNames(connection: ConnectionOptions, { name = 'gen-client', prefix }: QueueLocation) {
  const options = { connection, ...(prefix !== undefined && { prefix }) };
  return { calls: name, index: name + INDEX_SUFFIX, options };
}

/** Throws a GenError for an invalid connection or name, before a connection is opened. */
export function checkConnection(owner: string, connection: unknown, { name = '', prefix = '' }: QueueLocation): void {
  if (name.endsWith(INDEX_SUFFIX)) {
    throw new GenError(
      `${owner}: name must not end with "${INDEX_SUFFIX}", because another queue stores its jobs there. Pass another name.`,
    );
  }
  if (typeof connection !== 'object' || connection === null || connection instanceof URL) {
    // Don't include the URL, because it may contain a password.
    const isMissing = connection === undefined || connection === null;
    const kind = isMissing ? 'nothing' : connection instanceof URL ? 'a URL' : `a ${typeof connection}`;
    throw new GenError(
      `${owner}: connection must be what BullMQ accepts, not ${kind}. Pass { url: 'redis://…' }, or a Redis client.`,
    );
  }
  if (Reflect.get(connection, 'isCluster') === true && !/\{[^{}]+\}/.test(prefix)) {
    throw new GenError(
      `${owner}: prefix needs a hash tag, because a Redis Cluster must keep all keys of a queue on one node. Pass { prefix: '{gen}' } to the queue and to every worker.`,
    );
  }
}

/** A BullMQ object with a connection. */
interface Closable {
  close(): Promise<void>;
  /** Closes the connection immediately. */
  disconnect?(): Promise<void>;
}

const CLOSE_TIMEOUT_MS = 4_500;

/** Closes the parts in order. If Redis is unavailable, disconnects them after 4.5 seconds. */
export async function closeInTime(connection: ConnectionOptions, parts: readonly Closable[]): Promise<void> {
  const timer = new AbortController();
  const closeAll = async () => {
    for (const part of parts) await part.close();
  };
  const disconnectAfterTimeout = async () => {
    await sleep(systemClock, CLOSE_TIMEOUT_MS, timer.signal);
    // The caller owns this client.
    if ('disconnect' in connection) return;
    for (const part of parts) part.disconnect?.().catch(() => {});
  };
  try {
    await Promise.race([closeAll(), disconnectAfterTimeout()]);
  } finally {
    timer.abort();
  }
}

/**
 * Lifetime of an index entry whose call was removed manually, or whose webhook belongs to a job created elsewhere. A call that
 * runs longer renews its entry at each poll.
 */
const ENTRY_TTL_MS = 60 * 60 * 1000;

const MAX_REMOVALS = 1000;
const PAGE_SIZE = 100;

export type JobIndex = ReturnType<typeof openJobIndex>;

/**
 * Opens the index that finds a job's call and stores wakes for calls that aren't asleep. The index is a second BullMQ
 * queue without workers, and not raw Redis commands, so that it works on every BullMQ backend.
 *
 * Each running job is a waiting record, so the queue's length is the number of running jobs. A wake is a delayed
 * record.
 */
export function openJobIndex(connection: ConnectionOptions, location: QueueLocation) {
  const { index, options } = queueNames(connection, location);
  const queue = new Queue<{ readonly queueJobId?: string }>(index, options);
  let offset = 0;
  queue.on('error', () => {
    // BullMQ reconnects. The call that needs the connection receives the error.
  });
  const hasWake = async (jobId: string) => (await queue.getJob(wakeId(jobId))) !== undefined;
  return {
    hasWake,
    /** Returns the ID of the queue job that waits for a job. */
    callOf: async (jobId: string) => (await queue.getJob(callId(jobId)))?.data.queueJobId,
    async add(jobId: string, queueJobId: string): Promise<void> {
      await queue.add('call', { queueJobId }, { jobId: callId(jobId) });
    },
    /** Returns the number of running jobs, including those whose calls were removed since the last sweep. */
    size: () => queue.getWaitingCount(),
    async wake(jobId: string): Promise<void> {
      await queue.add('wake', {}, { jobId: wakeId(jobId), delay: ENTRY_TTL_MS });
    },
    /** Removes the wake of a webhook. Returns true if there was one. */
    async consumeWake(jobId: string) {
      // BullMQ reports a removal even if there was no record.
      const isWoken = await hasWake(jobId);
      if (isWoken) await queue.remove(wakeId(jobId));
      return isWoken;
    },
    /** Removes a job whose call no longer waits for it. */
    async remove(jobId: string) {
      await queue.remove(wakeId(jobId));
      await queue.remove(callId(jobId));
    },
    /**
     * Removes expired entries and, in one page of entries, those whose calls were removed manually. Leftovers slow down
     * polling.
     */
    async sweep(calls: Pick<Queue, 'getJob'>) {
      for (const type of ['wait', 'delayed'] as const) {
        while ((await queue.clean(ENTRY_TTL_MS, MAX_REMOVALS, type)).length === MAX_REMOVALS);
      }
      const page = await queue.getWaiting(offset, offset + PAGE_SIZE - 1);
      offset = page.length < PAGE_SIZE ? 0 : offset + PAGE_SIZE;
      for (const { id = '', data } of page) {
        if ((await calls.getJob(data.queueJobId ?? '')) === undefined) await queue.remove(id);
      }
    },
    close: () => queue.close(),
    disconnect: () => queue.disconnect(),
  };
}

// BullMQ rejects IDs that contain a colon or are a bare number.
const callId = (jobId: string) => `call-${encodeURIComponent(jobId)}`;
const wakeId = (jobId: string) => `wake-${encodeURIComponent(jobId)}`;

/** Wakes a sleeping call and moves it to the front. A call that is awake finds the wake in the index. */
export async function wakeCall(queue: Pick<Queue, 'getJob'>, queueJobId: string): Promise<void> {
  const job = await queue.getJob(queueJobId);
  if (!job || !(await job.isDelayed())) return;
  try {
    await job.promote();
  } catch (error) {
    // The delay ended between the two commands.
    if (await job.isDelayed()) throw error;
  }
  // BullMQ appends promoted jobs to the queue.
  await job.changePriority({ priority: 0, lifo: true });
}
