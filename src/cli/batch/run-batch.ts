import type { GenClient } from '../../client/client.js';
import { GenError, NotFoundError } from '../../errors/index.js';
import { createBudget } from '../../ledger/create-budget.js';
import { type KeptJournal, readJournal } from '../../ledger/shared-journal.js';
import { backoff } from '../../rules/backoff.js';
import { fateOf } from '../../rules/fate.js';
import { isUploadField } from '../../rules/fields.js';
import { isDone, type JournaledCreate } from '../../rules/journal.js';
import { systemClock } from '../../runtime/clock.js';
import { abortable, sleep } from '../../runtime/deadline.js';
import type { Budget } from '../../schemas/budget.js';
import { type Fields, isObject } from '../../schemas/envelope.js';
import { isCompleted, type Job } from '../../schemas/job.js';
import { chargedTokensOf } from '../../transport/job-log.js';
import { jobErrorOf } from '../../waiting/wait.js';
import { errorDocument } from '../errors.js';
import { type JobMakers, resumeLine } from '../run-job.js';
import type { Session } from '../session.js';
import { downloadLine } from '../target.js';
import { type BatchPlaces, isPlaced, type Placed, placedBefore, placeFile } from './places.js';
import type { Row } from './rows.js';
import {
  attemptKey,
  createsByRun,
  createsOf,
  isNotAdmitted,
  isSystemic,
  isTargetAway,
  isUnpaid,
  journaledJob,
  type LeftOut,
  leftOut,
  RESUBMITTED,
  type RowStanding,
  standingOf,
  tokensOf,
} from './standing.js';

/** What became of a row. */
export interface RowResult extends Placed {
  readonly row: Pick<Row, 'line' | 'id' | 'label' | 'call' | 'key'>;
  /** `failed`: there is no job, or it ended without a file. `not_saved`: the job is done, and its file is not placed. */
  readonly status: 'completed' | 'failed' | 'not_saved' | 'not_started';
  /** The line of the row whose job this is, because both have the same key. */
  readonly sameAs?: number | undefined;
  readonly job?: Job | undefined;
  readonly error?: Record<string, unknown> | undefined;
  /** The command that fetches a file which could not be placed. */
  readonly next?: string | undefined;
}

/** How to run a batch. */
export interface BatchPlan {
  readonly rows: readonly Row[];
  /** Writes to the journal. */
  readonly client: GenClient;
  readonly journal: KeptJournal;
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
 * then `stopped` is why no further rows were started.
 */
export async function runBatch(session: Session, plan: BatchPlan): Promise<{ readonly stopped: unknown }> {
  const before = await readJournal(plan.journal);
  const run = new BatchRun(session, plan, before);
  // One iterator for all workers: each takes the next row.
  const queue = run.inOrder().values();
  const worker = async () => {
    for (const [row, standing] of queue) await run.row(row, standing);
  };
  await Promise.all(Array.from({ length: Math.min(plan.concurrency, plan.rows.length) }, worker));
  await deleteUploadsOf(session, { ...plan, before });
  session.signal.throwIfAborted();
  return { stopped: run.stopped };
}

/** The pauses before a create whose answer was lost is sent again, beyond the retries of the client. */
const LOST = { firstMs: 1_000, mostMs: 8_000 };
const LOST_TRIES = 3;

class BatchRun {
  stopped: unknown;
  readonly #session: Session;
  readonly #plan: BatchPlan;
  /** The rows to run: of those with one key, the first. */
  readonly #standings = new Map<Row, RowStanding>();
  /** Resolves when it is known of every row with an unknown outcome whether it has a job. */
  readonly #resolved: Promise<unknown>;
  readonly #settle = new Map<Row, () => void>();
  #budget: Promise<Budget | undefined> | undefined;
  /** Rows whose end may give tokens back. */
  #running = 0;
  #waiting: ((again: boolean) => void)[] = [];

