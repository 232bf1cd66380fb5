import type { SavedOutput } from '../../adapters/node/index.js';
import type { GenClient } from '../../client/client.js';
import { BudgetExceededError } from '../../errors/client-errors.js';
import {
  ConnectionError,
  DownloadError,
  GenError,
  NotFoundError,
  ServerError,
  UploadError,
  WaitTimeoutError,
} from '../../errors/index.js';
import { createBudget } from '../../ledger/create-budget.js';
import { backoff } from '../../rules/backoff.js';
import { failureKindOf } from '../../rules/failure-kind.js';
import { systemClock } from '../../runtime/clock.js';
import { sleep } from '../../runtime/deadline.js';
import type { Budget } from '../../schemas/budget.js';
import type { CreatedJob, Job } from '../../schemas/job.js';
import type { Store } from '../../store/port.js';
import { jobErrorOf } from '../../waiting/wait.js';
import { EXIT, errorDocument, exitCodeOf } from '../errors.js';
import { type JobMakers, resumeLine } from '../run-job.js';
import type { Session } from '../session.js';
import { downloadLine } from '../target.js';
import { type BatchTarget, type RowRecords, savedBefore, saveFile } from './records.js';
import type { Row } from './rows.js';

export interface RowResult {
  readonly row: Pick<Row, 'line' | 'id' | 'label' | 'call' | 'key'>;
  /**
   * `failed`: there is no job, or it ended without a file. `pending`: its job goes on. `not_saved`: the job is done, and its
   * file is not saved.
   */
  readonly status: 'completed' | 'failed' | 'pending' | 'not_saved' | 'not_started';
  readonly job?: Job | undefined;
  readonly file?: SavedOutput;
  readonly warnings?: readonly string[] | undefined;
  readonly error?: Record<string, unknown> | undefined;
  /** The command that fetches a file which could not be saved. */
  readonly next?: string | undefined;
}

export interface BatchPlan {
  readonly rows: readonly Row[];
  /** Keeps its creates in the store of the batch. */
  readonly client: GenClient;
  readonly store: Store;
  readonly records: RowRecords;
  readonly target: BatchTarget;
  readonly maxTokens: number | undefined;
  readonly concurrency: number;
  readonly wait: { readonly timeoutMs?: number | false | undefined; readonly pollIntervalMs?: number | undefined };
  readonly onResult: (result: RowResult) => void;
}

/**
 * Runs the rows that are not done yet. A row that fails stops none of the others, unless all would fail in the same way:
 * then it resolves with the reason, no further rows are started, and creates that are not answered are ended.
 */
export function runBatch(session: Session, plan: BatchPlan): Promise<unknown> {
  return new BatchRun(session, plan).all();
}

/** Returns true if every other row would fail for the same reason: a wrong key, no balance, an unavailable service. */
function isSystemic(error: unknown): boolean {
  const cause = UploadError.isInstance(error) ? error.cause : error;
  return (
    exitCodeOf(error) === EXIT.account ||
    (ConnectionError.isInstance(cause) && failureKindOf(cause) === 'unsent') ||
    (ServerError.isInstance(cause) && cause.code === 'dispatch_disabled')
  );
}

/** The pauses before creates whose answer was lost are sent again, beyond the retries of the client. */
const LOST = { firstMs: 1_000, mostMs: 60_000 };
const LOST_TRIES = 3;
/** A job that is made again by its own run: the failure is not the row's last word. */
const RESUBMITTED = 'reference_asset_pending';

const LEFT_OUT = {
  batch_stopped: 'The batch was stopped. The next run resumes the jobs that were sent.',
  budget_exceeded: 'It would exceed --max-tokens.',
};

const NO_LIMIT = 1_000_000_000;

/**
 * The budget of all runs of a batch, in its own store. A run without --max-tokens counts, too, for a later run that has it: at
 * no estimated price, so that its rows do not wait for each other.
 */
function budgetOf({ store, maxTokens }: Pick<BatchPlan, 'store' | 'maxTokens'>): Budget {
  const terms = { per: 'total', scope: 'batch', store } as const;
  if (maxTokens === undefined) return createBudget({ ...terms, maxTokens: NO_LIMIT, unknownPrice: () => 0 });
  return createBudget({ ...terms, maxTokens });
}

