import type { GenClient } from '../../client/client.js';
import { BudgetExceededError } from '../../errors/client-errors.js';
import { GenError, NotFoundError, WaitTimeoutError } from '../../errors/index.js';
import { createBudget } from '../../ledger/create-budget.js';
import { backoff } from '../../rules/backoff.js';
import { fateOf } from '../../rules/fate.js';
import { systemClock } from '../../runtime/clock.js';
import { onAbort, sleep } from '../../runtime/deadline.js';
import type { Budget } from '../../schemas/budget.js';
import { type CreatedJob, isCompleted, type Job, tokensIn } from '../../schemas/job.js';
import { jobErrorOf } from '../../waiting/wait.js';
import { EXIT, errorDocument } from '../errors.js';
import { type JobMakers, resumeLine } from '../run-job.js';
import type { Session } from '../session.js';
import { downloadLine } from '../target.js';
import { type BatchPlaces, isPlaced, type Placed, placedBefore, placeFile } from './places.js';
import { attemptKey, type RowRecord, type RowRecords } from './records.js';
import type { Row } from './rows.js';
import { isSystemic, isTargetAway, isUnpaid, type LeftOut, leftOut, RESUBMITTED } from './standing.js';

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
  /** The keys of the creates that were sent. */
  readonly sentKeys: ReadonlySet<string>;
  readonly places: BatchPlaces;
  readonly maxTokens: number | undefined;
  readonly concurrency: number;
  /** Whether rows whose job has failed are tried again under another key. */
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
  const run = new BatchRun(session, plan, await keysUnderWay(plan.client));
  // One iterator for all workers: each takes the next row.
  const queue = run.inOrder().values();
  const worker = async () => {
    for (const row of queue) await run.row(row);
  };
  await Promise.all(Array.from({ length: Math.min(plan.concurrency, plan.rows.length) }, worker));
  session.signal.throwIfAborted();
  return { stopped: run.stopped };
}

/** The keys of the creates that an earlier run may have sent. */
async function keysUnderWay(client: GenClient): Promise<ReadonlySet<string>> {
  const keys = new Set<string>();
  for await (const { idempotencyKey, phase } of client.openCreates()) if (phase !== 'open') keys.add(idempotencyKey);
  return keys;
}

/** The pauses before a create whose answer was lost is sent again, beyond the retries of the client. */
const LOST = { firstMs: 1_000, mostMs: 8_000 };
const LOST_TRIES = 3;
/** What ends a create that was not sent when the batch stops. */
const STOPPED = Symbol('stopped');

class BatchRun {
  readonly #session: Session;
  readonly #plan: BatchPlan;
  readonly #underWay: ReadonlySet<string>;
  readonly #budget: Budget | undefined;
  #stopped: unknown;
  /** Ends the creates that are not sent, when the batch stops. */
  readonly #unsent = new Set<() => void>();
  /** Rows whose end may give tokens back. */
  #running = 0;
  #waiting: ((again: boolean) => void)[] = [];

  constructor(session: Session, plan: BatchPlan, underWay: ReadonlySet<string>) {
    this.#session = session;
    this.#plan = plan;
    this.#underWay = underWay;
    const { maxTokens, records } = plan;
    // The limit is for all runs of the batch.
    const leftTokens = maxTokens === undefined ? undefined : Math.max(0, maxTokens - records.spentTokens());
    this.#budget = leftTokens === undefined ? undefined : createBudget({ maxTokens: leftTokens });
  }

  /** Why no further rows are started. */
  get stopped(): unknown {
    return this.#stopped;
  }

  #stop(error: unknown): void {
    this.#stopped ??= error;
    for (const end of this.#unsent) end();
  }

