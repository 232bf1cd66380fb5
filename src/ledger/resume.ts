// What a crash has left: the creates of the store that no call works on.
import { withKey } from '../errors/gen-error.js';
import { TimeoutError } from '../errors/index.js';
import { isUnknownJob, outcomeUnderKey } from '../rules/failure-kind.js';
import { dropCreate, handOver, takeUp } from '../rules/ledger.js';
import { type CreateEntry, entryId, keysOf, type LedgerDraft } from '../rules/ledger-draft.js';
import { resumedRun } from '../rules/run.js';
import { wallOf } from '../runtime/clock.js';
import { abortable, startDeadline } from '../runtime/deadline.js';
import type { ClientLedger } from '../transport/call.js';
import type { ClaimedCreate, ResumedJob, UnfinishedCreate } from '../transport/create-run.js';
import { shortenKey } from '../transport/idempotency.js';
import { asTheyEnd } from '../waiting/job-iterables.js';
import { ledgerCreate } from './create-layer.js';
import type { Ledger } from './ledger.js';

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
  ledger: Ledger,
  account: string,
  run: Parameters<ClientLedger['resume']>[1],
  options: ResumeOptions,
): AsyncGenerator<ResumedJob, void, undefined> {
  const { signal } = options;
  signal?.throwIfAborted();
  const left = await takeUpAll(ledger, account, options);
  const over: (Held & { readonly isUnknown: boolean })[] = [];
  const resumed = (it: Held, ended: AbortSignal) =>
    resumeOne(run, it, options.timeoutMs, ended).catch((error) => {
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

type ResumeOptions = Parameters<ClientLedger['resume']>[2];

interface Held {
  readonly entry: CreateEntry;
  readonly held: { readonly ledger: Ledger; readonly id: string; readonly by: string; readonly asked: CreateEntry };
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
  run: Parameters<ClientLedger['resume']>[1],
  { entry, held }: Held,
  timeoutMs: number | false,
  signal: AbortSignal,
): Promise<ResumedJob & Pick<Held, 'held'>> {
  const { call, key, label, params, rules } = entry;
  const state = resumedRun(entry, shortenKey(key), timeoutMs === false ? null : timeoutMs);
  const claimed: ClaimedCreate = { call, key, label, params, rules, state, create: ledgerCreate(held, true) };
  const job = await run(claimed, signal);
  return { job, call, idempotencyKey: key, ...(label !== undefined && { label }), held };
}
