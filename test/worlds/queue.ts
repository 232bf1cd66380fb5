// The queue's own run, as `createGenWorker` does it, over records that a double of the engine keeps: locks, delays, kills.
import { DelayedError, type Queue, UnrecoverableError } from 'bullmq';
import {
  type GenJobData,
  type GenJobResult,
  type GenQueueJob,
  RECORD_VERSION,
} from '../../src/adapters/bullmq/call-record.js';
import type { JobIndex } from '../../src/adapters/bullmq/connection.js';
import { createProcessor } from '../../src/adapters/bullmq/process-call.js';
import { GenError } from '../../src/index.js';
import type { RunRules } from '../../src/rules/run-state.js';
import { RULES as PERSISTENT } from '../rules/run-events.js';
import type { ProcessLife } from './simulation/process.js';

/** A record in the engine. */
interface QueueRecord {
  readonly id: string;
  /** JSON: nothing else survives in a Redis. */
  data: string;
  priority: number;
  dueMs: number;
  lock: { readonly token: string; untilMs: number } | undefined;
  /** How often a worker has died with it. */
  stalls: number;
}

/** The engine's database, which survives every process. */
export interface QueueDisk {
  readonly records: Map<string, QueueRecord>;
  readonly owners: Map<string, string>;
  readonly wakes: Set<string>;
  /** How calls have ended: with `completed`, or with their error. */
  readonly ends: Map<string, unknown>;
  /** Called when a call is put into the queue. */
  added: () => void;
}

export const emptyQueue = (): QueueDisk => ({
  records: new Map(),
  owners: new Map(),
  wakes: new Set(),
  ends: new Map(),
  added: () => {},
});

/** Puts a call into the queue. One that is there already is left as it is. */
export function enqueue({ records, added }: QueueDisk, id: string, data: GenJobData): void {
  if (records.has(id)) return;
  records.set(id, { id, data: JSON.stringify(data), priority: 0, dueMs: 0, lock: undefined, stalls: 0 });
  added();
}

/** What a world wants to know of its queue. */
export interface QueueReport {
  /** A worker has taken up a call that another one had begun. */
  takenUp(): void;
  /** A worker has left a record of a newer version for another worker. */
  leftNewer(): void;
}

/** How a call ends that has not failed. */
export const COMPLETED = 'completed';
const LOCK_MS = 30_000;
const SHORTEST_LOOK_MS = 50;
const LONGEST_LOOK_MS = 60_000;
const RULES: RunRules = { ...PERSISTENT, retryMs: 30_000 };

/** Works on the calls of the queue for as long as there are any. */
export class QueueWorker {
  readonly #life: ProcessLife;
  readonly #disk: QueueDisk;
  readonly #report: QueueReport;
  readonly #now: () => number;
  readonly #process: ReturnType<typeof createProcessor>;
  #stopLooking = () => {};

