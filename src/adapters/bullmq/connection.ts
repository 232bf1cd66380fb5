// The connection of a queue, and the index by which a webhook finds its call.
import { type ConnectionOptions, Queue } from 'bullmq';
import { GenError } from '../../errors/index.js';
import * as option from '../../rules/options.js';
import { systemClock } from '../../runtime/clock.js';
import { sleep } from '../../runtime/deadline.js';

/** Options that must be the same for queue and worker. */
export interface QueueLocation {
  /** The queue's name. It must not end with `.gen-client-jobs`. @default 'gen-client' */
  readonly name?: string | undefined;
  /** The prefix of all keys in Redis. On a Redis Cluster it needs a hash tag: `'{gen}'`. @default 'bull' */
  readonly prefix?: string | undefined;
}

export const LOCATION_FIELDS = { name: option.text, prefix: option.text } as const;

/** Suffix of the index queue's name. */
const INDEX_SUFFIX = '.gen-client-jobs';

/** The two queues behind one name: the calls, and the index of their jobs. */
export function queueNames(connection: ConnectionOptions, { name = 'gen-client', prefix }: QueueLocation) {
  const options = { connection, ...(prefix !== undefined && { prefix }) };
  return { calls: name, index: name + INDEX_SUFFIX, options };
}

/** Throws a GenError for a connection or a name that can never work, before a connection is opened. */
export function checkConnection(owner: string, connection: unknown, { name = '', prefix = '' }: QueueLocation): void {
  if (name.endsWith(INDEX_SUFFIX)) {
    throw new GenError(
      `${owner}: name must not end with "${INDEX_SUFFIX}", because another queue stores its jobs there. Pass another name.`,
    );
  }
  if (typeof connection !== 'object' || connection === null || connection instanceof URL) {
    // Not in the message, because the URL may contain a password.
    const isNothing = connection === undefined || connection === null;
    const given = isNothing ? 'nothing' : connection instanceof URL ? 'a URL' : `a ${typeof connection}`;
    throw new GenError(
      `${owner}: connection must be what BullMQ accepts, not ${given}. Pass { url: 'redis://…' }, or a Redis client.`,
    );
  }
  if (Reflect.get(connection, 'isCluster') === true && !/\{[^{}]+\}/.test(prefix)) {
    throw new GenError(
      `${owner}: prefix needs a hash tag, because a Redis Cluster must keep all keys of a queue on one node. Pass { prefix: '{gen}' } to the queue and to every worker.`,
    );
  }
}

/** A part of the engine that has its own connection. */
interface Closable {
  close(): Promise<void>;
  /** Closes the connection immediately. */
  disconnect?(): Promise<void>;
}

const CLOSE_MS = 4_500;

/** Closes parts in order. After 4.5 seconds, because Redis is unavailable, it cuts their connections. */
export async function closeInTime(connection: ConnectionOptions, parts: readonly Closable[]): Promise<void> {
  const isClosed = new AbortController();
  const closeAll = async () => {
    for (const part of parts) await part.close();
  };
  const late = async () => {
    await sleep(systemClock, CLOSE_MS, isClosed.signal);
    // The caller closes a client that the caller created.
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
 * Lifetime of an index entry that isn't removed, because its webhook belongs to a job created elsewhere or its call was removed
 * manually. A call that runs longer adds its entry again at each poll.
 */
const KEPT_MS = 60 * 60 * 1000;

const MAX_REMOVED_AT_ONCE = 1000;
const PAGE = 100;

export type JobIndex = ReturnType<typeof openJobIndex>;

/**
 * Finds the call of a job, and stores wakes for calls that are not asleep. It uses the queue's own interface instead of Redis
 * commands, so that it works on every backend of the engine: no worker reads this second queue.
 *
 * A call waits in the list of that queue, so the length of the list is the number of running jobs. A wake is a delayed record.
 */
export function openJobIndex(connection: ConnectionOptions, location: QueueLocation) {
  const { index, options } = queueNames(connection, location);
  const queue = new Queue<{ readonly queueJobId?: string }>(index, options);
  let from = 0;
  queue.on('error', () => {
    // The engine reconnects. The call that needs the connection gets the error.
  });
  const hasWake = async (jobId: string) => (await queue.getJob(wakeId(jobId))) !== undefined;
  return {
    hasWake,
    /** The queue job that waits for a job of the service. */
    callOf: async (jobId: string) => (await queue.getJob(callId(jobId)))?.data.queueJobId,
    async add(jobId: string, queueJobId: string): Promise<void> {
      await queue.add('call', { queueJobId }, { jobId: callId(jobId) });
    },
    /** The number of jobs that calls wait for, including calls that were removed since the last sweep. */
    size: () => queue.getWaitingCount(),
    async wake(jobId: string): Promise<void> {
      await queue.add('wake', {}, { jobId: wakeId(jobId), delay: KEPT_MS });
    },
    /** Removes the wake of a webhook. Returns true if there was one. */
    async consumeWake(jobId: string) {
      // The engine reports a removal even if there was no record.
      const isWoken = await hasWake(jobId);
      if (isWoken) await queue.remove(wakeId(jobId));
      return isWoken;
    },
    /** Removes a job whose call no longer waits for it. */
    async remove(jobId: string) {
      await queue.remove(wakeId(jobId));
      await queue.remove(callId(jobId));
    },
    /** Removes expired entries, and some of the jobs whose calls were removed manually, because they would slow down polling. */
    async sweep(calls: Pick<Queue, 'getJob'>) {
      for (const type of ['wait', 'delayed'] as const) {
        while ((await queue.clean(KEPT_MS, MAX_REMOVED_AT_ONCE, type)).length === MAX_REMOVED_AT_ONCE);
      }
      const page = await queue.getWaiting(from, from + PAGE - 1);
      from = page.length < PAGE ? 0 : from + PAGE;
      for (const { id = '', data } of page) {
        if ((await calls.getJob(data.queueJobId ?? '')) === undefined) await queue.remove(id);
      }
    },
    close: () => queue.close(),
    disconnect: () => queue.disconnect(),
  };
}

// The engine accepts neither a colon nor a bare number as an ID.
const callId = (jobId: string) => `call-${encodeURIComponent(jobId)}`;
const wakeId = (jobId: string) => `wake-${encodeURIComponent(jobId)}`;

/** Wakes a sleeping call, ahead of all others. A call that is awake finds the wake in the index. */
export async function wakeCall(queue: Pick<Queue, 'getJob'>, queueJobId: string): Promise<void> {
  const job = await queue.getJob(queueJobId);
  if (!job || !(await job.isDelayed())) return;
  try {
    await job.promote();
  } catch (error) {
    // Its delay ended between the two commands.
    if (await job.isDelayed()) throw error;
  }
  // The engine puts promoted jobs at the end of the queue.
  await job.changePriority({ priority: 0, lifo: true });
}
