import { type ConnectionOptions, type JobsOptions, Queue } from 'bullmq';
import type { DefaultVideoModel, EditModel, ImageModel, OpenString, VideoModel } from '../../catalog.js';
import type { CallKind } from '../../client/run-calls.js';
import { GenError } from '../../errors/index.js';
import * as option from '../../rules/options.js';
import { checkCharacter, checkImage, checkVideo, checkVideoEdit } from '../../rules/preflight.js';
import { anotherRun, type Recover } from '../../rules/run-state.js';
import { callObserver } from '../../runtime/callbacks.js';
import { systemRandom } from '../../runtime/clock.js';
import type { CharacterParams } from '../../schemas/character.js';
import type { CheckedImageParams, ImageParams } from '../../schemas/params.js';
import type {
  CheckedVideoEditParams,
  CheckedVideoParams,
  VideoEditParams,
  VideoParams,
} from '../../schemas/video-params.js';
import { jobIdIn, type WebhookEvent } from '../../schemas/webhook-event.js';
import { idempotencyKeyOf } from '../../transport/idempotency.js';
import { recoverRules } from '../../waiting/wait-options.js';
import { storeFiles } from './call-files.js';
import {
  type GenJobData,
  type GenJobResult,
  type GenQueueJob,
  RECORD_VERSION,
  UNMADE_PRIORITY,
} from './call-record.js';
import { checkConnection, LOCATION_FIELDS, type QueueLocation, queueNames } from './connection.js';
import { type CreateTurn, enterLine, needsTurn, waitsForTurn } from './creates.js';
import { openNotes, wakeCall } from './notes.js';

/** How to open a queue. */
export interface GenQueueOptions extends QueueLocation {
  /** Called with errors of the connection. The engine reconnects by itself. @default nothing is done with them */
  readonly onError?: ((error: Error) => void) | undefined;
}

/** How to queue a call: the engine's own options, and what the call itself takes. */
export interface EnqueueOptions extends Omit<JobsOptions, 'jobId'> {
  /**
   * The queue job's id, which is also the Idempotency-Key of the call. The same id never makes a second job, in the queue
   * or on the service. The engine allows no colon and no bare number.
   * @default `params.idempotency_key`, else a fresh UUID
   */
  readonly jobId?: string | undefined;
  /** Whether a call that the documented rules refuse is refused before it is queued. @default true */
  readonly preflight?: boolean | undefined;
  /**
   * How to go on after a failed job, by its error code, as in `createAndWait`: a number of further tries, or one try with
   * each of some models. `timeoutMs` of the worker is for all of them.
   * @default the worker's `recover`
   */
  readonly recover?: Recover | undefined;
  /**
   * `after-job` deletes the uploads of the files in the params when the call has ended with its job.
   * @default undefined: they stay
   */
  readonly cleanup?: 'after-job' | undefined;
  /**
   * Whose budget the create is for, for example a tenant's: the worker reserves in the budget of this scope instead of in the
   * client's own. A call over budget waits for the next period where there is one.
   * @default undefined: the budget of the worker's client
   */
  readonly budgetScope?: string | undefined;
  /**
   * Whether a call of this id that has ended is started anew. A failed one goes on as after the engine's `retry()`, and a
   * completed one makes another job, under a key of its own. Without it, queuing an ended call is a GenError.
   * @default false
   */
  readonly again?: boolean | undefined;
}

/** The options of `createGenQueue`. */
const QUEUE_OPTIONS = option.optionsOf({ ...LOCATION_FIELDS, onError: option.callback });

/** The engine's own options of a job, which it checks itself. */
const ENGINE_OPTIONS = [
  'attempts',
  'backoff',
  'continueParentOnFailure',
  'deduplication',
  'delay',
  'failParentOnFailure',
  'ignoreDependencyOnFailure',
  'keepLogs',
  'lifo',
  'parent',
  'priority',
  'removeDependencyOnFailure',
  'removeOnComplete',
  'removeOnFail',
  'sizeLimit',
  'stackTraceLimit',
  'telemetry',
  'timestamp',
] satisfies readonly (keyof JobsOptions)[];