class BatchRun {
  readonly #session: Session;
  readonly #plan: BatchPlan;
  readonly #budget: Budget;
  readonly #accepted = new Map<Row, Pick<CreatedJob, 'job' | 'warnings'>>();
  /** Ends the creates that are not answered. */
  readonly #unanswered = new Set<AbortController>();
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
    this.#budget = budgetOf(plan);
  }

  async all(): Promise<unknown> {
    let rows = this.#inOrder();
    for (let idle = 0; rows.length > 0 && idle <= LOST_TRIES; ) {
      this.#again.clear();
      // One iterator for all workers: each takes the next row.
      const queue = rows.values();
      const worker = async () => {
        for (const row of queue) await this.#row(row);
      };
      await Promise.all(Array.from({ length: this.#plan.concurrency }, worker));
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

  /** What is done comes first, then what may have been paid for. */
  #inOrder(): Row[] {
    const rank = (row: Row) => {
      const { job, jobId, mayHaveJob } = this.#plan.records.standing(row);
      return job ? 0 : mayHaveJob ? 1 : jobId === undefined ? 3 : 2;
    };
    return this.#plan.rows.toSorted((a, b) => rank(a) - rank(b));
  }

  async #row(row: Row): Promise<void> {
    const { signal } = this.#session;
    if (signal.aborted) return;
    const { target, records } = this.#plan;
    try {
      const file = savedBefore(records.of(row), target);
      const job = await this.#jobOf(row);
      if (job === undefined) return;
      if (job.status !== 'completed') await this.#failed(row, job);
      else if (file) this.#end({ row, status: 'completed', job, file });
      else await this.#save(row, job);
    } catch (error) {
      if (!signal.aborted) this.#fail(row, error);
    }
  }

  /** The job of a row, once it has ended; undefined where the row is not started. */
  async #jobOf(row: Row): Promise<Job | undefined> {
    const { client, records, wait } = this.#plan;
    const { key, job, jobId } = records.standing(row);
    if (job) return job;
    if (jobId !== undefined) {
      const options = { ...wait, signal: this.#session.signal, throwOnFailure: false } as const;
      const ended = await client.waitForJob(jobId, options);
      // The run that made it goes on where it was.
      if (ended.status !== 'failed' || ended.errorCode !== RESUBMITTED) return ended;
    }
    if (this.#stopped !== undefined) return this.#leaveOut(row, 'batch_stopped');
    const create = new AbortController();
    this.#unanswered.add(create);
    try {
      return await this.#make(row, key, create);
    } catch (error) {
      if (create.signal.aborted) return this.#leaveOut(row, 'batch_stopped');
      const isLost = !this.#accepted.has(row) && failureKindOf(error) === 'lost';
      if (!isLost && !BudgetExceededError.isInstance(error)) throw error;
      if (isLost) this.#lost.add(row);
      this.#again.set(row, error);
      return undefined;
    } finally {
      this.#unanswered.delete(create);
    }
  }

  #make(row: Row, idempotencyKey: string, create: AbortController): Promise<Job> {
    const { client, wait } = this.#plan;
    const maker = (client as JobMakers)[row.call];
    return maker.createAndWait(row.params as never, {
      ...wait,
      signal: AbortSignal.any([this.#session.signal, create.signal]),
      idempotencyKey,
      throwOnFailure: false,
      cleanup: 'after-job',
      budget: this.#budget,
      label: row.label ?? row.id,
      extraBody: row.extraBody,
      onCreated: ({ job, quoted_token_cost: quotedTokenCost, warnings }: CreatedJob) => {
        this.#unanswered.delete(create);
        const before = this.#accepted.get(row)?.warnings ?? [];
        const quote = quotedTokenCost === undefined ? {} : { quotedTokenCost };
        this.#accepted.set(row, { job: { ...job, ...quote }, warnings: [...before, ...warnings] });
      },
    });
  }

  async #failed(row: Row, job: Job): Promise<void> {
    await this.#plan.records.note(row, { job });
    // The job stands beside its error.
    this.#lose({ row, status: 'failed', job, error: { ...errorDocument(jobErrorOf(job)), job: undefined } });
  }

  async #save(row: Row, job: Job): Promise<void> {
    const { client, target, records } = this.#plan;
    const { signal } = this.#session;
    try {
      const file = await saveFile(job, { client, records, signal, row, ...target });
      this.#end({ row, status: 'completed', job, file });
    } catch (error) {
      signal.throwIfAborted();
      // No other file could be saved either on a disk that is full.
      if (DownloadError.isInstance(error) && error.code === 'cannot_write') this.#stop(error);
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
      const seen = WaitTimeoutError.isInstance(error) ? error.job : undefined;
      const job: Job = { id, status: 'processing', ...accepted, ...seen };
      this.#lose({ row, status: 'pending', job, error: errorDocument(error) }, EXIT.service);
      return;
    }
    const next = id === undefined ? {} : { next: resumeLine(id, { out: this.#plan.target.out }) };
    this.#lose({ row, status: 'failed', error: errorDocument(error), ...next });
  }

  #stop(error: unknown): void {
    this.#stopped ??= error;
    for (const create of this.#unanswered) create.abort();
  }

  #leaveOut(row: Row, code: keyof typeof LEFT_OUT): undefined {
    this.#lose({ row, status: 'not_started', error: { name: 'GenError', message: LEFT_OUT[code], code } });
  }

  #lose(result: RowResult & { row: Row }, exitCode: number = EXIT.failed): void {
    // A row that failed says more than one that goes on.
    if (this.#session.exitCode === EXIT.done || exitCode === EXIT.failed) this.#session.exitCode = exitCode;
    this.#end(result);
  }

  #end(result: RowResult & { row: Row }): void {
    const warnings = this.#accepted.get(result.row)?.warnings ?? [];
    this.#plan.onResult(warnings.length > 0 ? { ...result, warnings } : result);
  }
}
