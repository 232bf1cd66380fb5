import type { ConnectionOptions } from 'bullmq';
import * as option from '../options.js';

/** The name of the queue when none is given. */
const DEFAULT_QUEUE = 'gen-client';

/** What queue and worker must agree on. */
export interface QueueLocation {
  /** The queue's name. @default 'gen-client' */
  readonly name?: string | undefined;
  /** The prefix of all keys in Redis. @default 'bull' */
  readonly prefix?: string | undefined;
}

/** The options that say where a queue is, as fields of a schema. */
export const LOCATION_FIELDS = { name: option.text, prefix: option.text } as const;

/** The two queues behind one name: the calls, and the notes by which a webhook finds its call. */
export interface QueueNames {
  readonly calls: string;
  readonly notes: string;
  readonly options: { readonly connection: ConnectionOptions; readonly prefix?: string };
}

/** Where the calls and the notes of a queue are. */
export function queueNames(connection: ConnectionOptions, location: QueueLocation): QueueNames {
  const calls = location.name ?? DEFAULT_QUEUE;
  return {
    calls,
    notes: `${calls}-notes`,
    options: { connection, ...(location.prefix !== undefined && { prefix: location.prefix }) },
  };
}
