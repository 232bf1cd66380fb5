import { type Job as BullJob, type ConnectionOptions, Queue } from 'bullmq';
import { callObserver } from '../callbacks.js';
import type { DefaultVideoModel, EditModel, ImageModel, OpenString, VideoModel } from '../catalog.js';
import { checkOptions } from '../options.js';
import { recoverRules } from '../polling/recover-options.js';
import type { CallKind } from '../resources/run-calls.js';
import type { CharacterParams } from '../schemas/character-params.js';
import type { CheckedImageParams, ImageParams } from '../schemas/image-params.js';
import type { CheckedVideoEditParams, VideoEditParams } from '../schemas/video-edit-params.js';
import type { CheckedVideoParams, VideoParams } from '../schemas/video-params.js';
import { jobIdIn, type WebhookEvent } from '../schemas/webhook-event.js';
import { admitCall } from './admit-call.js';
import { storeFiles } from './call-files.js';
import { queueNames } from './connection.js';
import type { GenJobData, GenJobResult } from './job-data.js';
import { openNotes } from './notes.js';
import { ENQUEUE_OPTIONS, type EnqueueOptions, type GenQueueOptions, QUEUE_OPTIONS } from './queue-options.js';

/** A queued call as the engine holds it. */
export type GenQueueJob = BullJob<GenJobData, GenJobResult>;

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
   * Takes a verified webhook event. The call that waits for the event's job reads it at once, before any other call is
   * worked on, in whichever process it runs. An event without a job wakes nobody.
   */
  wake(event: WebhookEvent): Promise<void>;
  /** Closes the connections; what is queued stays. */
  close(): Promise<void>;
}

/** How often a call is tried again after an error of a callback or of the process. The key makes that safe. */
const DEFAULT_JOB_OPTIONS = { attempts: 5, backoff: { type: 'exponential', delay: 2000 } } as const;
/**
 * The engine takes jobs without a priority first. Calls get one until their job is made, so that running jobs are read
 * before new ones are created.
 */
export const UNMADE_PRIORITY = 1000;

/**
 * Opens the queue on a connection of BullMQ's kind (an ioredis client or its options).
 * Calls are made by {@link createGenWorker} in any number of processes. Throws a GenError for an option that does not exist.
 *
 * @example
 * const queue = createGenQueue({ url: 'redis://localhost' });
 * await queue.videos.create({ prompt: 'a fox at dawn' }, { jobId: 'order-17' });
 */
export function createGenQueue(connection: ConnectionOptions, options: GenQueueOptions = {}): GenQueue {
  checkOptions('createGenQueue', QUEUE_OPTIONS, options);
  const { onError } = options;
  const { calls, options: base } = queueNames(connection, options);
  const queue = new Queue<GenJobData, GenJobResult>(calls, base);
  // Without a listener the engine prints.
  queue.on('error', (error) => callObserver(() => onError?.(error)));
  const notes = openNotes(connection, options);
  const creator = (call: CallKind) => ({
    create: (params: object, given?: EnqueueOptions) => enqueue(queue, call, { params: { ...params }, options: given }),
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
      if (owner !== undefined) await wakeCall(queue, owner);
    },
    async close() {
      await notes.close();
      await queue.close();
    },
  };
}

/** Brings a sleeping call to the front. One that is not asleep is being worked on and sees the note. */
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

async function enqueue(
  queue: Queue<GenJobData, GenJobResult>,
  call: CallKind,
  asked: { readonly params: Record<string, unknown>; readonly options: EnqueueOptions | undefined },
): Promise<GenQueueJob> {
  checkOptions(`queue.${call}.create`, ENQUEUE_OPTIONS, asked.options);
  const { jobId, preflight = true, recover, cleanup, ...engine } = asked.options ?? {};
  const { idempotency_key, ...params } = asked.params;
  const id = admitCall({ call, params, preflight, jobId: jobId ?? idempotency_key });
  const data: GenJobData = {
    call,
    ...(await storeFiles(call, params, preflight)),
    ...(cleanup !== undefined && { cleanup }),
    ...(!preflight && { preflight }),
    ...(recover !== undefined && { recover: recoverRules(recover) }),
  };
  const priority = engine.priority ?? UNMADE_PRIORITY;
  return queue.add(call, data, { ...DEFAULT_JOB_OPTIONS, ...engine, priority, jobId: id });
}