  constructor(session: Session, plan: BatchPlan, before: readonly JournaledCreate[]) {
    const runs = createsByRun(before, plan.rows);
    this.#session = session;
    this.#plan = plan;
    const keys = new Set<string>();
    const firsts = plan.rows.filter(({ key }) => !keys.has(key) && keys.add(key));
    for (const row of firsts) this.#standings.set(row, standingOf(row, runs));
    const unknown = firsts.filter((row) => this.#standings.get(row)?.create?.state === 'open');
    this.#resolved = Promise.all(unknown.map((row) => new Promise<void>((resolve) => this.#settle.set(row, resolve))));
  }

  /** What is done comes first, then what may have been paid for. A row to be paid waits for all `open` ones, so it comes last. */
  inOrder(): [Row, RowStanding][] {
    const rank = (standing: RowStanding) => {
      const { create } = standing;
      if (create === undefined || isUnpaid(standing, this.#plan.retryFailed)) return 3;
      if (create.state === 'open') return 1;
      return isDone(create) ? 0 : 2;
    };
    return [...this.#standings].sort(([a, one], [b, other]) => rank(one) - rank(other) || a.line - b.line);
  }

  async row(row: Row, standing: RowStanding): Promise<void> {
    const { signal } = this.#session;
    if (signal.aborted) return;
    try {
      await this.#run(row, standing);
    } catch (error) {
      if (!signal.aborted) this.#fail(row, error);
    } finally {
      this.#settle.get(row)?.();
    }
  }

  async #run(row: Row, { attempt, create }: RowStanding): Promise<void> {
    const { retryFailed, places, client, wait } = this.#plan;
    if (create?.state === 'stored' && isPlaced(create, places)) {
      this.#end({ row, status: 'completed', job: journaledJob(create), ...placedBefore(create) });
      return;
    }
    if (isUnpaid({ attempt, create }, retryFailed)) {
      await this.#pay(row, attempt + (create?.state === 'failed' ? 1 : 0));
    } else if (create?.state === 'failed') this.#failed(row, journaledJob(create));
    else if (create?.state === 'stored') await this.#place(row, journaledJob(create), create);
    else if (create?.jobId === undefined) await this.#pay(row, attempt, { isOpen: true });
    else {
      const { jobId } = create;
      const options = { ...wait, signal: this.#session.signal, throwOnFailure: false } as const;
      const job = await this.#counted(() => client.waitForJob(jobId, options));
      const goesOn = job.status === 'failed' && job.errorCode === RESUBMITTED;
      if (goesOn) await this.#pay(row, attempt + 1);
      else await this.#ended(row, job, create);
    }
  }

  /** Makes the job of a row that is not paid for, when it is known what the others have cost. */
  async #pay(row: Row, attempt: number, { isOpen = false } = {}): Promise<void> {
    // A create whose outcome is unknown may make its job now: it needs room in the limit, too, and has the first share.
    if (!isOpen) await abortable(this.#resolved, this.#session.signal);
    this.#budget ??= this.#openBudget();
    const budget = await this.#budget;
    const leaveOut = (why: LeftOut) =>
      this.#lose({ row, status: 'not_started', error: leftOut(why, { mayHaveJob: isOpen }) });
    for (;;) {
      if (this.#session.signal.aborted) return;
      if (this.stopped !== undefined) return leaveOut('batch_stopped');
      try {
        return await this.#ended(row, await this.#make(row, attempt, budget));
      } catch (error) {
        if (!isNotAdmitted(error)) throw error;
        // A job that fails gives its tokens back. Without one, the rows that wait do not fit either.
        const again = this.#running > 0 && (await new Promise<boolean>((resolve) => this.#waiting.push(resolve)));
        if (!again) return leaveOut('budget_exceeded');
      }
    }
  }

  /** The budget of the rows that are still to be paid: the limit, less what all runs have spent. */
  async #openBudget(): Promise<Budget | undefined> {
    const { maxTokens, journal } = this.#plan;
    if (maxTokens === undefined) return undefined;
    try {
      const spent = await Promise.all((await readJournal(journal)).map((create) => this.#spentOn(create)));
      return createBudget({ maxTokens: Math.max(0, maxTokens - spent.reduce((sum, tokens) => sum + tokens, 0)) });
    } catch (error) {
      this.stopped ??= error;
      return undefined;
    }
  }

  /** What a create counts. A running job is asked for its price where the answer to its create told none. */
  async #spentOn(create: JournaledCreate): Promise<number> {
    const { state, jobId, quotedTokens } = create;
    if (state !== 'accepted' || jobId === undefined || quotedTokens !== undefined) return tokensOf(create);
    const { client } = this.#plan;
    const job = await client.jobs.get(jobId, { signal: this.#session.signal }).catch((error: unknown) => {
      if (NotFoundError.isInstance(error)) return undefined;
      throw error;
    });
    return (job && (chargedTokensOf(job) ?? job.quotedTokenCost)) ?? 0;
  }

  /** Creates and waits. A create whose answer was lost is sent again under its key, before others are paid for. */
  #make(row: Row, attempt: number, budget: Budget | undefined): Promise<Job> {
    const { client, wait, maxTokens } = this.#plan;
    const { signal } = this.#session;
    const maker = (client as JobMakers)[row.call];
    let isAccepted = false;
    const options = {
      ...wait,
      signal,
      idempotencyKey: attemptKey(row, attempt),
      throwOnFailure: false,
      budget,
      label: row.label ?? row.id,
      onCreated: () => {
        isAccepted = true;
        this.#settle.get(row)?.();
      },
    };
    return this.#counted(async () => {
      for (let tries = 1; ; tries++) {
        try {
          return await maker.createAndWait(row.params as never, options);
        } catch (error) {
          if (isAccepted || signal.aborted || fateOf(error) !== 'lost') throw error;
          if (tries > LOST_TRIES) {
            // Another row of an unknown price could pass the limit beside this one.
            if (maxTokens !== undefined) this.stopped ??= error;
            throw error;
          }
          await sleep(systemClock, backoff(LOST, tries), signal);
        }
      }
    });
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
      if (!isNotAdmitted(error) || this.#running === 0) this.#wake(!isNotAdmitted(error));
      throw error;
    }
  }

  /** Ends the waits of the rows that did not fit: they try again, or are left out. */
  #wake(again: boolean): void {
    for (const wake of this.#waiting.splice(0)) wake(again);
  }

  async #ended(row: Row, job: Job, create?: JournaledCreate): Promise<void> {
    if (isCompleted(job)) await this.#place(row, job, create);
    else this.#failed(row, job);
  }

  async #place(row: Row, job: Job, create: JournaledCreate | undefined): Promise<void> {
    const { client, journal, places } = this.#plan;
    const { signal } = this.#session;
    const key = create?.key ?? row.key;
    let placed: Placed;
    try {
      placed = await placeFile(job, { client, journal, signal, ...places, row, create, key });
    } catch (error) {
      signal.throwIfAborted();
      if (isTargetAway(error)) this.stopped ??= error;
      const next = downloadLine(job.id, { out: places.out });
      this.#lose({ row, status: 'not_saved', job, error: errorDocument(error), next });
      return;
    }
    this.#end({ row, status: 'completed', job, ...placed });
  }