  /** Of the rows with one key the first. What is done comes first, then what may have been paid for. */
  inOrder(): Row[] {
    const { rows, records, retryFailed } = this.#plan;
    const rank = (row: Row) => {
      const record = records.of(row);
      if (this.#mayHaveJob(row, record.attempt)) return 1;
      if (isUnpaid(record, retryFailed)) return 3;
      return record.job === undefined ? 2 : 0;
    };
    const keys = new Set<string>();
    const firsts = rows.filter(({ key }) => !keys.has(key) && keys.add(key));
    return firsts.sort((a, b) => rank(a) - rank(b) || a.line - b.line);
  }

  #mayHaveJob(row: Row, attempt: number): boolean {
    return this.#plan.records.of(row).jobId === undefined && this.#underWay.has(attemptKey(row, attempt));
  }

  async row(row: Row): Promise<void> {
    const { signal } = this.#session;
    if (signal.aborted) return;
    try {
      await this.#run(row);
    } catch (error) {
      if (!signal.aborted) this.#fail(row, error);
    }
  }

  async #run(row: Row): Promise<void> {
    const { retryFailed, places, client, wait, records } = this.#plan;
    const record = records.of(row);
    const { job, jobId, attempt, isStored } = record;
    if (job?.status === 'completed' && isStored && isPlaced(record, places)) {
      this.#end({ row, status: 'completed', job, ...placedBefore(record) });
    } else if (isUnpaid(record, retryFailed)) {
      const isAnew = job !== undefined && job.errorCode !== RESUBMITTED;
      await this.#pay(row, isAnew ? attempt + 1 : attempt);
    } else if (job) await this.#ended(row, job);
    else if (jobId !== undefined) {
      const options = { ...wait, signal: this.#session.signal, throwOnFailure: false } as const;
      const ended = await this.#counted(() => client.waitForJob(jobId, options));
      // The run that made it goes on where it was.
      if (ended.status === 'failed' && ended.errorCode === RESUBMITTED) await this.#pay(row, attempt);
      else await this.#ended(row, ended);
    }
  }

  /** Makes the job of a row that is not paid for. */
  async #pay(row: Row, attempt: number): Promise<void> {
    const mayHaveJob = this.#mayHaveJob(row, attempt);
    const leaveOut = (why: LeftOut) => this.#lose({ row, status: 'not_started', error: leftOut(why, { mayHaveJob }) });
    for (;;) {
      if (this.#session.signal.aborted) return;
      if (this.#stopped !== undefined) return leaveOut('batch_stopped');
      try {
        return await this.#ended(row, await this.#make(row, attempt));
      } catch (error) {
        if (error === STOPPED) return leaveOut('batch_stopped');
        if (!BudgetExceededError.isInstance(error)) throw error;
        // A job that fails gives its tokens back. Without one, the rows that wait do not fit either.
        const again = this.#running > 0 && (await new Promise<boolean>((resolve) => this.#waiting.push(resolve)));
        if (!again) return leaveOut('budget_exceeded');
      }
    }
  }

  /** Creates and waits. A create whose answer was lost is sent again under its key. */
  #make(row: Row, attempt: number): Promise<Job> {
    const { client, wait, records, sentKeys } = this.#plan;
    const maker = (client as JobMakers)[row.call];
    const key = attemptKey(row, attempt);
    const stop = new AbortController();
    const forget = onAbort(this.#session.signal, () => stop.abort(this.#session.signal.reason));
    const end = () => {
      if (!sentKeys.has(key)) stop.abort(STOPPED);
    };
    let isAccepted = false;
    const options = {
      ...wait,
      signal: stop.signal,
      idempotencyKey: key,
      throwOnFailure: false,
      cleanup: 'after-job',
      budget: this.#budget,
      label: row.label ?? row.id,
      extraBody: row.extraBody,
      onCreated: async ({ job, quoted_token_cost, warnings }: CreatedJob) => {
        isAccepted = true;
        const quotedTokens = tokensIn(quoted_token_cost) ?? tokensIn(job.quotedTokenCost);
        this.#warn(row, warnings);
        const quote = quotedTokens === undefined ? {} : { quotedTokens };
        await records.note(row, { attempt, jobId: job.id, ...quote });
      },
    } as const;
    this.#unsent.add(end);
    return this.#counted(async () => {
      for (let tries = 1; ; tries++) {
        try {
          return await maker.createAndWait(row.params as never, options);
        } catch (error) {
          const isLost = !isAccepted && !stop.signal.aborted && fateOf(error) === 'lost';
          if (!isLost || tries > LOST_TRIES) throw error;
          await sleep(systemClock, backoff(LOST, tries), this.#session.signal);
        }
      }
    }).finally(() => {
      forget();
      this.#unsent.delete(end);
    });
  }

