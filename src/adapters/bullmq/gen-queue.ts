import { type ConnectionOptions, type JobsOptions, Queue } from 'bullmq';
import type { DefaultVideoModel, EditModel, ImageModel, OpenString, VideoModel } from '../../catalog.js';
import { ConnectionError, GenError, PreflightError } from '../../errors/index.js';
import * as option from '../../rules/options.js';
import { checkCharacter, checkFallbacks, checkImage, checkVideo, checkVideoEdit } from '../../rules/preflight.js';
import type { Recover } from '../../rules/run-state.js';
import { callObserver } from '../../runtime/callbacks.js';
import { systemClock, systemRandom } from '../../runtime/clock.js';
import { startDeadline } from '../../runtime/deadline.js';
import type { CharacterParams } from '../../schemas/character.js';
import type { JobCall } from '../../schemas/job.js';
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
  CREATE_PRIORITY,
  type GenJobData,
  type GenJobResult,
  type GenQueueJob,
  isBareNumber,
  RECORD_VERSION,
} from './call-record.js';
import {
  checkConnection,
  closeInTime,
  LOCATION_FIELDS,
  openJobIndex,
  type QueueLocation,
  queueNames,
  wakeCall,
} from './connection.js';
import { storeFiles } from './queued-files.js';

/** Options for {@link createGenQueue}. */
export interface GenQueueOptions extends QueueLocation {
  /** Called with connection errors. The connection reconnects automatically. @default errors are ignored */
  readonly onError?: ((error: Error) => void) | undefined;
}

const QUEUE_OPTIONS = option.optionsOf({ ...LOCATION_FIELDS, onError: option.callback });

/** Queues creates, and wakes calls that wait for a job. */
export interface GenQueue {
  /** BullMQ queue, for a dashboard. */
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
  /** Queues `characters.create`. */
  readonly characters: { create(params: CharacterParams, options?: EnqueueOptions): Promise<GenQueueJob> };
  /**
   * Wakes the call that waits for the event's job, in any process. The call polls its job immediately, ahead of other calls.
   * Ignores events without a job.
   */
  wake(event: WebhookEvent): Promise<void>;
  /** Closes the connections within 5 seconds, even if Redis is unavailable. Queued calls remain in the queue. */
  close(): Promise<void>;
}

/**
 * Opens a queue with an ioredis client or its options, as BullMQ does. {@link createGenWorker} processes the calls, in any
 * number of processes. Throws a GenError for an unknown option or an invalid connection or name.
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
  // Without a listener, BullMQ prints errors.
  queue.on('error', (error: Error) => callObserver(() => onError?.(error)));
  const jobIndex = openJobIndex(connection, options);
  const creator = (call: JobCall) => ({
    create: (params: object, enqueueOptions?: EnqueueOptions) => enqueueCall(queue, call, params, enqueueOptions),
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
      // Store the wake first, because a call checks for one before and after it goes to sleep.
      await jobIndex.wake(jobId);
      const queueJobId = await jobIndex.callOf(jobId);
      if (queueJobId !== undefined) await wakeCall(queue, queueJobId);
    },
    close: () => closeInTime(connection, [jobIndex, queue]),
  };
}

/** Most of BullMQ's job options, and the options of the call. */
interface EnqueueOptions extends Omit<JobsOptions, 'jobId' | 'attempts' | 'backoff' | 'repeat' | 'deduplication'> {
  /**
   * ID of the queue job, and idempotency key of the call. An ID never creates a second job, so use a new one for another call
   * or different params. BullMQ rejects IDs that contain a colon or are a bare number.
   * @default `params.idempotency_key`, or a new UUID
   */
  readonly jobId?: string | undefined;
  /** BullMQ's deduplication. `replace` isn't supported, because it would remove a paid call. */
  readonly deduplication?: NonNullable<JobsOptions['deduplication']> & { readonly replace?: never };
  /** If true, validates the params against the documented rules before queuing. @default true */
  readonly preflight?: boolean | undefined;
  /**
   * Retries for failed jobs by error code, as in `createAndWait`: a number of retries, or a list of models to retry with. The
   * worker's `timeoutMs` covers all of them.
   * @default the worker's `recover`
   */
  readonly recover?: Recover | undefined;
  /**
   * Scope of the budget that pays for the create, for example a tenant. Replaces the budget of the worker's client. A call
   * over budget waits for the next budget period, and fails if there is none.
   * @default undefined: the budget of the worker's client
   */
  readonly budgetScope?: string | undefined;
  /**
   * Timeout for queuing in milliseconds. Throws a ConnectionError if Redis doesn't respond. The call may be queued anyway, so
   * queue it again with the same ID.
   * @default 10_000
   */
  readonly timeoutMs?: number | undefined;
  /** Aborts queuing and rejects with the signal's reason. A call that is already queued remains. */
  readonly signal?: AbortSignal | undefined;
}

/** BullMQ's job options, which BullMQ validates. */
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

/** BullMQ options that would end a call, or create its job twice. */
const UNSUPPORTED = {
  attempts: "Remove it. Failures other than the job's don't count as attempts. For failed jobs, pass recover.",
  backoff: 'Remove it. To set the longest pause, pass retryDelayMs to createGenWorker.',
  repeat:
    'In another queue, repeat a job of your own with upsertJobScheduler. Queue the call from it, with a new jobId each time.',
} as const;

/** Unlimited, because only errors of BullMQ itself, for example from Redis, count as attempts. */
const UNLIMITED_ATTEMPTS = { attempts: Number.MAX_SAFE_INTEGER, backoff: { type: 'fixed', delay: 5_000 } } as const;
const TIMEOUT_MS = 10_000;

