import type { GenClient } from '../../client/client.js';
import { BudgetExceededError } from '../../errors/client-errors.js';
import {
  ConnectionError,
  DownloadError,
  GenError,
  NotFoundError,
  ServerError,
  StorageError,
  UploadError,
  WaitTimeoutError,
} from '../../errors/index.js';
import { createBudget } from '../../ledger/create-budget.js';
import { backoff } from '../../rules/backoff.js';
import { fateOf, isRateLimited } from '../../rules/fate.js';
import { systemClock } from '../../runtime/clock.js';
import { sleep } from '../../runtime/deadline.js';
import type { Budget } from '../../schemas/budget.js';
import { type CreatedJob, type Job, tokensIn } from '../../schemas/job.js';
import { memoryStore } from '../../store/store.js';
import type { Hooks } from '../../transport/events.js';
import { jobErrorOf } from '../../waiting/wait.js';
import { EXIT, errorDocument, exitCodeOf } from '../errors.js';
import { type JobMakers, resumeLine } from '../run-job.js';
import type { Session } from '../session.js';
import { downloadLine } from '../target.js';
import type { RowRecords } from './records.js';
import type { Row } from './rows.js';
import { type BatchTarget, type Placed, placedBefore, placeFile } from './target.js';

export interface RowResult extends Placed {
  readonly row: Pick<Row, 'line' | 'id' | 'label' | 'call' | 'key'>;
  /**
   * `failed`: there is no job, or it ended without a file. `pending`: its job goes on. `not_saved`: the job is done, and its
   * file is not placed.
   */
  readonly status: 'completed' | 'failed' | 'pending' | 'not_saved' | 'not_started';
  /** The line of the row whose job this is, because both have the same key. */
  readonly sameAs?: number | undefined;
  readonly job?: Job | undefined;
  readonly warnings?: readonly string[] | undefined;
  readonly error?: Record<string, unknown> | undefined;
  /** The command that fetches a file which could not be placed. */
  readonly next?: string | undefined;
}

export interface BatchPlan {
  readonly rows: readonly Row[];
  /** Keeps its creates in the store of the batch. */
  readonly client: GenClient;
  readonly records: RowRecords;
  readonly unsent: UnsentCreates;
  readonly target: BatchTarget;
  readonly maxTokens: number | undefined;
  readonly concurrency: number;
  readonly wait: { readonly timeoutMs?: number | false | undefined; readonly pollIntervalMs?: number | undefined };
  readonly onResult: (result: RowResult) => void;
}

/**
 * Runs the rows that are not done yet. A row that fails stops none of the others, unless all would fail in the same way:
 * then it resolves with the reason, no further rows are started, and what still queues is not sent.
 */
export function runBatch(session: Session, plan: BatchPlan): Promise<unknown> {
  return new BatchRun(session, plan).all();
}

/** Whether every other row would fail in the same way: a wrong key, no balance, a service that is away. */
function isSystemic(error: unknown): boolean {
  const cause = UploadError.isInstance(error) ? error.cause : error;
  return (
    exitCodeOf(cause) === EXIT.account ||
    (ConnectionError.isInstance(cause) && fateOf(cause) === 'unsent') ||
    (ServerError.isInstance(cause) && cause.code === 'dispatch_disabled')
  );
}

/** Whether no other file could be placed either: a full or closed disk, or a store that refuses. */
function isTargetAway(error: unknown): boolean {
  const cannotWrite = DownloadError.isInstance(error) && error.code === 'cannot_write';
  const isRefused = StorageError.isInstance(error) && error.code !== 'object_exists';
  return cannotWrite || isRefused || ConnectionError.isInstance(error);
}

/** The pauses before creates whose answer was lost are sent again, beyond the retries of the client. */
const LOST = { firstMs: 1_000, mostMs: 60_000 };
const LOST_TRIES = 3;
/** A job that is made again by its own run: the failure is not the row's last word. */
const RESUBMITTED = 'reference_asset_pending';

const LEFT_OUT = { batch_stopped: 'The batch was stopped.', budget_exceeded: 'It would pass --max-tokens.' };

class BatchRun {
  readonly #session: Session;
  readonly #plan: BatchPlan;
  readonly #budget: Budget | undefined;
  readonly #accepted = new Map<Row, Pick<CreatedJob, 'job' | 'warnings'>>();
  /**
   * Rows to try again: --max-tokens had no room, until a job that fails gives its tokens back, or the answer to the create
   * was lost.
   */
  readonly #again = new Map<Row, unknown>();
  /** Rows whose create has lost an answer, so that it may have made a job. */
  readonly #lost = new Set<Row>();
  #stopped: unknown;

