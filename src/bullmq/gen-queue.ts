import { type Job as BullJob, type ConnectionOptions, type JobsOptions, Queue } from 'bullmq';
import type { DefaultVideoModel, EditModel, ImageModel, OpenString, VideoModel } from '../catalog.js';
import { GenError } from '../errors/index.js';
import type { CharacterParams } from '../schemas/character-params.js';
import type { CheckedImageParams, ImageParams } from '../schemas/image-params.js';
import type { CheckedVideoEditParams, VideoEditParams } from '../schemas/video-edit-params.js';
import type { CheckedVideoParams, VideoParams } from '../schemas/video-params.js';
import { jobIdIn, type WebhookEvent } from '../schemas/webhook-event.js';
import { type QueueLocation, queueNames } from './connection.js';
import type { CallKind, GenJobData, GenJobResult } from './job-data.js';
import { openNotes } from './notes.js';

/** A queued call as the engine holds it. */
export type GenQueueJob = BullJob<GenJobData, GenJobResult>;

/** How to queue a call. */
export interface EnqueueOptions extends Omit<JobsOptions, 'jobId'> {
  /**
   * The queue job's id, which is also the Idempotency-Key of the call. The same id never makes a second job, in the
   * queue or on the service. No colon and no bare number, as the engine wants it.
   * @default `params.idempotency_key`, else a fresh UUID
   */
  readonly jobId?: string;
}

/** Queues create calls and wakes those that wait. */
export interface GenQueue {
  /** The engine's own queue, for a dashboard. */
  readonly queue: Queue<GenJobData, GenJobResult>;
  /** Queues `images.create` (spec: POST /v1/images). */
  readonly images: {
    create<M extends ImageModel | OpenString, P extends ImageParams>(
      params: CheckedImageParams<M, P>,
      options?: EnqueueOptions,
    ): Promise<GenQueueJob>;
  };
  /** Queues `videos.create` (spec: POST /v1/videos). */
  readonly videos: {
    create<M extends VideoModel | OpenString = DefaultVideoModel, P extends VideoParams = VideoParams>(
      params: CheckedVideoParams<M, P>,
      options?: EnqueueOptions,
    ): Promise<GenQueueJob>;
  };
  /** Queues `videoEdits.create` (spec: POST /v1/video-edits). */
  readonly videoEdits: {
    create<M extends EditModel | OpenString, P extends VideoEditParams>(
      params: CheckedVideoEditParams<M, P>,
      options?: EnqueueOptions,
    ): Promise<GenQueueJob>;
  };
  /** Queues `characters.create`, the one-off reference image (spec: POST /v1/characters). */
  readonly characters: { create(params: CharacterParams, options?: EnqueueOptions): Promise<GenQueueJob> };
  /**
   * Hand it a verified webhook event. The call that waits for the job reads it at once, in whichever process it runs. An event
   * without a job wakes nobody.
   */
  wake(event: WebhookEvent): Promise<void>;
  /** Closes the connections; what is queued stays. */
  close(): Promise<void>;
}

/** How often a call is tried again after an error that is not the service's answer: the key makes that safe. */
const DEFAULT_JOB_OPTIONS = { attempts: 5, backoff: { type: 'exponential', delay: 2000 } } as const;

/**
 * Opens the queue on a connection of BullMQ's kind (an ioredis client or its options).
 * Calls are made by {@link createGenWorker} in any number of processes.
 */
export function createGenQueue(connection: ConnectionOptions, location: QueueLocation = {}): GenQueue {
  const { calls, options } = queueNames(connection, location);
  const queue = new Queue<GenJobData, GenJobResult>(calls, options);
  const notes = openNotes(connection, location);
  const creator = (call: CallKind) => ({
    create: (params: object, given: EnqueueOptions = {}) =>
      enqueue(queue, call, { params: { ...params }, options: given }),
  });
  return {
    queue,
    images: creator('images'),
    videos: creator('videos'),
    videoEdits: creator('videoEdits'),
    characters: creator('characters'),
    async wake(event) {
      const jobId = jobIdIn(event);
      if (jobId === undefined) return;
      // Noted first: a call that is just being made, or read, looks for the note before and after it goes to sleep.
      await notes.wake(jobId);
      const owner = await notes.owner(jobId);
      if (owner !== undefined) await promoteIfAsleep(queue, owner);
    },
    async close() {
      await notes.close();
      await queue.close();
    },
  };
}

/** Brings a sleeping call to the front. One that is not asleep is being worked on and sees the note. */
export async function promoteIfAsleep(queue: Pick<Queue, 'getJob'>, queueJobId: string): Promise<void> {
  const job = await queue.getJob(queueJobId);
  if (!job || !(await job.isDelayed())) return;
  try {
    await job.promote();
  } catch (error) {
    // It woke by itself between the two calls.
    if (await job.isDelayed()) throw error;
  }
}

async function enqueue(
  queue: Queue<GenJobData, GenJobResult>,
  call: CallKind,
  asked: { readonly params: Record<string, unknown>; readonly options: EnqueueOptions },
): Promise<GenQueueJob> {
  const { idempotency_key: key, ...params } = asked.params;
  const jobId = asked.options.jobId ?? key ?? crypto.randomUUID();
  if (typeof jobId !== 'string' || jobId === '' || jobId.includes(':') || /^-?\d+$/.test(jobId)) {
    throw new GenError('jobId must be a string without a colon that is not a bare number, for example "order-17".');
  }
  return queue.add(call, { call, params }, { ...DEFAULT_JOB_OPTIONS, ...asked.options, jobId });
}
