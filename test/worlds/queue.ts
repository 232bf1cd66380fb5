// Runs queued calls as `createGenWorker` does, on a fake engine with locks, delays, and kills.
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

interface QueueRecord {
  readonly id: string;
  /** JSON, as in Redis. */
  data: string;
  priority: number;
  dueMs: number;
  lock: { readonly token: string; untilMs: number } | undefined;
  /** Number of workers that have crashed with it. */
  stalls: number;
}

/** The engine's database. It survives crashes. */
export interface QueueDisk {
  readonly records: Map<string, QueueRecord>;
  readonly owners: Map<string, string>;
  readonly wakes: Set<string>;
  /** By call: `completed`, or its error. */
  readonly outcomes: Map<string, unknown>;
  /** Called when a call is queued. */
  onAdded: () => void;
}

export const emptyQueue = (): QueueDisk => ({
  records: new Map(),
  owners: new Map(),
  wakes: new Set(),
  outcomes: new Map(),
  onAdded: () => {},
});

/** Queues a call, unless its ID is already queued. */
export function enqueue({ records, onAdded }: QueueDisk, id: string, data: GenJobData): void {
  if (records.has(id)) return;
  records.set(id, { id, data: JSON.stringify(data), priority: 0, dueMs: 0, lock: undefined, stalls: 0 });
  onAdded();
}

export interface QueueReport {
  /** A worker has resumed another worker's call. */
  resumed(): void;
  /** A worker has skipped a record of a newer version. */
  skippedNewer(): void;
}

/** The outcome of a successful call. */
export const COMPLETED = 'completed';
const LOCK_MS = 30_000;
const MIN_CHECK_MS = 50;
const MAX_CHECK_MS = 60_000;
const RULES: RunRules = { ...PERSISTENT, retryMs: 30_000 };

/** Processes queued calls until none is left. */
export class QueueWorker {
  readonly #life: ProcessLife;
  readonly #disk: QueueDisk;
  readonly #report: QueueReport;
  readonly #now: () => number;
  readonly #process: ReturnType<typeof createProcessor>;
  #cancelCheck = () => {};

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
      onError: ({ message }) => void (message.includes('newer version') && report.skippedNewer()),
      lockMs: LOCK_MS,
      closing: new AbortController().signal,
    });
  }

  /** Schedules checks for due calls until the queue is empty. */
  check(): void {
    this.#cancelCheck();
    const records = [...this.#disk.records.values()];
    if (records.length === 0) return;
    if (!this.#life.isRunning) return void this.#life.whenRunning().then(() => this.check());
    const nextMs = Math.min(...records.map((record) => this.#dueInMs(record)));
    this.#cancelCheck = this.#life.clock.after(Math.min(Math.max(nextMs, MIN_CHECK_MS), MAX_CHECK_MS), () => {
      for (const record of records) {
        if (this.#dueInMs(record) <= 0 && this.#disk.records.has(record.id)) void this.#work(record);
      }
      this.check();
    });
  }

  #dueInMs({ dueMs, lock }: QueueRecord): number {
    // Delays use the worker's clock, locks use the database's.
    return lock === undefined ? dueMs - this.#life.clock.now() : lock.untilMs - this.#now();
  }

  async #work(record: QueueRecord): Promise<void> {
    if (record.lock) {
      record.stalls += 1;
      this.#report.resumed();
    }
    const token = this.#life.random.uuid();
    record.lock = { token, untilMs: this.#now() + LOCK_MS };
    // The engine renews the lock while the processor runs, so only a crashed process loses it.
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
      // The processor should throw no other error. If it does, the call ends with that error.
      else if (!(error instanceof DelayedError)) this.#end(record, token, error);
    } finally {
      renewal.stop();
      this.check();
    }
  }

  /** Stores the outcome, unless another worker has taken the lock meanwhile. */
  #end({ id, lock }: QueueRecord, token: string, outcome: unknown): void {
    if (lock?.token !== token) return;
    this.#disk.records.delete(id);
    this.#disk.outcomes.set(id, outcome);
  }

  /** The parts of the engine's job that a processor uses. The process may be killed at each call. */
  #jobOf(id: string, token?: string): GenQueueJob | undefined {
    const record = this.#disk.records.get(id);
    if (record === undefined) return undefined;
    const remote = <T>(work: () => T): Promise<T> => this.#life.remote(async () => work());
    const job = {
      id,
      opts: {},
      data: JSON.parse(record.data) as GenJobData,
      priority: record.priority,
      stalledCounter: record.stalls,
      updateData: (data: GenJobData) =>
        remote(() => {
          record.data = JSON.stringify(data);
          job.data = JSON.parse(record.data) as GenJobData;
        }),
      changePriority: ({ priority }: { priority?: number }) =>
        remote(() => {
          record.priority = priority ?? 0;
        }),
      moveToDelayed: (ms: number) =>
        remote(() => {
          if (record.lock?.token !== token) throw new Error('the lock is lost');
          record.lock = undefined;
          record.dueMs = ms;
        }),
      extendLock: () => remote(() => (record.lock?.token === token ? 1 : 0)),
      isDelayed: () => remote(() => record.lock === undefined && record.dueMs > this.#life.clock.now()),
      promote: () =>
        remote(() => {
          record.dueMs = 0;
        }),
      log: () => remote(() => 1),
      updateProgress: () => remote(() => {}),
    };
    return job as Partial<GenQueueJob> as GenQueueJob;
  }

  #jobIndex(): JobIndex {
    const { owners, wakes } = this.#disk;
    const remote = <T>(work: () => T): Promise<T> => this.#life.remote(async () => work());
    return {
      callOf: (jobId) => remote(() => owners.get(jobId)),
      add: (jobId, id) => remote(() => void owners.set(jobId, id)),
      size: () => remote(() => owners.size),
      wake: (jobId) => remote(() => void wakes.add(jobId)),
      hasWake: (jobId) => remote(() => wakes.has(jobId)),
      consumeWake: (jobId) => remote(() => wakes.delete(jobId)),
      remove: (jobId) =>
        remote(() => {
          wakes.delete(jobId);
          owners.delete(jobId);
        }),
      sweep: async () => {},
      close: async () => {},
      disconnect: async () => {},
    };
  }
}

/** A record of a version that these workers don't support. */
export const NEWER_RECORD: GenJobData = { version: RECORD_VERSION + 1, call: 'videos', params: { prompt: 'a fox' } };