/** The options of a queued call. */
const ENQUEUE_OPTIONS = option.optionsOf({
  ...Object.fromEntries(ENGINE_OPTIONS.map((name) => [name, option.anything])),
  jobId: option.anything,
  preflight: option.flag,
  recover: option.anything,
  cleanup: option.oneOf('after-job'),
  budgetScope: option.text,
  again: option.flag,
});

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
  option.checkOptions('createGenQueue', QUEUE_OPTIONS, options);
  checkConnection('createGenQueue', connection, options);
  const { onError } = options;
  const { calls, creates, options: base } = queueNames(connection, options);
  const queue = new Queue<GenJobData, GenJobResult>(calls, base);
  const turns = new Queue<CreateTurn>(creates, base);
  // Without a listener the engine prints.
  for (const each of [queue, turns]) each.on('error', (error: Error) => callObserver(() => onError?.(error)));
  const notes = openNotes(connection, options);
  const creator = (call: CallKind) => ({
    create: (params: object, given?: EnqueueOptions) => enqueueCall({ queue, turns }, call, params, given),
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

async function enqueueCall(
  { queue, turns }: { readonly queue: Queue<GenJobData, GenJobResult>; readonly turns: Queue<CreateTurn> },
  call: CallKind,
  given: object,
  options: EnqueueOptions = {},
): Promise<GenQueueJob> {
  const name = `queue.${call}.create`;
  refuseRepeat(name, options);
  option.checkOptions(name, ENQUEUE_OPTIONS, options);
  const { jobId, preflight = true, recover, cleanup, budgetScope, again = false, ...engine } = options;
  const { idempotency_key, ...params }: Record<string, unknown> = { ...given };
  // As for the client's keys: null is refused and never left out. A rerun without its key would pay for a second job.
  const key = jobId === undefined ? idempotency_key : jobId;
  const id = checkId(key === undefined ? systemRandom.uuid() : key, queue.keys);
  // The worker's client checks again, and its logger gets what is only doubtful.
  if (preflight) CHECKS[call](params, () => {});
  const known = await queue.getJob(id);
  // The engine would give back a call that has ended, and do nothing.
  const ended = known?.finishedOn === undefined ? undefined : known;
  if (ended && !again) throw hasEnded(name, id, (await ended.isFailed()) ? ended.failedReason : undefined);
  const data: GenJobData = {
    version: RECORD_VERSION,
    call,
    ...(await storeFiles(call, params, preflight)),
    ...(cleanup !== undefined && { cleanup }),
    ...(!preflight && { preflight }),
    ...(recover !== undefined && { recover: recoverRules(recover) }),
    ...(budgetScope !== undefined && { budgetScope }),
  };
  if (ended) return startAgain(ended, data);
  const priority = engine.priority ?? UNMADE_PRIORITY;
  const added = await queue.add(call, data, { ...DEFAULT_JOB_OPTIONS, ...engine, priority, jobId: id });
  // In line at once, so that the order is that of the calls. One that is not due yet gets in line when it is.
  const isDue = !engine.delay && !engine.parent && !engine.deduplication;
  const isNew = known === undefined || waitsForTurn(known);
  if (isNew && isDue && needsTurn(call)) await enterLine(turns, id, priority);
  return added;
}

const CHECKS = {
  images: checkImage,
  videos: checkVideo,
  videoEdits: checkVideoEdit,
  characters: checkCharacter,
} as const;

/** The engine builds names from ids with colons, takes bare numbers for its own, and keeps its lists beside the jobs. */
function checkId(id: unknown, ownNames: object): string {
  if (typeof id !== 'string' || id === '' || id.includes(':') || /^-?\d+$/.test(id) || Object.hasOwn(ownNames, id)) {
    throw new GenError(
      'jobId must be a string without a colon that is neither a bare number nor a name of the engine ("delayed"), for example "order-17". Where it is left out, params.idempotency_key is used.',
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

function hasEnded(name: string, id: string, failedReason: string | undefined): GenError {
  const how = failedReason ? `has failed (${failedReason})` : 'has completed';
  return new GenError(
    `${name}: "${id}" ${how}, so it was not queued again. Its record is queue.queue.getJob(${JSON.stringify(id)}). Pass again: true to start it anew.`,
  );
}

/** Starts an ended call anew: a failed one as `retry()` does, a completed one with another create, under a key of its own. */
async function startAgain(ended: GenQueueJob, data: GenJobData): Promise<GenQueueJob> {
  const { run } = ended.data;
  // A completed call keeps the reason of an attempt that had failed.
  if (await ended.isFailed()) {
    await ended.retry('failed');
  } else {
    await ended.updateData({ ...data, ...(run && { run: anotherRun(run) }) });
    await ended.retry('completed');
  }
  return ended;
}
