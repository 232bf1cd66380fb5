import { type ConnectionOptions, Queue } from 'bullmq';
import type { DefaultVideoModel, EditModel, ImageModel, OpenString, VideoModel } from '../../catalog.js';
import type { CallKind } from '../../client/run-calls.js';
import * as option from '../../rules/options.js';
import { callObserver } from '../../runtime/callbacks.js';
import type { CharacterParams } from '../../schemas/character.js';
import type { CheckedImageParams, ImageParams } from '../../schemas/params.js';
import type {
  CheckedVideoEditParams,
  CheckedVideoParams,
  VideoEditParams,
  VideoParams,
} from '../../schemas/video-params.js';
import { jobIdIn, type WebhookEvent } from '../../schemas/webhook-event.js';
import type { GenJobData, GenJobResult, GenQueueJob } from './call-record.js';
import { checkConnection, closeInTime, LOCATION_FIELDS, type QueueLocation, queueNames } from './connection.js';
import { type EnqueueOptions, enqueueCall } from './enqueue.js';
import { openNotes, wakeCall } from './notes.js';

/** How to open a queue. */
export interface GenQueueOptions extends QueueLocation {
  /** Called with errors of the connection. The engine reconnects by itself. @default nothing is done with them */
  readonly onError?: ((error: Error) => void) | undefined;
}

const QUEUE_OPTIONS = option.optionsOf({ ...LOCATION_FIELDS, onError: option.callback });

/** Queues create calls and wakes those that wait. */
export interface GenQueue {
  /** The engine's own queue, for a dashboard. */
  readonly queue: Queue<GenJobData, GenJobResult>;
  /** Queues `images.create`. */
  readonly images: {
    create<M extends ImageModel | OpenString, P extends ImageParams>(
      params: CheckedImageParams<M, P>,
      options?: EnqueueOptions,
    ): Promise<GenQueueJob>;
  };
  /** Queues `videos.create`. */
  readonly videos: {
    create<M extends VideoModel | OpenString = DefaultVideoModel, P extends VideoParams = VideoParams>(
      params: CheckedVideoParams<M, P>,
      options?: EnqueueOptions,
    ): Promise<GenQueueJob>;
  };
  /** Queues `videoEdits.create`. */
  readonly videoEdits: {
    create<M extends EditModel | OpenString, P extends VideoEditParams>(
      params: CheckedVideoEditParams<M, P>,
      options?: EnqueueOptions,
    ): Promise<GenQueueJob>;
  };
  /** Queues `characters.create`, the one-off reference image. */
  readonly characters: { create(params: CharacterParams, options?: EnqueueOptions): Promise<GenQueueJob> };
  /**
   * Takes a verified webhook event. The call that waits for the event's job reads it at once, before any other call is
   * worked on, in whichever process it runs. An event without a job wakes nobody.
   */
  wake(event: WebhookEvent): Promise<void>;
  /** Closes the connections, within five seconds also while Redis is away. What is queued stays. */
  close(): Promise<void>;
}

/**
 * Opens the queue on a connection of BullMQ's kind (an ioredis client or its options).
 * Calls are made by {@link createGenWorker} in any number of processes. Throws a GenError for an option that does not exist,
 * and for a connection that can never work.
 *
 * @example
 * const queue = createGenQueue({ url: 'redis://localhost' });
 * await queue.videos.create({ prompt: 'a fox at dawn' }, { jobId: 'order-17' });
 */
export function createGenQueue(connection: ConnectionOptions, options: GenQueueOptions = {}): GenQueue {
  option.checkOptions('createGenQueue', QUEUE_OPTIONS, options);
  checkConnection('createGenQueue', connection, options);
  const { onError } = options;
  const { calls, options: base } = queueNames(connection, options);
  const queue = new Queue<GenJobData, GenJobResult>(calls, base);
  // Without a listener the engine prints.
  queue.on('error', (error: Error) => callObserver(() => onError?.(error)));
  const notes = openNotes(connection, options);
  const creator = (call: CallKind) => ({
    create: (params: object, given?: EnqueueOptions) => enqueueCall(queue, call, params, given),
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
    close: () => closeInTime(connection, [notes, queue]),
  };
}
