import { Queue, Worker, type WorkerOptions } from 'bullmq';
import type { GenClient } from '../../client/client.js';
import type { CallKind } from '../../client/run-calls.js';
import { DOCUMENTED_LIMITS } from '../../rules/limits.js';
import { systemClock } from '../../runtime/clock.js';
import { sleep } from '../../runtime/deadline.js';
import type { GenJobData, GenJobResult, GenQueueJob } from './call-record.js';
import type { QueueNames } from './connection.js';
import { CLEANED_AT_ONCE, wakeCall } from './notes.js';

/** The rate limit of creates. */
const LANE = 'videos.create';
/** The engine counts its windows from the turn, and the client from the answer to the create, so the engine's are longer. */
const WINDOW_SHARE = 1.01;
const WINDOW_MORE_MS = 300;
/** How long the turn of a call is kept that does not take it: its queue is paused, or it was removed. */
const TURN_KEPT_MS = 60 * 60 * 1000;
/** A call that has not taken its turn after so long is woken again. */
const WAKE_AFTER_MS = 2_000;
/** How long a call waits for its turn before it sleeps, while the rate limit is not full, and how often it looks. */
const SOON_MS = 2_000;
const LOOK_MS = 10;
/** A longer line is not waited for: a call that waits takes the place of one whose turn has come. */
const SHORT_LINE = 3;

/** The record of a call that waits for its turn to be created. Its id is that of the call. */
export interface CreateTurn {
  readonly version: 1;
}

/**
 * The calls that wait for their create, as a second queue of the engine: it has the engine's own priority, order and rate
 * limit, which hold over all workers. The reads of running jobs are not held by it. A turn is a job of that queue; when the
 * engine gives it to a worker, the call is woken.
 */
export interface Creates {
  /**
   * Whether it is the call's turn. Where it is not, the call gets in line, with its own priority, and is woken by its turn.
   * A turn that is about to come is waited for.
   */
  admit(call: GenQueueJob, signal: AbortSignal): Promise<boolean>;
  /** How many calls wait for their turn. */
  inLine(): Promise<number>;
  /** Whether the turn of a call has come. */
  hasCome(id: string): Promise<boolean>;
  /** The call has used its turn. */
  leave(id: string): Promise<void>;
  /** The call has not used its turn: another one may have it at once. */
  giveBack(id: string): Promise<void>;
  /** The rate limit is full for so many milliseconds. Nobody gets a turn meanwhile, and this call gets the next. */
  hold(id: string, ms: number): Promise<void>;
  /** Wakes the calls that have not taken their turn: their worker died as they fell asleep. */
  remind(): Promise<void>;
  /** Drops turns that nobody has taken. */
  clean(): Promise<void>;
  close(): Promise<void>;
}

/** What the queue of creates needs. */
interface CreatesOptions {
  readonly names: QueueNames;
  readonly calls: Queue<GenJobData, GenJobResult>;
  readonly client: GenClient;
  /** Of the worker of the calls. */
  readonly worker: Partial<WorkerOptions> | undefined;
  readonly onError: (error: Error) => void;
}

