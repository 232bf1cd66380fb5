import { type ConnectionOptions, Queue } from 'bullmq';
import { type QueueLocation, queueNames } from './connection.js';

/** How long a note about a job that nobody asks for is kept: a webhook may be for a job made elsewhere. */
const NOTE_KEPT_MS = 24 * 60 * 60 * 1000;
const CLEANED_AT_ONCE = 1000;

/**
 * What is known of the service's jobs by their own ids, kept as records of a second queue that no worker reads. Built on
 * the queue's own interface and not on Redis commands, so that it holds on every backend of the engine.
 */
export interface Notes {
  /** Which queue job waits for this job of the service. */
  owner(jobId: string): Promise<string | undefined>;
  /** Says which queue job waits for it. */
  own(jobId: string, queueJobId: string): Promise<void>;
  /** Remembers that a webhook came. */
  wake(jobId: string): Promise<void>;
  /** Whether a webhook came. */
  woken(jobId: string): Promise<boolean>;
  /** Takes back that a webhook came: the read that it asked for is about to be made. */
  forgetWake(jobId: string): Promise<void>;
  /** Forgets the job: its call has ended. */
  forget(jobId: string): Promise<void>;
  /** Drops what has been kept for too long. */
  clean(): Promise<void>;
  close(): Promise<void>;
}

/** Opens the notes of a queue. */
export function openNotes(connection: ConnectionOptions, location: QueueLocation): Notes {
  const { notes, options } = queueNames(connection, location);
  const queue = new Queue<{ readonly queueJobId?: string }>(notes, options);
  queue.on('error', () => {
    // The engine reconnects by itself; the call that needs the connection gets the error.
  });
  const put = (id: string, queueJobId?: string) =>
    queue.add('note', { ...(queueJobId && { queueJobId }) }, { jobId: id });
  return {
    owner: async (jobId) => (await queue.getJob(ownerNote(jobId)))?.data.queueJobId,
    own: async (jobId, queueJobId) => void (await put(ownerNote(jobId), queueJobId)),
    wake: async (jobId) => void (await put(wakeNote(jobId))),
    woken: async (jobId) => (await queue.getJob(wakeNote(jobId))) !== undefined,
    forgetWake: async (jobId) => void (await queue.remove(wakeNote(jobId))),
    async forget(jobId) {
      await queue.remove(wakeNote(jobId));
      await queue.remove(ownerNote(jobId));
    },
    clean: async () => void (await queue.clean(NOTE_KEPT_MS, CLEANED_AT_ONCE, 'wait')),
    close: () => queue.close(),
  };
}

// The engine takes neither a colon nor a bare number for an id.
const ownerNote = (jobId: string) => `owner-${encodeURIComponent(jobId)}`;
const wakeNote = (jobId: string) => `wake-${encodeURIComponent(jobId)}`;