  constructor(session: Session, plan: BatchPlan) {
    this.#session = session;
    this.#plan = plan;
    const { maxTokens, records } = plan;
    if (maxTokens === undefined) return;
    // The limit is for all runs of the batch.
    const leftTokens = Math.max(0, maxTokens - records.spentTokens());
    this.#budget = createBudget({ maxTokens: leftTokens, store: memoryStore() });
  }

  async all(): Promise<unknown> {
    const { concurrency } = this.#plan;
    let rows = this.#inOrder();
    for (let idle = 0; rows.length > 0 && idle <= LOST_TRIES; ) {
      this.#again.clear();
      // One iterator for all workers: each takes the next row.
      const queue = rows.values();
      const worker = async () => {
        for (const row of queue) await this.#row(row);
      };
      await Promise.all(Array.from({ length: Math.min(concurrency, rows.length) }, worker));
      this.#session.signal.throwIfAborted();
      const again = [...this.#again.keys()];
      if (again.length === rows.length) {
        idle = again.some((row) => this.#lost.has(row)) ? idle + 1 : Number.POSITIVE_INFINITY;
        if (idle <= LOST_TRIES) await sleep(systemClock, backoff(LOST, idle), this.#session.signal);
      }
      rows = again;
    }
    for (const [row, error] of this.#again) {
      if (BudgetExceededError.isInstance(error)) this.#leaveOut(row, 'budget_exceeded');
      else this.#fail(row, error);
    }
    return this.#stopped;
  }

  /** Of the rows with one key the first. What is done comes first, then what may have been paid for. */
  #inOrder(): Row[] {
    const rank = (row: Row) => {
      const { job, jobId, mayHaveJob } = this.#plan.records.standing(row);
      return job ? 0 : mayHaveJob ? 1 : jobId === undefined ? 3 : 2;
    };
    const keys = new Set<string>();
    const firsts = this.#plan.rows.filter(({ key }) => !keys.has(key) && keys.add(key));
    return firsts.sort((a, b) => rank(a) - rank(b) || a.line - b.line);
  }

  async #row(row: Row): Promise<void> {
    const { signal } = this.#session;
    if (signal.aborted) return;
    const { target, records } = this.#plan;
    try {
      const placed = placedBefore(records.of(row), target);
      const job = await this.#jobOf(row);
      if (job === undefined) return;
      if (job.status !== 'completed') await this.#failed(row, job);
      else if (placed) this.#end({ row, status: 'completed', job, ...placed });
      else await this.#place(row, job);
    } catch (error) {
      if (!signal.aborted) this.#fail(row, error);
    }
  }

  /** The job of a row, once it has ended; undefined where the row is not started. */
  async #jobOf(row: Row): Promise<Job | undefined> {
    const { client, records, unsent, wait } = this.#plan;
    const { key, job, jobId } = records.standing(row);
    if (job) return job;
    if (jobId !== undefined) {
      const options = { ...wait, signal: this.#session.signal, throwOnFailure: false } as const;
      const ended = await client.waitForJob(jobId, options);
      // The run that made it goes on where it was.
      if (ended.status !== 'failed' || ended.errorCode !== RESUBMITTED) return ended;
    }
    if (this.#stopped !== undefined) return this.#leaveOut(row, 'batch_stopped');
    try {
      return await unsent.while(key, this.#session.signal, (signal) => this.#make(row, key, signal));
    } catch (error) {
      if (unsent.isStopped(error)) return this.#leaveOut(row, 'batch_stopped');
      const isLost = !this.#accepted.has(row) && fateOf(error) === 'lost';
      if (!isLost && !BudgetExceededError.isInstance(error)) throw error;
      if (isLost) this.#lost.add(row);
      this.#again.set(row, error);
      return undefined;
    }
  }

  #make(row: Row, idempotencyKey: string, signal: AbortSignal): Promise<Job> {
    const { client, wait, records } = this.#plan;
    const maker = (client as JobMakers)[row.call];
    return maker.createAndWait(row.params as never, {
      ...wait,
      signal,
      idempotencyKey,
      throwOnFailure: false,
      cleanup: 'after-job',
      budget: this.#budget,
      label: row.label ?? row.id,
      extraBody: row.extraBody,
      onCreated: async ({ job, quoted_token_cost, warnings }: CreatedJob) => {
        const quotedTokens = tokensIn(quoted_token_cost) ?? tokensIn(job.quotedTokenCost);
        const before = this.#accepted.get(row)?.warnings ?? [];
        this.#accepted.set(row, { job, warnings: [...before, ...warnings] });
        if (quotedTokens !== undefined) await records.note(row, { quotedTokens });
      },
    });
  }

  async #failed(row: Row, job: Job): Promise<void> {
    await this.#plan.records.note(row, { job });
    // The job stands beside its error.
    this.#lose({ row, status: 'failed', job, error: { ...errorDocument(jobErrorOf(job)), job: undefined } });
  }

  async #place(row: Row, job: Job): Promise<void> {
    const { client, target, records } = this.#plan;
    const { signal } = this.#session;
    try {
      const placed = await placeFile(job, { client, records, signal, row, ...target });
      this.#end({ row, status: 'completed', job, ...placed });
    } catch (error) {
      signal.throwIfAborted();
      if (isTargetAway(error)) this.#stop(error);
      const next = downloadLine(job.id, { out: target.out });
      this.#lose({ row, status: 'not_saved', job, error: errorDocument(error), next });
    }
  }

