import type { SavedOutput } from '../../adapters/node/index.js';
import {
  type Budget,
  BudgetExceededError,
  ConnectionError,
  type CreatedJob,
  createBudget,
  DownloadError,
  type GenClient,
  isCompleted,
  type Job,
  JobError,
  NotFoundError,
  ServerError,
  type Store,
  UploadError,
  WaitTimeoutError,
} from '../../index.js';
import { failureKindOf, isUnknownUpload } from '../../rules/failure-kind.js';
import { systemClock } from '../../runtime/clock.js';
import { sleep } from '../../runtime/deadline.js';
import { EXIT, errorDocument, exitCodeOf } from '../errors.js';
import type { JobCreators } from '../run-job.js';
import type { Session } from '../session.js';
import { downloadLine } from '../target.js';
import { type BatchTarget, type RowRecords, savedBefore, saveFile } from './records.js';
import type { Row } from './rows.js';

export interface RowResult {
  readonly row: Pick<Row, 'line' | 'id' | 'label' | 'call' | 'key'>;
  /**
   * `failed`: the create failed, or the job ended without a file. `pending`: the job continues. `not_saved`: the job is completed
   * but its file isn't saved.
   */
  readonly status: 'completed' | 'failed' | 'pending' | 'not_saved' | 'not_started';
  readonly job?: Job | undefined;
  readonly file?: SavedOutput;
  readonly warnings?: readonly string[] | undefined;
  readonly error?: Record<string, unknown> | undefined;
  /** The command that saves the file of a completed job. */
  readonly next?: string | undefined;
}

export interface BatchPlan {
  readonly rows: readonly Row[];
  /** A client that uses `store`. */
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
 * Runs all rows, and reuses the files of earlier runs. If a row fails for a reason that applies to all others, aborts
 * the creates without a response, and resolves with the error.
 */
export function runBatch(session: Session, plan: BatchPlan): Promise<unknown> {
  return new BatchRun(session, plan).run();
}

/** Returns true if every other row would fail for the same reason, such as an invalid API key or no balance. */
function isSystemic(error: unknown): boolean {
  const cause = UploadError.isInstance(error) ? error.cause : error;
  return (
    exitCodeOf(error) === EXIT.account ||
    (ConnectionError.isInstance(cause) && failureKindOf(cause) === 'unsent') ||
    (ServerError.isInstance(cause) && cause.code === 'dispatch_disabled')
  );
}

/** Pauses before resending creates whose response was lost, after the client's own retries. */
const LOST_PAUSES_MS = [1_000, 4_000, 15_000];

const SKIP_MESSAGES = {
  batch_stopped: 'The batch was stopped. The next run resumes the rows already sent.',
  budget_exceeded: 'It would exceed --max-tokens.',
};

const NO_LIMIT = 1_000_000_000;

/**
 * Returns the budget that all runs of a batch share, including those without `--max-tokens`. In such a run, an unknown
 * price counts as 0, so that rows can run concurrently.
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
  /** Controllers of creates that have no response yet. */
  readonly #pendingCreates = new Set<AbortController>();
  /** Rows to run again, and the reason: `--max-tokens` was reached, the response was lost, or an upload no longer exists. */
  readonly #retries = new Map<Row, unknown>();
  #stopped: unknown;

  constructor(session: Session, plan: BatchPlan) {
    this.#session = session;
    this.#plan = plan;
    this.#budget = budgetOf(plan);
  }