  #failed(row: Row, job: Job): void {
    // The job stands beside its error.
    this.#lose({ row, status: 'failed', job, error: { ...errorDocument(jobErrorOf(job)), job: undefined } });
  }

  #fail(row: Row, error: unknown): void {
    if (isSystemic(error)) this.stopped ??= error;
    const jobId = GenError.isInstance(error) && 'jobId' in error ? error.jobId : undefined;
    const next = typeof jobId === 'string' ? { next: resumeLine(jobId, { out: this.#plan.places.out }) } : {};
    this.#lose({ row, status: 'failed', error: errorDocument(error), ...next });
  }

  #lose(result: RowResult): void {
    if (this.#session.exitCode === 0) this.#session.exitCode = 1;
    this.#end(result);
  }

  #end(result: RowResult): void {
    const { line, key } = result.row;
    for (const row of this.#plan.rows) {
      if (row.key !== key) continue;
      this.#plan.onResult(row.line === line ? result : { ...result, row, sameAs: line });
    }
  }
}

/**
 * Deletes the files that were uploaded for rows whose jobs have ended in this run; `before` are the creates as they stood when
 * it began. An upload that another job uses stays.
 */
async function deleteUploadsOf(
  { signal }: Session,
  { rows, client, journal, before }: BatchPlan & { readonly before: readonly JournaledCreate[] },
): Promise<void> {
  const withFiles = rows.filter(({ params }) => [...uploadValues(params).values()].some(isObject));
  if (signal.aborted || withFiles.length === 0) return;
  const creates = await readJournal(journal);
  const open = creates.filter((create) => !isDone(create));
  const inUse = new Set(open.flatMap(({ params }) => [...uploadValues(params).values()]));
  const wasDone = new Set(before.filter(isDone).map(({ key }) => key));
  const runs = createsByRun(creates, rows);
  const ended = withFiles.flatMap((row) => {
    const own = createsOf(row.key, runs);
    return own.filter(({ key }) => !wasDone.has(key)).flatMap(({ params }) => ownUploads(row, params));
  });
  const ids = [...new Set(ended)].filter((id) => !inUse.has(id));
  // What cannot be deleted stays: it is private and costs nothing.
  await Promise.allSettled(ids.map((id) => client.uploads.delete(id, { signal, maxRetries: 0 })));
}

/** The ids that the batch made itself: those in the places of the files of a row. */
function ownUploads(row: Row, params: Fields): string[] {
  const sent = uploadValues(params);
  const files = [...uploadValues(row.params)].filter(([, value]) => isObject(value));
  return files.map(([place]) => sent.get(place)).filter((id) => typeof id === 'string');
}

/** The values in fields that take uploads, by their place: `reference_image_upload_ids[0]`. */
function uploadValues(params: Fields): Map<string, unknown> {
  const fields = Object.entries(params).filter(([field]) => isUploadField(field));
  const placed = fields.flatMap(([field, value]) =>
    [value].flat().map((item, at): [string, unknown] => [`${field}[${at}]`, item]),
  );
  return new Map(placed);
}
