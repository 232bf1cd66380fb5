// Resumes creates that crashed processes left unfinished.
import { withKey } from '../errors/gen-error.js';
import { GenError, TimeoutError } from '../errors/index.js';
import { type CreateEntry, entryId, entryJobId } from '../rules/create-entry.js';
import { isUnknownJob, outcomeUnderKey } from '../rules/failure-kind.js';
import { acknowledge, claimCreate, discardCreate } from '../rules/ledger-owners.js';
import { keysOf } from '../rules/ledger-transaction.js';
import { resumedRun } from '../rules/run.js';
import { abortable, startDeadline } from '../runtime/deadline.js';
import type { ClientLedger } from '../transport/call.js';
import { type CreateRun, endRun, type ResumedJob, type UnfinishedCreate } from '../transport/create-run.js';
import { shortenKey } from '../transport/idempotency.js';
import { inCompletionOrder } from '../waiting/job-iterables.js';
import { ledgerCreate, type RecordedCreate, updateEntry } from './create-layer.js';
import type { Ledger } from './ledger.js';
import type { Rule } from './steps.js';

/**
 * Yields an account's unfinished creates, or those of all accounts. Calls `onOtherAccounts` with the number of creates
 * that belong to other accounts.
 */
export async function* unfinishedCreatesIn(
  ledger: Ledger,
  account?: string,
  onOtherAccounts?: (creates: number) => void,
): AsyncGenerator<UnfinishedCreate, void, undefined> {
  const { entries } = await ledger.entries();
  // A create whose file is stored may still wait for its charge.
  const unfinished = entries.filter((it) => it.phase !== 'ended' || it.retainUntilStored);
  for (const entry of entriesOfAccount(unfinished, account, onOtherAccounts)) yield unfinishedCreateOf(entry);
}

function entriesOfAccount(
  entries: readonly CreateEntry[],
  account: string | undefined,
  onOtherAccounts?: (creates: number) => void,
): readonly CreateEntry[] {
  const matching = entries.filter((it) => account === undefined || it.account === account);
  if (matching.length < entries.length) onOtherAccounts?.(entries.length - matching.length);
  return matching;
}

function unfinishedCreateOf(entry: CreateEntry): UnfinishedCreate {
  const { key, call, params, atMs, label, phase } = entry;
  const jobId = entryJobId(entry);
  return {
    idempotencyKey: key,
    call,
    params,
    at: new Date(atMs).toISOString(),
    phase,
    ...(label !== undefined && { label }),
    ...(jobId !== undefined && { jobId }),
    ...(phase === 'ended' && { status: entry.status }),
  };
}

type Execute = Parameters<ClientLedger['resume']>[1];
type ResumeOptions = Parameters<ClientLedger['resume']>[2];

/**
 * Yields the jobs of creates without a live owner, in completion order. A create that can't be resumed doesn't stop the
 * others: its error is thrown at the end, or an AggregateError if there are several.
 */
export async function* resumeCreates(
  ledger: Ledger,
  account: string,
  execute: Execute,
  options: ResumeOptions & { readonly onOtherAccounts: (creates: number) => void },
): AsyncGenerator<ResumedJob, void, undefined> {
  const { signal } = options;
  signal?.throwIfAborted();
  const creates = await claimAll(ledger, account, options);
  const failures: { readonly create: RecordedCreate; readonly isUnknown: boolean }[] = [];
  const resumeCreate = (create: RecordedCreate, ended: AbortSignal) =>
    resumeOne(execute, create, options.timeoutMs, ended).catch((error) => {
      const { entry } = create;
      const jobId = entryJobId(entry);
      const isUnknown = isUnknownJob(error) && jobId !== undefined;
      if (isUnknown) Object.assign(error, { jobId });
      const isOver = isUnknown || entry.params === null || outcomeUnderKey(error) === 'refused';
      if (isOver) failures.push({ create, isUnknown });
      throw withKey(error, entry.key);
    });
  const record = (create: RecordedCreate, rule: Rule<void>) => ledger.awaitBriefly(updateEntry(create, rule), signal);
  try {
    for await (const { create, ...job } of inCompletionOrder(creates, resumeCreate, signal, 'could not be resumed')) {
      yield job;
      // The program requests the next job only after it has handled this job. A completed job is retained until its
      // file is stored.
      if (job.job.status !== 'completed') await record(create, (tx) => acknowledge(tx, create.id, 'outcome'));
    }
  } catch (error) {
    // If the program exits the loop early, the next resume() reports the failures again.
    const isDelivered = !signal?.aborted;
    for (const { create, isUnknown } of isDelivered ? failures : []) {
      await record(create, (tx) => discardCreate(tx, create.id, isUnknown));
    }
    throw error;
  }
}