  async run(): Promise<unknown> {
    const { rows: allRows, records, concurrency } = this.#plan;
    // Rows that may have been charged come first.
    let rows = allRows.toSorted((a, b) => Number(records.isSent(b)) - Number(records.isSent(a)));
    const pauses = LOST_PAUSES_MS.values();
    for (;;) {
      const previousCount = rows.length;
      this.#retries.clear();
      // All workers share the iterator.
      const queue = rows.values();
      const worker = async () => {
        for (const row of queue) await this.#runRow(row);
      };
      await Promise.all(Array.from({ length: concurrency }, worker));
      this.#session.signal.throwIfAborted();
      rows = [...this.#retries.keys()];
      if (rows.length === 0) break;
      // A failed job may have released tokens, so continue while rows end. If none has, retry only for a lost response.
      if (rows.length < previousCount) continue;
      const isLost = [...this.#retries.values()].some((error) => !BudgetExceededError.isInstance(error));
      const pauseMs = isLost ? pauses.next().value : undefined;
      if (pauseMs === undefined) break;
      await sleep(systemClock, pauseMs, this.#session.signal);
    }
    for (const [row, error] of this.#retries) {
      if (BudgetExceededError.isInstance(error)) this.#skip(row, 'budget_exceeded');
      else this.#fail(row, error);
    }
    return this.#stopped;
  }

  async #runRow(row: Row): Promise<void> {
    const { signal } = this.#session;
    if (signal.aborted) return;
    const { records } = this.#plan;
    try {
      const job = records.of(row).job ?? (await this.#jobOf(row));
      if (job === undefined) return;
      if (isCompleted(job)) await this.#save(row, job);
      else this.#reportError({ row, status: 'failed', job, error: records.of(row).error });
    } catch (error) {
      if (!signal.aborted) this.#fail(row, error);
    }
  }

  /** Returns the final job of a row, or undefined if the row is skipped or must be run again. */
  async #jobOf(row: Row): Promise<Job | undefined> {
    const { records } = this.#plan;
    if (this.#stopped !== undefined) return this.#skip(row, 'batch_stopped');
    const controller = new AbortController();
    this.#pendingCreates.add(controller);
    try {
      const job = await this.#create(row, controller);
      await records.update(row, { job });
      return job;
    } catch (error) {
      if (controller.signal.aborted) return this.#skip(row, 'batch_stopped');
      const isLost = !this.#accepted.has(row) && failureKindOf(error) === 'lost';
      const isUploadMissing = isUnknownUpload(error) && (await records.discardUploads(row));
      if (isLost || isUploadMissing || BudgetExceededError.isInstance(error)) {
        this.#retries.set(row, error);
        return undefined;
      }
      if (!JobError.isInstance(error)) throw error;
      await records.update(row, { job: error.job, error: { ...errorDocument(error), job: undefined } });
      return error.job;
    } finally {
      this.#pendingCreates.delete(controller);
    }
  }

  #create(row: Row, controller: AbortController): Promise<Job> {
    const { client, records, wait } = this.#plan;
    return (client as JobCreators)[row.call].createAndWait(records.paramsOf(row) as never, {
      ...wait,
      signal: AbortSignal.any([this.#session.signal, controller.signal]),
      idempotencyKey: records.keyOf(row),
      cleanup: 'after-job',
      budget: this.#budget,
      label: row.label ?? row.id,
      extraBody: row.extraBody,
      onCreated: ({ job, quoted_token_cost: quotedTokenCost, warnings }: CreatedJob) => {
        this.#pendingCreates.delete(controller);
        const earlierWarnings = this.#accepted.get(row)?.warnings ?? [];
        const quote = quotedTokenCost === undefined ? {} : { quotedTokenCost };
        this.#accepted.set(row, { job: { ...job, ...quote }, warnings: [...earlierWarnings, ...warnings] });
      },
    });
  }

  async #save(row: Row, job: Job): Promise<void> {
    const { client, target, records } = this.#plan;
    const { signal } = this.#session;
    try {
      const savedFile = savedBefore(records.of(row), target);
      const file = savedFile ?? (await saveFile(client, job, { ...target, id: row.id, signal }));
      if (!savedFile) await records.update(row, { path: file.path });
      this.#report({ row, status: 'completed', job, file });
    } catch (error) {
      signal.throwIfAborted();
      // A full disk affects all other files, too.
      if (DownloadError.isInstance(error) && error.code === 'cannot_write') this.#stop(error);
      const next = downloadLine(job.id, { out: target.out });
      this.#reportError({ row, status: 'not_saved', job, error: errorDocument(error), next });
    }
  }

  #fail(row: Row, error: unknown): void {
    if (isSystemic(error)) this.#stop(error);
    const acceptedJob = this.#accepted.get(row)?.job;
    const result = { row, error: errorDocument(error) };
    if (acceptedJob === undefined || NotFoundError.isInstance(error))
      this.#reportError({ ...result, status: 'failed' });
    else {
      const job = { ...acceptedJob, ...(WaitTimeoutError.isInstance(error) && error.job) };
      this.#reportError({ ...result, status: 'pending', job }, EXIT.service);
    }
  }

  #stop(error: unknown): void {
    this.#stopped ??= error;
    for (const controller of this.#pendingCreates) controller.abort();
  }

  #skip(row: Row, code: keyof typeof SKIP_MESSAGES): undefined {
    this.#reportError({ row, status: 'not_started', error: { name: 'GenError', message: SKIP_MESSAGES[code], code } });
  }

  #reportError(result: RowResult & { row: Row }, exitCode: number = EXIT.failed): void {
    // A failed row takes precedence over a pending one.
    if (this.#session.exitCode === EXIT.done || exitCode === EXIT.failed) this.#session.exitCode = exitCode;
    this.#report(result);
  }

  #report(result: RowResult & { row: Row }): void {
    const warnings = this.#accepted.get(result.row)?.warnings ?? [];
    this.#plan.onResult(warnings.length > 0 ? { ...result, warnings } : result);
  }
}