const CHECKS = {
  images: checkImage,
  videos: checkVideo,
  videoEdits: checkVideoEdit,
  characters: checkCharacter,
} as const;

interface NewCall {
  /** Name of the call in error messages. */
  readonly name: string;
  readonly id: string;
  readonly call: JobCall;
  readonly params: Readonly<Record<string, unknown>>;
  readonly options: EnqueueOptions;
}

/** Queues a call and returns its record. Settles within `timeoutMs`, even if Redis is unavailable. */
async function enqueueCall(
  queue: Queue<GenJobData, GenJobResult>,
  call: JobCall,
  input: object,
  options: EnqueueOptions = {},
): Promise<GenQueueJob> {
  const name = `queue.${call}.create`;
  for (const [optionName, fix] of Object.entries(UNSUPPORTED)) {
    if (optionName in options) throw new GenError(`${name} has no option "${optionName}". ${fix}`);
  }
  if (options.deduplication && 'replace' in options.deduplication) {
    throw new GenError(
      `${name}: deduplication.replace is not supported, because it would remove a call whose job is paid. Remove it: an order that is queued twice under one jobId creates one job.`,
    );
  }
  option.checkOptions(name, ENQUEUE_OPTIONS, options);
  const { jobId, preflight = true, recover, timeoutMs = TIMEOUT_MS, signal } = options;
  const { idempotency_key, ...params }: Record<string, unknown> = { ...input };
  // Null is an error, because a rerun without its key would pay for a second job.
  const key = jobId === undefined ? idempotency_key : jobId;
  const id = checkId(key === undefined ? systemRandom.uuid() : key, queue.keys);
  // The worker's client validates again, and logs the warnings.
  const check = (checked: object) => CHECKS[call](checked, () => {});
  const rules = recoverRules(recover);
  if (preflight) check(params);
  if (preflight) checkFallbacks(rules, (model) => check({ ...params, model }));
  const timeoutError = () =>
    new ConnectionError(
      `${name}: Redis did not respond within ${timeoutMs} ms (timeoutMs), so "${id}" may or may not be queued. Queue it again with the same ID.`,
      { idempotencyKey: id },
    );
  const deadline = startDeadline({ clock: systemClock, ms: timeoutMs, signal, late: timeoutError });
  try {
    return await deadline.race(addCall(queue, { name, id, call, params, options }, deadline.signal));
  } finally {
    deadline.end();
  }
}

async function addCall(
  queue: Queue<GenJobData, GenJobResult>,
  newCall: NewCall,
  signal: AbortSignal,
): Promise<GenQueueJob> {
  const { name, id, call, params, options } = newCall;
  const { preflight = true, recover, budgetScope, jobId: _, timeoutMs: _ms, signal: _signal, ...engine } = options;
  signal.throwIfAborted();
  const existing = await queue.getJob(id);
  if (existing) {
    checkSame(existing, newCall);
    // BullMQ would silently return a call that has ended.
    if (existing.finishedOn !== undefined)
      throw callEnded(name, id, (await existing.isFailed()) ? existing.failedReason : undefined);
  }
  const data: GenJobData = {
    version: RECORD_VERSION,
    call,
    params: await storeFiles(call, params, preflight),
    ...(!preflight && { preflight }),
    ...(recover !== undefined && { recover: recoverRules(recover) }),
    ...(budgetScope !== undefined && { budgetScope }),
  };
  // After a timeout, the caller queues the call again.
  signal.throwIfAborted();
  const added = await queue.add(call, data, { ...UNLIMITED_ATTEMPTS, priority: CREATE_PRIORITY, ...engine, jobId: id });
  // If another process has just queued the ID, BullMQ returns the new job without adding it.
  const stored = added.id === id ? await queue.getJob(id) : undefined;
  if (stored) checkSame(stored, newCall);
  return stored ?? added;
}

/** Throws if the ID belongs to another call, or to one with different params. */
function checkSame({ data }: GenQueueJob, { name, id, call, params }: NewCall): void {
  const isSame = data.call === call && digestOf(call, data.params) === digestOf(call, params);
  if (isSame) return;
  const conflict =
    data.call === call ? `was queued with other params` : `already identifies a ${data.call}.create call`;
  const jobHint = data.jobId === undefined ? '' : ` Its job is ${data.jobId}.`;
  throw new PreflightError(
    `${name}: "${id}" ${conflict}, so this call was not queued. Pass another jobId, for example "${call}-${id}".${jobHint}`,
    { code: 'idempotency_key_reused', param: 'jobId' },
  );
}

/**
 * Returns a valid ID. Throws for one that BullMQ reserves: it joins names with colons, numbers jobs, and stores its
 * lists next to the jobs.
 */
function checkId(id: unknown, reservedNames: object): string {
  if (typeof id !== 'string' || id === '' || id.includes(':') || isBareNumber(id) || Object.hasOwn(reservedNames, id)) {
    throw new GenError(
      'jobId must be a string without a colon, and neither a bare number nor a name of BullMQ ("delayed"). Pass an ID such as "order-17". Without jobId, params.idempotency_key is used.',
    );
  }
  return idempotencyKeyOf(id, undefined);
}

/** Returns the error for an ID whose call has already ended. An at-least-once source can ignore it by its code. */
function callEnded(name: string, id: string, failedReason: string | undefined): GenError {
  const record = `queue.queue.getJob(${JSON.stringify(id)})`;
  const message = failedReason
    ? `${name}: "${id}" has failed (${failedReason}), so it was not queued again. To restart it, call retry() on its record, ${record}, or pass another jobId.`
    : `${name}: "${id}" has completed, so it was not queued again. Its job is the result of its record, ${record}. Pass another jobId to create another one.`;
  return Object.assign(new GenError(message, { recovery: 'none' }), { code: 'call_ended' });
}
