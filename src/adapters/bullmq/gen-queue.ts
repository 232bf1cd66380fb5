import { type ConnectionOptions, type JobsOptions, Queue } from 'bullmq';
import type { DefaultVideoModel, EditModel, ImageModel, OpenString, VideoModel } from '../../catalog.js';
import type { CallKind } from '../../client/run-calls.js';
import { ConnectionError, GenError, PreflightError } from '../../errors/index.js';
import * as option from '../../rules/options.js';
import { checkCharacter, checkImage, checkVideo, checkVideoEdit } from '../../rules/preflight.js';
import type { Recover } from '../../rules/run-state.js';
import { callObserver } from '../../runtime/callbacks.js';
import { systemClock, systemRandom } from '../../runtime/clock.js';
import { startDeadline } from '../../runtime/deadline.js';
import type { CharacterParams } from '../../schemas/character.js';
import type { CheckedImageParams, ImageParams } from '../../schemas/params.js';
import type {
  CheckedVideoEditParams,
  CheckedVideoParams,
  VideoEditParams,
  VideoParams,
} from '../../schemas/video-params.js';
import { jobIdIn, type WebhookEvent } from '../../schemas/webhook-event.js';
import { digestOf, idempotencyKeyOf } from '../../transport/idempotency.js';
import { recoverRules } from '../../waiting/wait-options.js';
import {
  type GenJobData,
  type GenJobResult,
  type GenQueueJob,
  RECORD_VERSION,
  storeFiles,
  UNMADE_PRIORITY,
} from './call-record.js';
import {
  checkConnection,
  closeInTime,
  LOCATION_FIELDS,
  openNotes,
  type QueueLocation,
  queueNames,
  wakeCall,
} from './connection.js';

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

/** How to queue a call: the engine's own options, and what the call itself takes. */
interface EnqueueOptions extends Omit<JobsOptions, 'jobId' | 'attempts' | 'backoff'> {
  /**
   * The queue job's id, which is also the Idempotency-Key of the call. The same id never makes a second job, in the queue
   * or on the service, so another call, or other params, need another id. The engine allows no colon and no bare number.
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
   * Whose budget the create is for, for example a tenant's: the worker reserves in the budget of this scope instead of in the
   * client's own. A call over budget waits for the next period where there is one.
   * @default undefined: the budget of the worker's client
   */
  readonly budgetScope?: string | undefined;
  /**
   * Milliseconds until an enqueueing that Redis does not answer rejects with a ConnectionError. Queue it again under its
   * id then: it may have been queued, and the same id never makes a second job.
   * @default 10_000
   */
  readonly timeoutMs?: number | undefined;
  /** Ends the enqueueing at once with its own reason. A call that is queued already stays. */
  readonly signal?: AbortSignal | undefined;
}

