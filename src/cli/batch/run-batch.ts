import type { GenClient } from '../../client/client.js';
import type { OpenCreate } from '../../client/resume.js';
import { BudgetExceededError } from '../../errors/client-errors.js';
import { GenError, NotFoundError, WaitTimeoutError } from '../../errors/index.js';
import { createBudget } from '../../ledger/create-budget.js';
import { backoff } from '../../rules/backoff.js';
import { fateOf } from '../../rules/fate.js';
import { systemClock } from '../../runtime/clock.js';
import { sleep } from '../../runtime/deadline.js';
import type { Budget } from '../../schemas/budget.js';
import { type CreatedJob, type Job, tokensIn } from '../../schemas/job.js';
import { memoryStore } from '../../store/store.js';
import { jobErrorOf } from '../../waiting/wait.js';
import { EXIT, errorDocument } from '../errors.js';
import { type JobMakers, resumeLine } from '../run-job.js';
import type { Session } from '../session.js';
import { downloadLine } from '../target.js';
import { type BatchPlaces, isPlaced, type Placed, placedBefore, placeFile } from './places.js';
import type { RowRecords } from './records.js';
import type { Row } from './rows.js';
import { isSystemic, isTargetAway, rowStanding, type Standing } from './standing.js';
import type { UnsentCreates } from './unsent.js';

/** What became of a row. */
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
  /** What the service warns of. */
  readonly warnings?: readonly string[] | undefined;
  readonly error?: Record<string, unknown> | undefined;
  /** The command that fetches a file which could not be placed. */
  readonly next?: string | undefined;
}

/** How to run a batch. */
export interface BatchPlan {
  readonly rows: readonly Row[];
  /** Keeps its creates in the store of the batch. */
  readonly client: GenClient;
  readonly records: RowRecords;
  /** The creates of the store that are not done, by their key. */
  readonly open: ReadonlyMap<string, OpenCreate>;
  /** Told by the client of each request. */
  readonly unsent: UnsentCreates;
  readonly places: BatchPlaces;
  readonly maxTokens: number | undefined;
  readonly concurrency: number;
  /** Whether rows whose job has failed are made anew. */
  readonly retryFailed: boolean;
  readonly wait: { readonly timeoutMs?: number | false | undefined; readonly pollIntervalMs?: number | undefined };
  /** Called with each result, in the order in which rows end. */
  readonly onResult: (result: RowResult) => void;
}

/**
 * Runs the rows that are not done yet. A row that fails stops none of the others, unless all would fail in the same way:
 * then `stopped` is why no further rows were started, and what still queues is not sent.
 */
export async function runBatch(session: Session, plan: BatchPlan): Promise<{ readonly stopped: unknown }> {
  const run = new BatchRun(session, plan);
  await run.all();
  return { stopped: run.stopped };
}

/** The pauses before creates whose answer was lost are sent again, beyond the retries of the client. */
const LOST = { firstMs: 1_000, mostMs: 60_000 };
const LOST_TRIES = 3;
/** A job that is made again by its own run: the failure is not the row's last word. */
const RESUBMITTED = 'reference_asset_pending';

/** Why a row is not started, and what finishes it. */
const LEFT_OUT = {
  batch_stopped: ['The batch was stopped.', 'the next run'],
  budget_exceeded: ['It would pass --max-tokens.', 'a higher limit'],
} as const;