  #fail(row: Row, error: unknown): void {
    if (isSystemic(error)) this.#stop(error);
    const named = GenError.isInstance(error) && 'jobId' in error ? error.jobId : undefined;
    const accepted = this.#accepted.get(row)?.job;
    const id = typeof named === 'string' ? named : (accepted?.id ?? this.#plan.records.standing(row).jobId);
    if (id !== undefined && !NotFoundError.isInstance(error)) {
      const { quotedTokens: quotedTokenCost } = this.#plan.records.of(row);
      const quote = quotedTokenCost === undefined ? {} : { quotedTokenCost };
      const seen = WaitTimeoutError.isInstance(error) ? error.job : undefined;
      const job: Job = { id, status: 'processing', ...accepted, ...quote, ...seen };
      this.#lose({ row, status: 'pending', job, error: errorDocument(error) }, EXIT.service);
      return;
    }
    const next = id === undefined ? {} : { next: resumeLine(id, { out: this.#plan.target.out }) };
    this.#lose({ row, status: 'failed', error: errorDocument(error), ...next });
  }

  #stop(error: unknown): void {
    this.#stopped ??= error;
    this.#plan.unsent.stop();
  }

  #leaveOut(row: Row, code: keyof typeof LEFT_OUT): undefined {
    const mayHaveJob = this.#lost.has(row) || this.#plan.records.standing(row).mayHaveJob;
    const message = `${LEFT_OUT[code]}${mayHaveJob ? ' It may have a job already, which a later run takes up.' : ''}`;
    this.#lose({ row, status: 'not_started', error: { name: 'GenError', message, code } });
  }

  #lose(result: RowResult, exitCode: number = EXIT.failed): void {
    // A row that failed says more than one that goes on.
    if (this.#session.exitCode === EXIT.done || exitCode === EXIT.failed) this.#session.exitCode = exitCode;
    this.#end(result);
  }

  #end(result: RowResult): void {
    const { line, key } = result.row;
    for (const row of this.#plan.rows) {
      if (row.key !== key) continue;
      const warnings = this.#accepted.get(row)?.warnings ?? [];
      const own = warnings.length > 0 ? { ...result, warnings } : result;
      this.#plan.onResult(row.line === line ? own : { ...result, row, sameAs: line });
    }
  }
}

/** What ends a create that was not sent when the batch stops. */
const STOPPED = Symbol('stopped');

/** The creates that queue, so that they can be ended before they cost anything. */
export class UnsentCreates {
  readonly #creates = new Map<string, { readonly end: AbortController; isSent: boolean }>();
  #isStopped = false;

  /** Told of each request of the client. A request that is told to come later queues again. */
  readonly hooks: Hooks = {
    onRequest: ({ idempotencyKey = '' }) => this.#note(idempotencyKey, true),
    onResponse: ({ idempotencyKey = '', error }) => {
      if (isRateLimited(error)) this.#note(idempotencyKey, false);
    },
  };

  /** Works on a create. Its signal aborts with the outer one, and when the batch stops while the create queues. */
  async while<T>(key: string, outer: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const end = new AbortController();
    this.#creates.set(key, { end, isSent: false });
    this.#endUnsent();
    try {
      return await work(AbortSignal.any([outer, end.signal]));
    } finally {
      this.#creates.delete(key);
    }
  }

  /** Ends what queues, now and later. */
  stop(): void {
    this.#isStopped = true;
    this.#endUnsent();
  }

  /** Whether a create was ended because the batch has stopped. */
  isStopped(error: unknown): boolean {
    return error === STOPPED;
  }

  #note(key: string, isSent: boolean): void {
    const create = this.#creates.get(key);
    if (create) create.isSent = isSent;
    this.#endUnsent();
  }

  #endUnsent(): void {
    if (!this.#isStopped) return;
    for (const { end, isSent } of this.#creates.values()) if (!isSent) end.abort(STOPPED);
  }
}