/** The engine's own options of a job, which it checks itself. */
const ENGINE_OPTIONS = [
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

const ENQUEUE_OPTIONS = option.optionsOf({
  ...Object.fromEntries(ENGINE_OPTIONS.map((name) => [name, option.anything])),
  jobId: option.anything,
  preflight: option.flag,
  recover: option.anything,
  budgetScope: option.text,
  timeoutMs: option.milliseconds,
  signal: option.abortSignal,
});

/** Options of the engine that would end a call, or make it twice, behind the back of this package. */
const REFUSED = {
  attempts:
    'Leave it out: a failure that is not about the job uses up no attempt, and recover says how to go on after a failed job.',
  backoff: 'Leave it out: retryDelayMs of createGenWorker is the longest pause.',
  repeat:
    'Repeat a job of your own with queue.queue.upsertJobScheduler in another queue, and queue the call from it, with a jobId for each time.',
} as const;

/** Only an error of the engine itself, for example of its Redis, uses up an attempt. The call is repeated under its key. */
const ENDLESS = { attempts: Number.MAX_SAFE_INTEGER, backoff: { type: 'fixed', delay: 5_000 } } as const;
const TIMEOUT_MS = 10_000;

const CHECKS = {
  images: checkImage,
  videos: checkVideo,
  videoEdits: checkVideoEdit,
  characters: checkCharacter,
} as const;

interface NewCall {
  /** How errors name the call. */
  readonly name: string;
  readonly id: string;
  readonly call: CallKind;
  readonly params: Readonly<Record<string, unknown>>;
  readonly options: EnqueueOptions;
}

/** Queues a call, and gives its record. Ends in bounded time, also while Redis is away. */
async function enqueueCall(
  queue: Queue<GenJobData, GenJobResult>,
  call: CallKind,
  given: object,
  options: EnqueueOptions = {},
): Promise<GenQueueJob> {
  const name = `queue.${call}.create`;
  for (const [refused, instead] of Object.entries(REFUSED)) {
    if (refused in options) throw new GenError(`${name} has no option "${refused}". ${instead}`);
  }
  option.checkOptions(name, ENQUEUE_OPTIONS, options);
  const { jobId, preflight = true, timeoutMs = TIMEOUT_MS, signal } = options;
  const { idempotency_key, ...params }: Record<string, unknown> = { ...given };
  // As for the client's keys: null is refused and never left out. A rerun without its key would pay for a second job.
  const key = jobId === undefined ? idempotency_key : jobId;
  const id = checkId(key === undefined ? systemRandom.uuid() : key, queue.keys);
  // The worker's client checks again, and its logger gets what is only doubtful.
  if (preflight) CHECKS[call](params, () => {});
  const late = () =>
    new ConnectionError(
      `${name}: Redis did not answer within ${timeoutMs} ms (timeoutMs), so "${id}" may be queued or not. Queue it again under this id.`,
      { idempotencyKey: id },
    );
  const deadline = startDeadline({ clock: systemClock, ms: timeoutMs, signal, late });
  try {
    return await deadline.race(addCall(queue, { name, id, call, params, options }, deadline.signal));
  } finally {
    deadline.end();
  }
}

async function addCall(
  queue: Queue<GenJobData, GenJobResult>,
  asked: NewCall,
  signal: AbortSignal,
): Promise<GenQueueJob> {
  const { name, id, call, params, options } = asked;
  const { preflight = true, recover, budgetScope, jobId: _, timeoutMs: _ms, signal: _signal, ...engine } = options;
  signal.throwIfAborted();
  const known = await queue.getJob(id);
  if (known) {
    checkSame(known, asked);
    // The engine would give back a call that has ended, and do nothing.
    if (known.finishedOn !== undefined)
      throw hasEnded(name, id, (await known.isFailed()) ? known.failedReason : undefined);
  }
  const data: GenJobData = {
    version: RECORD_VERSION,
    call,
    ...(await storeFiles(call, params, preflight)),
    ...(!preflight && { preflight }),
    ...(recover !== undefined && { recover: recoverRules(recover) }),
    ...(budgetScope !== undefined && { budgetScope }),
  };
  // Nothing is queued any more for a caller that has been told to queue it again.
  signal.throwIfAborted();
  const added = await queue.add(call, data, { ...ENDLESS, priority: UNMADE_PRIORITY, ...engine, jobId: id });
  // The engine adds nothing where another process has just queued the id, and gives back what it was asked for.
  const stored = added.id === id ? await queue.getJob(id) : undefined;
  if (stored) checkSame(stored, asked);
  return stored ?? added;
}

/** Throws where the id is that of another call, or of the same call with other params: nobody gets the job of another order. */
function checkSame({ data }: GenQueueJob, { name, id, call, params }: NewCall): void {
  const isSame = data.call === call && digestOf(call, data.params) === digestOf(call, params);
  if (isSame) return;
  const what = data.call === call ? `was queued with other params` : `is the id of a call of ${data.call}.create`;
  const job = data.jobId === undefined ? '' : ` Its job is ${data.jobId}.`;
  throw new PreflightError(
    `${name}: "${id}" ${what}, so this call was not queued: give it an id of its own, for example "${call}-${id}".${job}`,
    { code: 'idempotency_key_reused', param: 'jobId' },
  );
}

/** The engine builds names from ids with colons, takes bare numbers for its own, and keeps its lists beside the jobs. */
function checkId(id: unknown, ownNames: object): string {
  if (typeof id !== 'string' || id === '' || id.includes(':') || /^-?\d+$/.test(id) || Object.hasOwn(ownNames, id)) {
    throw new GenError(
      'jobId must be a string without a colon that is neither a bare number nor a name of the engine ("delayed"), for example "order-17". Where it is left out, params.idempotency_key is used.',
    );
  }
  return idempotencyKeyOf(id, undefined);
}

function hasEnded(name: string, id: string, failedReason: string | undefined): GenError {
  const record = `queue.queue.getJob(${JSON.stringify(id)})`;
  return new GenError(
    failedReason
      ? `${name}: "${id}" has failed (${failedReason}), so it was not queued again. Start it again with job.retry() of its record, ${record}, or queue the call under another id.`
      : `${name}: "${id}" has completed, so it was not queued again. Its job is the result of its record, ${record}; queue the call under another id to make another one.`,
  );
}