class BatchRun {
  readonly #session: Session;
  readonly #plan: BatchPlan;
  readonly #budget: Budget | undefined;
  /** What was accepted in this run. */
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
    // The limit is for all runs of the batch.
    const leftTokens = maxTokens === undefined ? undefined : Math.max(0, maxTokens - records.spentTokens());
    this.#budget = leftTokens === undefined ? undefined : createBudget({ maxTokens: leftTokens, store: memoryStore() });
  }

  /** Why no further rows are started. */
  get stopped(): unknown {
    return this.#stopped;
  }

  async all(): Promise<void> {
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
  }

  /** Of the rows with one key the first. What is done comes first, then what may have been paid for. */
  #inOrder(): Row[] {
    const rank = (row: Row) => {
      const { job, jobId, mayHaveJob } = this.#standing(row);
      return job ? 0 : mayHaveJob ? 1 : jobId === undefined ? 3 : 2;
    };
    const keys = new Set<string>();
    const firsts = this.#plan.rows.filter(({ key }) => !keys.has(key) && keys.add(key));
    return firsts.sort((a, b) => rank(a) - rank(b) || a.line - b.line);
  }

  #standing(row: Row): Standing {
    const { records, open, retryFailed } = this.#plan;
    return rowStanding(row, { record: records.of(row), open, retryFailed });
  }

  async #row(row: Row): Promise<void> {
    const { signal } = this.#session;
    if (signal.aborted) return;
    const { places, records } = this.#plan;
    try {
      const record = records.of(row);
      const job = await this.#jobOf(row, this.#standing(row));
      if (job === undefined) return;
      if (job.status !== 'completed') await this.#failed(row, job);
      else if (record.isStored && isPlaced(record, places)) {
        this.#end({ row, status: 'completed', job, ...placedBefore(record) });
      } else await this.#place(row, job);
    } catch (error) {
      if (!signal.aborted) this.#fail(row, error);
    }
  }

  /** The job of a row, once it has ended; undefined where the row is not started. */
  async #jobOf(row: Row, { key, job, jobId }: Standing): Promise<Job | undefined> {
    if (job) return job;
    const { client, wait } = this.#plan;
    if (jobId !== undefined) {
      const options = { ...wait, signal: this.#session.signal, throwOnFailure: false } as const;
      const ended = await client.waitForJob(jobId, options);
      // The run that made it goes on where it was.
      if (ended.status !== 'failed' || ended.errorCode !== RESUBMITTED) return ended;
    }
    if (this.#stopped !== undefined) return this.#leaveOut(row, 'batch_stopped');
    const { unsent } = this.#plan;
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
    const { client, places, records } = this.#plan;
    const { signal } = this.#session;
    try {
      this.#end({
        row,
        status: 'completed',
        job,
        ...(await placeFile(job, { client, records, signal, row, ...places })),
      });
    } catch (error) {
      signal.throwIfAborted();
      if (isTargetAway(error)) this.#stop(error);
      const next = downloadLine(job.id, { out: places.out });
      this.#lose({ row, status: 'not_saved', job, error: errorDocument(error), next });
    }
  }

  #fail(row: Row, error: unknown): void {
    if (isSystemic(error)) this.#stop(error);
    const named = GenError.isInstance(error) && 'jobId' in error ? error.jobId : undefined;
    const accepted = this.#accepted.get(row)?.job;
    const id = typeof named === 'string' ? named : (accepted?.id ?? this.#standing(row).jobId);
    if (id !== undefined && !NotFoundError.isInstance(error)) {
      const { quotedTokens: quotedTokenCost } = this.#plan.records.of(row);
      const quote = quotedTokenCost === undefined ? {} : { quotedTokenCost };
      const seen = WaitTimeoutError.isInstance(error) ? error.job : undefined;
      const job: Job = { id, status: 'processing', ...accepted, ...quote, ...seen };
      this.#lose({ row, status: 'pending', job, error: errorDocument(error) }, EXIT.service);
      return;
    }
    const next = id === undefined ? {} : { next: resumeLine(id, { out: this.#plan.places.out }) };
    this.#lose({ row, status: 'failed', error: errorDocument(error), ...next });
  }

  #stop(error: unknown): void {
    this.#stopped ??= error;
    this.#plan.unsent.stop();
  }

  #leaveOut(row: Row, code: keyof typeof LEFT_OUT): undefined {
    const [why, remedy] = LEFT_OUT[code];
    const mayHaveJob = this.#lost.has(row) || this.#standing(row).mayHaveJob;
    const message = mayHaveJob ? `${why} It may have a job already: ${remedy} finishes it.` : why;
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
