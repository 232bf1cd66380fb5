import { GenError } from '../../errors/index.js';
import type { Job } from '../../schemas/job.js';
import { isFinal } from '../../schemas/job.js';
import { idempotencyKeyFrom } from '../../transport/idempotency.js';
import { exitCodeOf } from '../exit-codes.js';
import { deleteUploads, isRefusal } from '../references.js';
import type { Session } from '../session.js';
import { downloadCommand } from '../target.js';
import { errorDocument } from '../wording.js';
import { makeJob, priceClassOf } from './calls.js';
import { isSystemic } from './failures.js';
import type { Journal, RowState } from './journal.js';
import { isPlaced, type Places, placeFile } from './places.js';
import type { RowResult } from './report.js';
import type { Row } from './rows.js';
import { type Share, type Spending, TokenSum } from './spending.js';
import { type BatchUploads, createBatchUploads } from './uploads.js';

/** How to run a batch. */
export interface BatchPlan {
  readonly rows: readonly Row[];
  readonly journal: Journal;
  readonly places: Places;
  readonly maxTokens: number;
  readonly concurrency: number;
  /** Whether rows whose job has failed are tried again under another key. */
  readonly retryFailed: boolean;
  readonly wait: { readonly timeoutMs?: number | false | undefined; readonly pollIntervalMs?: number | undefined };
  /** Told of each result, in the order in which rows end. */
  readonly onResult: (result: RowResult) => void;
}

/** The outcome of a run. */
export interface BatchOutcome {
  /** Why no further rows were started, where something concerns them all. */
  readonly stopped: unknown;
}

/** Runs the rows that are not done yet. A row that fails stops none of the others, unless all would fail in the same way. */
export async function runBatch(session: Session, plan: BatchPlan): Promise<BatchOutcome> {
  const run = new BatchRun(session, plan);
  // One iterator for all workers: each takes the next row.
  const queue = run.inOrder().values();
  const worker = async () => {
    for (const row of queue) await run.row(row);
  };
  await Promise.all(Array.from({ length: Math.min(plan.concurrency, plan.rows.length) }, worker));
  await run.cleanUp();
  session.signal.throwIfAborted();
  return { stopped: run.stopped };
}

class BatchRun {
  stopped: unknown;
  readonly #session: Session;
  readonly #plan: BatchPlan;
  readonly #spending: Spending;
  readonly #uploads: BatchUploads;

  constructor(session: Session, plan: BatchPlan) {
    this.#session = session;
    this.#plan = plan;
    this.#spending = new TokenSum(plan.maxTokens, plan.journal.states());
    this.#uploads = createBatchUploads(session);
  }

  /** What is done comes first, then what may have been paid for. */
  inOrder(): Row[] {
    const rank = ({ key }: Row) => {
      const state = this.#plan.journal.of(key)?.state;
      if (state === 'ended') return 0;
      return state === 'accepted' || state === 'sending' ? 1 : 2;
    };
    return [...this.#plan.rows].sort((a, b) => rank(a) - rank(b) || a.line - b.line);
  }

  async row(row: Row): Promise<void> {
    const { signal } = this.#session;
    if (signal.aborted) return;
    try {
      const job = await this.#job(row);
      if (job === undefined) return;
      if (job.status === 'completed') await this.#place(row, job);
      else this.#fail(row, jobFailure(job), { job });
    } catch (error) {
      if (!signal.aborted) this.#fail(row, error);
    }
  }

  /** The final job of a row; undefined for a row that was not started. */
  async #job(row: Row): Promise<Job | undefined> {
    const { journal, retryFailed } = this.#plan;
    const before = journal.of(row.key);
    const isFailed = before?.job !== undefined && before.state === 'ended' && before.job.status !== 'completed';
    if (before?.state === 'ended' && before.job && !(isFailed && retryFailed)) return before.job;
    const attempt = (before?.attempt ?? 0) + (isFailed ? 1 : 0);
    const priceClass = priceClassOf(row);
    const isUnderWay = before?.state === 'sending' || before?.state === 'accepted';
    // What may have been paid for is taken up in any case.
    if (isUnderWay) {
      const share = this.#spending.resume(before.tokens, priceClass);
      return this.#make(row, share, { attempt, priceClass, tokens: before.tokens });
    }
    const share = await this.#spending.admit(priceClass);
    if (share === 'over') return this.#leaveOut(row, 'It would pass --max-tokens.');
    if (this.stopped !== undefined) {
      share.ended(0);
      return this.#leaveOut(row, 'The batch was stopped.');
    }
    return this.#make(row, share, { attempt, priceClass });
  }

