import type { ConnectionOptions } from 'bullmq';
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
