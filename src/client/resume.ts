// What a crash has left: the creates of the store that no call works on.
import { withKey } from '../errors/gen-error.js';
import { GenError, TimeoutError } from '../errors/index.js';
import type { Ledger } from '../ledger/ledger.js';
import { isUnknownJob, outcomeUnderKey } from '../rules/failure-kind.js';
import { dropCreate, handOver, takeUp } from '../rules/ledger.js';
import { type CreateEntry, type CreatePhase, entryId, keysOf, type LedgerDraft } from '../rules/ledger-draft.js';
import { DEFAULT_WAIT_MS } from '../rules/limits.js';
import { checkOptions } from '../rules/options.js';
import { wallOf } from '../runtime/clock.js';
import { abortable, startDeadline } from '../runtime/deadline.js';
import type { Job, JobCall } from '../schemas/job.js';
import type { OpenedCreate } from '../transport/opened-create.js';
import { asTheyEnd } from '../waiting/job-iterables.js';
import { WAIT_OPTIONS, type WaitOptions } from '../waiting/wait-options.js';
import type { JobMaker } from './endpoint.js';
import { resumeRunOf } from './run-job.js';

/** How `resume` waits. `timeoutMs` is for the store, and then for each job. */
export interface ResumeOptions extends Omit<WaitOptions, 'throwOnFailure'> {}

/** A job that was resumed, and the order that it belongs to. */
export interface ResumedJob {
  /** The final job. */
  readonly job: Job;
  /** The namespace that created it. */
  readonly call: JobCall;
  /** The key of the first create of its run. */
  readonly idempotencyKey: string;
  /** The `label` of the call, if it had one. */
  readonly label?: string | undefined;
}

/** A create that is not finished. */
export interface UnfinishedCreate {
  /** The key of the first create of its run. */
  readonly idempotencyKey: string;
  /** The namespace that creates the job. */
  readonly call: JobCall;
  /** The body, with upload ids in the place of files; null until the files are uploaded. */
  readonly params: Readonly<Record<string, unknown>> | null;
  /** ISO timestamp of the call. */
  readonly at: string;
  /** The `label` of the call, if it had one. */
  readonly label?: string | undefined;
  /** How far it has come: `open` is not sent, `sent` may have made a job, `accepted` has one, and `ended` is final. */
  readonly phase: CreatePhase;
  /** The service's job id, once it is known. */
  readonly jobId?: string | undefined;
  /** The final status of the job, once it is known. */
  readonly status?: string | undefined;
}

/** The entries of an account, or of all, as a program sees them. */
export async function* unfinishedCreatesIn(
  ledger: Ledger,
  account?: string,
): AsyncGenerator<UnfinishedCreate, void, undefined> {
  const { entries } = await ledger.entries();
  const open = entries.filter((it) => !it.isStored && (account === undefined || it.account === account));
  for (const entry of open) yield unfinishedCreateOf(entry);
}

function unfinishedCreateOf({ key, call, params, atMs, label, phase, jobId, status }: CreateEntry): UnfinishedCreate {
  const known = { ...(label !== undefined && { label }), ...(jobId !== undefined && { jobId }) };
  const at = new Date(atMs).toISOString();
  return { idempotencyKey: key, call, params, at, phase, ...known, ...(status !== undefined && { status }) };
}

/**
 * The jobs of the creates that no living process works on, in the order in which they end. What cannot be resumed does not
 * stop the others: its error is thrown after the last of them, several as an AggregateError.
 */