  constructor(life: ProcessLife, { disk, report, now }: { disk: QueueDisk; report: QueueReport; now: () => number }) {
    this.#life = life;
    this.#disk = disk;
    this.#report = report;
    this.#now = now;
    this.#process = createProcessor({
      rules: RULES,
      client: life.client,
      jobIndex: this.#jobIndex(),
      queue: {
        getJob: async (id: string) => this.#jobOf(id),
        getJobCountByTypes: async () => this.#disk.records.size,
      } as Partial<Queue> as Queue<GenJobData, GenJobResult>,
      clock: life.clock,
      budgetOf: () => {
        throw new GenError('no call of this queue has a budget');
      },
      onError: ({ message }) => void (message.includes('newer version') && report.leftNewer()),
      lockMs: LOCK_MS,
      closing: new AbortController().signal,
    });
  }

  /** Looks for calls that are due when the next one is, and again until none is left. */
  look(): void {
    this.#stopLooking();
    const records = [...this.#disk.records.values()];
    if (records.length === 0) return;
    if (!this.#life.isRunning) return void this.#life.whenRunning().then(() => this.look());
    const nextMs = Math.min(...records.map((record) => this.#dueInMs(record)));
    this.#stopLooking = this.#life.clock.after(Math.min(Math.max(nextMs, SHORTEST_LOOK_MS), LONGEST_LOOK_MS), () => {
      for (const record of records) {
        if (this.#dueInMs(record) <= 0 && this.#disk.records.has(record.id)) void this.#work(record);
      }
      this.look();
    });
  }

  #dueInMs({ dueMs, lock }: QueueRecord): number {
    // A delay is measured by the worker's own clock, and a lock by that of the database.
    return lock === undefined ? dueMs - this.#life.clock.now() : lock.untilMs - this.#now();
  }

  async #work(record: QueueRecord): Promise<void> {
    if (record.lock) {
      record.stalls += 1;
      this.#report.takenUp();
    }
    const token = this.#life.random.uuid();
    record.lock = { token, untilMs: this.#now() + LOCK_MS };
    // As the engine does while a processor runs: only a process that died loses its lock.
    const renewal = { stop: () => {} };
    const renew = () => {
      if (record.lock?.token === token) record.lock.untilMs = this.#now() + LOCK_MS;
      renewal.stop = this.#life.clock.after(LOCK_MS / 2, renew);
    };
    renew();
    try {
      await this.#process(this.#jobOf(record.id, token) as GenQueueJob, token);
      this.#end(record, token, COMPLETED);
    } catch (error) {
      if (error instanceof UnrecoverableError) this.#end(record, token, error.cause);
      // The engine would try it again at once; so does this.
      else if (!(error instanceof DelayedError)) this.#end(record, token, error);
    } finally {
      renewal.stop();
      this.look();
    }
  }

  /** A worker that was stopped has lost its lock, and another one works on the call. */
  #end({ id, lock }: QueueRecord, token: string, how: unknown): void {
    if (lock?.token !== token) return;
    this.#disk.records.delete(id);
    this.#disk.ends.set(id, how);
  }

  /** The engine's job, as far as a processor uses it. Everything that it does may be the last thing that the process does. */
  #jobOf(id: string, token?: string): GenQueueJob | undefined {
    const record = this.#disk.records.get(id);
    if (record === undefined) return undefined;
    const away = <T>(work: () => T): Promise<T> => this.#life.arriving(async () => work());
    const job = {
      id,
      opts: {},
      data: JSON.parse(record.data) as GenJobData,
      priority: record.priority,
      stalledCounter: record.stalls,
      updateData: (data: GenJobData) =>
        away(() => {
          record.data = JSON.stringify(data);
          job.data = JSON.parse(record.data) as GenJobData;
        }),
      changePriority: ({ priority }: { priority?: number }) =>
        away(() => {
          record.priority = priority ?? 0;
        }),
      moveToDelayed: (ms: number) =>
        away(() => {
          if (record.lock?.token !== token) throw new Error('the lock is lost');
          record.lock = undefined;
          record.dueMs = ms;
        }),
      extendLock: () => away(() => (record.lock?.token === token ? 1 : 0)),
      isDelayed: () => away(() => record.lock === undefined && record.dueMs > this.#life.clock.now()),
      promote: () =>
        away(() => {
          record.dueMs = 0;
        }),
      log: () => away(() => 1),
      updateProgress: () => away(() => {}),
    };
    return job as Partial<GenQueueJob> as GenQueueJob;
  }

  #jobIndex(): JobIndex {
    const { owners, wakes } = this.#disk;
    const away = <T>(work: () => T): Promise<T> => this.#life.arriving(async () => work());
    return {
      callOf: (jobId) => away(() => owners.get(jobId)),
      add: (jobId, id) => away(() => void owners.set(jobId, id)),
      size: () => away(() => owners.size),
      wake: (jobId) => away(() => void wakes.add(jobId)),
      hasWake: (jobId) => away(() => wakes.has(jobId)),
      consumeWake: (jobId) => away(() => wakes.delete(jobId)),
      remove: (jobId) =>
        away(() => {
          wakes.delete(jobId);
          owners.delete(jobId);
        }),
      sweep: async () => {},
      close: async () => {},
      disconnect: async () => {},
    };
  }
}

/** A record of a version that no worker here knows. */
export const NEWER_RECORD: GenJobData = { version: RECORD_VERSION + 1, call: 'videos', params: { prompt: 'a fox' } };