  #leaveOut(row: Row, message: string): undefined {
    this.#end({ row, status: 'not_started', error: { name: 'GenError', message } });
  }

  async #make(row: Row, share: Share, known: Pick<RowState, 'attempt' | 'priceClass' | 'tokens'>): Promise<Job> {
    const { journal, wait } = this.#plan;
    const { signal } = this.#session;
    const { attempt, priceClass = '' } = known;
    const note = (state: Omit<RowState, 'attempt' | 'priceClass'>) =>
      journal.note(row.key, { attempt, priceClass, ...state });
    let tokens = known.tokens ?? this.#spending.priceOf(priceClass);
    let price: number | undefined;
    let isAccepted = false;
    try {
      const params = await this.#uploads.resolve(row);
      signal.throwIfAborted();
      note({ state: 'sending', tokens });
      const idempotencyKey = attempt === 0 ? row.key : idempotencyKeyFrom(row.key, attempt);
      const options = { signal, idempotencyKey, ...wait };
      const job = await makeJob(
        this.#session.client(),
        { call: row.call, params },
        {
          ...options,
          onCreated: (created) => {
            isAccepted = true;
            price = created.quoted_token_cost ?? created.job.quotedTokenCost;
            tokens = price ?? tokens;
            note({ state: 'accepted', tokens, price, job: created.job });
            if (tokens !== undefined) share.quoted(tokens);
          },
        },
      );
      if (isFinal(job)) note({ state: 'ended', tokens: job.finalTokenCost ?? 0, price, job });
      share.ended(job.finalTokenCost ?? 0);
      return job;
    } catch (error) {
      const isOver = !isAccepted && isRefusal(error);
      if (isOver) note({ state: 'refused' });
      share.ended(isOver ? 0 : (tokens ?? 0));
      throw error;
    }
  }

  async #place(row: Row, job: Job): Promise<void> {
    try {
      const { journal, places } = this.#plan;
      const before = journal.of(row.key);
      const known = before?.job?.id === job.id ? before.placed : undefined;
      const isThere = known !== undefined && isPlaced(known, places);
      const placed = isThere ? known : await placeFile(this.#session, job, { ...places, id: row.id });
      if (!isThere && before !== undefined) journal.note(row.key, { ...before, placed });
      this.#end({ row, status: 'completed', job, ...placed });
    } catch (error) {
      this.#session.signal.throwIfAborted();
      const { out } = this.#plan.places;
      this.#fail(row, error, { job, next: downloadCommand(job.id, { out }) });
    }
  }

  #fail(row: Row, error: unknown, details: Pick<RowResult, 'job' | 'next'> = {}): void {
    if (isSystemic(error) && details.job === undefined) this.stopped ??= error;
    this.#end({ row, status: 'failed', error: errorDocument(error), ...details });
    if (exitCodeOf(error) !== 0 && this.#session.exitCode === 0) this.#session.exitCode = 1;
  }

  #end(result: RowResult): void {
    if (result.status === 'not_started' && this.#session.exitCode === 0) this.#session.exitCode = 1;
    this.#plan.onResult(result);
  }

  /** Deletes the files that were uploaded. One that a job still uses stays. */
  async cleanUp(): Promise<void> {
    await deleteUploads(this.#session, await this.#uploads.ids());
  }
}

function jobFailure({ id, status, errorCode, errorMessage }: Job): GenError {
  const why = [errorCode, errorMessage].filter(Boolean).join(': ');
  return new GenError(`Job ${id} ${status === 'failed' ? 'failed' : `was ${status}`}${why === '' ? '' : ` (${why})`}.`);
}