export async function* resumeCreates(
  maker: JobMaker,
  ledger: Ledger,
  account: string,
  options: ResumeOptions = {},
): AsyncGenerator<ResumedJob, void, undefined> {
  checkOptions('resume', WAIT_OPTIONS, options);
  const { signal, timeoutMs = DEFAULT_WAIT_MS } = options;
  signal?.throwIfAborted();
  const left = await takeUpAll(ledger, account, { signal, timeoutMs });
  const over: (Held & { readonly isUnknown: boolean })[] = [];
  const resumed = (it: Held, ended: AbortSignal) =>
    resumeOne(maker, it, { ...options, timeoutMs, signal: ended }).catch((error) => {
      const isUnknown = isUnknownJob(error) && it.entry.jobId !== undefined;
      if (isUnknown) Object.assign(error, { jobId: it.entry.jobId });
      if (isUnknown || it.entry.params === null || outcomeUnderKey(error) === 'refused')
        over.push({ ...it, isUnknown });
      throw withKey(error, it.entry.key);
    });
  const drop = ({ isUnknown, held: { id, asked } }: (typeof over)[number]) =>
    ledger.note((draft) => dropCreate(draft, id, isUnknown), keysOf(id, asked));
  try {
    for await (const { held, ...job } of asTheyEnd(left, resumed, signal, 'could not be resumed')) {
      yield job;
      // The program has asked for the next one, so it has handled this one.
      const { id } = held;
      const { status, providerOutputExpiresAt } = job.job;
      const isExpired = Date.parse(providerOutputExpiresAt ?? '') <= wallOf(ledger.clock).now();
      const what = status !== 'completed' ? 'outcome' : isExpired ? 'file' : undefined;
      if (what) await ledger.note((draft) => handOver(draft, id, what), keysOf(id, held.asked));
    }
  } catch (error) {
    // A program that leaves the loop before is told by the next resume; one that ends with the error is not told again.
    if (!signal?.aborted) await Promise.all(over.map((it) => ledger.soon(drop(it))));
    throw error;
  }
}

interface Held {
  readonly entry: CreateEntry;
  readonly held: OpenedCreate;
}

/** Takes up what is left, for as long as the options allow. What was taken before an end is given back. */
async function takeUpAll(ledger: Ledger, account: string, options: ResumeOptions): Promise<Held[]> {
  const { signal: caller, timeoutMs } = options;
  const ms = timeoutMs || Number.POSITIVE_INFINITY;
  const late = () =>
    new TimeoutError(`The store did not answer resume() within ${ms} ms. Raise timeoutMs, or call resume() again.`, {
      timeoutMs: ms,
    });
  const { signal, end } = startDeadline({ clock: ledger.clock, ms, signal: caller, late });
  const takeUpOne = async (asked: CreateEntry): Promise<Held[]> => {
    const [by, id] = [ledger.fly(), entryId(account, asked.key)];
    let entry: CreateEntry | undefined;
    try {
      const rule = (draft: LedgerDraft) => takeUp(draft, id, by, ledger.isInFlight);
      entry = await ledger.ask(rule, { keys: keysOf(id, asked), signal });
    } finally {
      if (!entry) ledger.landed(by);
    }
    return entry ? [{ entry, held: { ledger, id, by, asked: entry } }] : [];
  };
  try {
    const { entries } = await abortable(ledger.entries(), signal);
    const taken = await Promise.allSettled(entries.filter((entry) => entry.account === account).map(takeUpOne));
    const held = taken.flatMap((it) => (it.status === 'fulfilled' ? it.value : []));
    const failed = taken.find((it) => it.status === 'rejected');
    if (!failed) return held;
    for (const it of held) ledger.landed(it.held.by);
    throw failed.reason;
  } finally {
    end();
  }
}

async function resumeOne(
  maker: JobMaker,
  { entry, held }: Held,
  options: ResumeOptions & { readonly timeoutMs: number | false },
): Promise<ResumedJob & { readonly held: OpenedCreate }> {
  const { call, key: idempotencyKey, label } = entry;
  const job = await resumeRunOf(maker, entry, held, options);
  return { job, call, idempotencyKey, ...(label !== undefined && { label }), held };
}

/** The error of a call that needs a store which outlives the process. */
export function noStore(call: string): GenError {
  return new GenError(
    `${call}() needs a store that outlives the process. Pass fileStore(path) of gen-client/node or redisStore(redis) of gen-client/redis as the store of new GenClient().`,
  );
}