/** Claims the creates without a live owner. If a claim fails or times out, releases all of them. */
async function claimAll(
  ledger: Ledger,
  account: string,
  {
    signal: caller,
    timeoutMs,
    onOtherAccounts,
  }: ResumeOptions & { readonly onOtherAccounts: (creates: number) => void },
): Promise<RecordedCreate[]> {
  const ms = timeoutMs || Number.POSITIVE_INFINITY;
  const late = () =>
    new TimeoutError(
      `resume: the store did not respond within ${ms} ms (timeoutMs). Call resume() again, or raise timeoutMs.`,
      { timeoutMs: ms },
    );
  const { signal, end } = startDeadline({ clock: ledger.clock, ms, signal: caller, late });
  const claimOne = async (entry: CreateEntry): Promise<RecordedCreate[]> => {
    const [owner, id] = [ledger.startCall(), entryId(account, entry.key)];
    const rule: Rule<CreateEntry | undefined> = (tx) => claimCreate(tx, id, owner, ledger.isInFlight);
    const create = { ledger, id, owner, entry };
    try {
      const claimed = await ledger.transact(rule, { keys: keysOf(id, entry), signal });
      if (claimed) return [{ ...create, entry: claimed }];
      ledger.endCall(owner);
      return [];
    } catch (error) {
      // The create may have been claimed, because an abort doesn't wait for the store.
      void ledgerCreate(create, true).end(false);
      throw error;
    }
  };
  try {
    const { entries } = await abortable(ledger.entries(), signal);
    const claims = await Promise.allSettled(entriesOfAccount(entries, account, onOtherAccounts).map(claimOne));
    const claimed = claims.flatMap((it) => (it.status === 'fulfilled' ? it.value : []));
    const failed = claims.find((it) => it.status === 'rejected');
    if (!failed) return claimed;
    for (const create of claimed) void ledgerCreate(create, true).end(false);
    throw failed.reason;
  } finally {
    end();
  }
}

async function resumeOne(
  execute: Execute,
  create: RecordedCreate,
  timeoutMs: number | false,
  signal: AbortSignal,
): Promise<ResumedJob & { readonly create: RecordedCreate }> {
  const { entry } = create;
  const { call, key, label, params, rules } = entry;
  const state = resumedRun(entry, shortenKey(key), timeoutMs === false ? null : timeoutMs);
  const run: CreateRun = { key, rules, hasOwnKey: false, creates: [ledgerCreate(create, true)], isResumed: true };
  try {
    if (params === null) throw missingFilesError(entry);
    const job = await execute({ call, params, label, run, state }, signal);
    return { job, call, idempotencyKey: key, ...(label !== undefined && { label }), create };
  } finally {
    await endRun(run, false, { signal });
  }
}

function missingFilesError({ key, call, label }: CreateEntry): GenError {
  const labelText = label === undefined ? '' : ` with the label "${label}"`;
  return new GenError(
    `The ${call}.create under the key "${key}"${labelText} was not sent: its process ended before its files were uploaded. Call it again.`,
    { recovery: 'retry' },
  );
}
