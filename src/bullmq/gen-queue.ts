import { type ConnectionOptions, Queue } from 'bullmq';
import type { DefaultVideoModel, EditModel, ImageModel, OpenString, VideoModel } from '../catalog.js';
import { GenError } from '../errors/index.js';
import { checkOptions } from '../options.js';
import type { CallKind } from '../resources/run-calls.js';
import { checkCharacter, checkImage, checkVideo, checkVideoEdit } from '../rules/preflight.js';
import { callObserver } from '../runtime/callbacks.js';
import { systemRandom } from '../runtime/random.js';
import type { CharacterParams } from '../schemas/character-params.js';
import type { CheckedImageParams, ImageParams } from '../schemas/image-params.js';
import type { CheckedVideoEditParams, VideoEditParams } from '../schemas/video-edit-params.js';
import type { CheckedVideoParams, VideoParams } from '../schemas/video-params.js';
import { jobIdIn, type WebhookEvent } from '../schemas/webhook-event.js';
import { idempotencyKeyOf } from '../transport/idempotency.js';
import { recoverRules } from '../waiting/wait-options.js';
import { storeFiles } from './call-files.js';
import { checkConnection, queueNames } from './connection.js';
import { type CreateTurn, enterLine, needsTurn } from './creates.js';
import { type GenJobData, type GenJobResult, type GenQueueJob, RECORD_VERSION, UNMADE_PRIORITY } from './job-data.js';
import { openNotes, wakeCall } from './notes.js';
import { ENQUEUE_OPTIONS, type EnqueueOptions, type GenQueueOptions, QUEUE_OPTIONS } from './queue-options.js';
import { anotherRun } from './stored-run.js';

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
  /** Closes the connections; what is queued stays. */
  close(): Promise<void>;
}

/** Only an error of the engine itself, for example of its Redis, uses up an attempt. The call is repeated under its key. */
const DEFAULT_JOB_OPTIONS = { attempts: Number.MAX_SAFE_INTEGER, backoff: { type: 'fixed', delay: 5_000 } } as const;
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
  checkOptions('createGenQueue', QUEUE_OPTIONS, options);
  checkConnection('createGenQueue', connection, options);
  const { onError } = options;
  const { calls, creates, options: base } = queueNames(connection, options);
  const queue = new Queue<GenJobData, GenJobResult>(calls, base);
  const turns = new Queue<CreateTurn>(creates, base);
  // Without a listener the engine prints.
  for (const each of [queue, turns]) each.on('error', (error: Error) => callObserver(() => onError?.(error)));
  const notes = openNotes(connection, options);
  const creator = (call: CallKind) => ({
    create: (params: object, given?: EnqueueOptions) =>
      enqueueCall({ queue, turns }, call, { params: { ...params }, options: given }),
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
      await turns.close();
      await queue.close();
    },
  };
}

/** A call that is to be queued. */
interface AskedCall {
  readonly call: CallKind;
  readonly params: Readonly<Record<string, unknown>>;
  readonly options: EnqueueOptions;
}

async function enqueueCall(
  { queue, turns }: { readonly queue: Queue<GenJobData, GenJobResult>; readonly turns: Queue<CreateTurn> },
  call: CallKind,
  {
    params: given,
    options = {},
  }: { readonly params: Record<string, unknown>; readonly options: EnqueueOptions | undefined },
): Promise<GenQueueJob> {
  const name = `queue.${call}.create`;
  refuseRepeat(name, options);
  checkOptions(name, ENQUEUE_OPTIONS, options);
  const { jobId, preflight = true, recover: _r, cleanup: _c, budgetScope: _b, again = false, ...engine } = options;
  const { idempotency_key, ...params } = given;
  const id = checkId(jobId ?? idempotency_key ?? systemRandom.uuid());
  // The worker's client checks again, and its logger gets what is only doubtful.
  if (preflight) CHECKS[call](params, () => {});
  const ended = await endedCall(queue, id);
  if (ended && !again) throw hasEnded(name, id, ended.failedReason);
  const data = await callRecord({ call, params, options });
  if (ended) return startAgain(ended, data);
  const priority = engine.priority ?? UNMADE_PRIORITY;
  const added = await queue.add(call, data, { ...DEFAULT_JOB_OPTIONS, ...engine, priority, jobId: id });
  // In line at once, so that the order is that of the calls. One that is not due yet gets in line when it is.
  const isDue = !engine.delay && !engine.parent && !engine.deduplication;
  if (isDue && needsTurn(call)) await enterLine(turns, id, priority);
  return added;
}

const CHECKS = {
  images: checkImage,
  videos: checkVideo,
  videoEdits: checkVideoEdit,
  characters: checkCharacter,
} as const;

/** The engine builds names from ids with colons, and takes bare numbers for its own. */
function checkId(id: unknown): string {
  if (typeof id !== 'string' || id === '' || id.includes(':') || /^-?\d+$/.test(id)) {
    throw new GenError(
      'jobId must be a string without a colon that is not a bare number, for example "order-17". Where it is left out, params.idempotency_key is used.',
    );
  }
  return idempotencyKeyOf(id, undefined);
}

/** The engine repeats jobs by schedulers, under ids of its own. */
function refuseRepeat(name: string, options: EnqueueOptions): void {
  if (!('repeat' in options)) return;
  throw new GenError(
    `${name} has no option "repeat". Repeat a job of your own with queue.queue.upsertJobScheduler in another queue, and call ${name} from it, with a jobId for each time.`,
  );
}

async function callRecord({ call, params, options }: AskedCall): Promise<GenJobData> {
  const { preflight = true, recover, cleanup, budgetScope } = options;
  return {
    version: RECORD_VERSION,
    call,
    ...(await storeFiles(call, params, preflight)),
    ...(cleanup !== undefined && { cleanup }),
    ...(!preflight && { preflight }),
    ...(recover !== undefined && { recover: recoverRules(recover) }),
    ...(budgetScope !== undefined && { budgetScope }),
  };
}

/** The call of this id, where it has ended. The engine would give it back and do nothing. */
async function endedCall(queue: Queue<GenJobData, GenJobResult>, id: string): Promise<GenQueueJob | undefined> {
  const job = await queue.getJob(id);
  return job?.finishedOn === undefined ? undefined : job;
}

function hasEnded(name: string, id: string, failedReason: string | undefined): GenError {
  const how = failedReason ? `has failed (${failedReason})` : 'has completed';
  return new GenError(
    `${name}: "${id}" ${how}, so it was not queued again. Its record is queue.queue.getJob(${JSON.stringify(id)}). Pass again: true to start it anew.`,
  );
}

/** Starts an ended call anew: a failed one as `retry()` does, a completed one with another create, under a key of its own. */
async function startAgain(ended: GenQueueJob, data: GenJobData): Promise<GenQueueJob> {
  const { run } = ended.data;
  if (ended.failedReason) {
    await ended.retry('failed');
  } else {
    await ended.updateData({ ...data, ...(run && { run: anotherRun(run) }) });
    await ended.retry('completed');
  }
  return ended;
}