/** Opens the queue of creates, and works on it. */
export function openCreates(options: CreatesOptions): Creates {
  const { calls } = options;
  const { turns, worker, limit } = openLine(options);
  const enter = (id: string, priority: number) => enterLine(turns, id, priority);
  /** Whether the next turns come at once: the rate limit is not full, and the line is short. */
  const isMoving = async () => {
    const inLine = await turns.getJobCountByTypes('waiting', 'prioritized');
    return inLine <= SHORT_LINE && (await turns.getRateLimitTtl(limit)) <= 0;
  };
  const remove = async (id: string) => {
    await turns.remove(id);
  };
  return {
    async admit({ id = '', opts, data }, signal) {
      const until = systemClock.now() + SOON_MS;
      for (;;) {
        const turn = await turns.getJob(id);
        if (turn?.finishedOn !== undefined) return true;
        // A call that has had its turn before goes before those that have not.
        if (turn === undefined) await enter(id, data.run === undefined ? (opts.priority ?? 0) : 0);
        if (systemClock.now() >= until || !(await isMoving())) return false;
        await sleep(systemClock, LOOK_MS, signal);
      }
    },
    inLine: () => turns.getJobCountByTypes('waiting', 'prioritized'),
    async hasCome(id) {
      const turn = await turns.getJob(id);
      return turn !== undefined && turn.processedOn !== undefined;
    },
    leave: remove,
    async giveBack(id) {
      await remove(id);
      await turns.removeRateLimitKey();
    },
    async hold(id, ms) {
      await remove(id);
      await turns.rateLimit(ms);
      await enter(id, 0);
    },
    async remind() {
      const late = systemClock.now() - WAKE_AFTER_MS;
      for (const { id = '', finishedOn = late } of await turns.getCompleted(0, CLEANED_AT_ONCE)) {
        if (finishedOn >= late) continue;
        const call = await calls.getJob(id);
        if (!waitsForTurn(call)) await remove(id);
        // A call in trouble keeps its turn, and wakes by itself.
        else if (call.data.trouble === undefined) await wakeCall(calls, id, { lifo: false });
      }
    },
    async clean() {
      while ((await turns.clean(TURN_KEPT_MS, CLEANED_AT_ONCE, 'completed')).length === CLEANED_AT_ONCE);
    },
    async close() {
      await worker.close();
      await turns.close();
    },
  };
}

/** The queue of turns, and the worker that gives them at the pace of the rate limit. */
function openLine({ names, calls, client, worker: options, onError }: CreatesOptions) {
  const turns = new Queue<CreateTurn>(names.creates, names.options);
  const give = async ({ id = '' }: { readonly id?: string | undefined }) => {
    const call = await calls.getJob(id);
    // A turn that no call waits for must not count: a backlog that was removed would delay the calls after it.
    if (!waitsForTurn(call)) await turns.removeRateLimitKey();
    else await wakeCall(calls, id, { lifo: false });
  };
  const pace = paceOf(client);
  const worker = new Worker<CreateTurn>(names.creates, give, {
    maxStalledCount: Number.MAX_SAFE_INTEGER,
    ...options,
    ...names.options,
    concurrency: 1,
    ...pace,
  });
  worker.on('error', onError);
  turns.on('error', onError);
  return { turns, worker, limit: pace.limiter?.max };
}

/** Whether the call has a rate limit to wait for. */
export function needsTurn(call: CallKind): boolean {
  return call === 'videos';
}

/** Whether a call is still to create: it is neither removed nor ended, and has no job. */
export function waitsForTurn(call: GenQueueJob | undefined): call is GenQueueJob {
  return call !== undefined && call.finishedOn === undefined && call.data.jobId === undefined;
}

/** Puts a call in line for its create: by its priority, in the order in which the calls came. */
export async function enterLine(turns: Queue<CreateTurn>, id: string, priority: number): Promise<void> {
  // A turn that was given stays until it is used, whatever the caller's worker keeps.
  const kept = { removeOnComplete: false, removeOnFail: true };
  const options = { jobId: id, ...kept, attempts: Number.MAX_SAFE_INTEGER, priority };
  await turns.add('create', { version: 1 }, options);
}

/** The engine's rate limit, where the client's is known and not endless. */
function paceOf(client: GenClient): Pick<WorkerOptions, 'limiter'> {
  const { limit, windowMs } = createLimit(client);
  return limit > 0 && Number.isFinite(limit)
    ? { limiter: { max: limit, duration: Math.ceil(windowMs * WINDOW_SHARE + WINDOW_MORE_MS) } }
    : {};
}

function createLimit(client: GenClient): { readonly limit: number; readonly windowMs: number } {
  try {
    return client.limits()[LANE] ?? { limit: Number.POSITIVE_INFINITY, windowMs: 1 };
  } catch {
    // The client has no key yet. The first call says so.
    return DOCUMENTED_LIMITS[LANE];
  }
}