  readonly #warnings = new Map<Row, readonly string[]>();

  #warn(row: Row, warnings: readonly string[]): void {
    if (warnings.length === 0) return;
    this.#warnings.set(row, [...(this.#warnings.get(row) ?? []), ...warnings]);
    for (const warning of warnings) this.#session.terminal.note(`Warning: line ${row.line}: ${warning}`);
  }

  /** Counts the work among what may give tokens back. */
  async #counted<T>(work: () => Promise<T>): Promise<T> {
    this.#running += 1;
    try {
      const result = await work();
      this.#running -= 1;
      this.#wake(true);
      return result;
    } catch (error) {
      this.#running -= 1;
      const isRefused = BudgetExceededError.isInstance(error);
      if (!isRefused || this.#running === 0) this.#wake(!isRefused);
      throw error;
    }
  }

  /** Ends the waits of the rows that did not fit: they try again, or are left out. */
  #wake(again: boolean): void {
    for (const wake of this.#waiting.splice(0)) wake(again);
  }

  async #ended(row: Row, job: Job): Promise<void> {
    const record = await this.#plan.records.note(row, { jobId: job.id, job });
    if (isCompleted(job) || job.status === 'completed') await this.#place(row, job, record);
    // The job stands beside its error.
    else this.#lose({ row, status: 'failed', job, error: { ...errorDocument(jobErrorOf(job)), job: undefined } });
  }

  async #place(row: Row, job: Job, record: RowRecord): Promise<void> {
    const { client, places, records } = this.#plan;
    const { signal } = this.#session;
    let placed: Placed;
    try {
      placed = await placeFile(job, { client, records, signal, ...places, row, record });
    } catch (error) {
      signal.throwIfAborted();
      if (isTargetAway(error)) this.#stop(error);
      const next = downloadLine(job.id, { out: places.out });
      this.#lose({ row, status: 'not_saved', job, error: errorDocument(error), next });
      return;
    }
    this.#end({ row, status: 'completed', job, ...placed });
  }

  #fail(row: Row, error: unknown): void {
    if (isSystemic(error)) this.#stop(error);
    const { jobId, quotedTokens } = this.#plan.records.of(row);
    const named = GenError.isInstance(error) && 'jobId' in error ? error.jobId : undefined;
    const id = typeof named === 'string' ? named : jobId;
    if (id !== undefined && (WaitTimeoutError.isInstance(error) || !NotFoundError.isInstance(error))) {
      const quote = quotedTokens === undefined ? {} : { quotedTokenCost: quotedTokens };
      const seen = WaitTimeoutError.isInstance(error) ? error.job : undefined;
      const job: Job = { id, status: 'processing', ...quote, ...seen };
      this.#lose({ row, status: 'pending', job, error: errorDocument(error) }, EXIT.service);
      return;
    }
    const next = id === undefined ? {} : { next: resumeLine(id, { out: this.#plan.places.out }) };
    this.#lose({ row, status: 'failed', error: errorDocument(error), ...next });
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
      const warnings = this.#warnings.get(row);
      this.#plan.onResult(
        row.line === line ? { ...result, ...(warnings && { warnings }) } : { ...result, row, sameAs: line },
      );
    }
  }
}
