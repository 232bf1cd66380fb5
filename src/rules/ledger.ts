// The rules of the ledger: whoever learns something about a create records it here. A step that is made twice has the effect
// of one. Pure.
import { type Admission, admissionOf, type BudgetSnapshot, type BudgetTerms, snapshotOf } from './budget.js';
import {
  COMPLETED_TTL_MS,
  type CreateEntry,
  ENTRY_TTL_MS,
  entryId,
  entryJobId,
  isAccepted,
  type OpenCreate,
  transition,
  withFirst,
} from './create-entry.js';
import { adjustSpent, closeEntry, fillIn, removeEntry, replaceEntry, spend } from './ledger-budgets.js';
import { markLostIfOrphaned, withOwner, withoutOwner } from './ledger-owners.js';
import type { LedgerTransaction } from './ledger-transaction.js';
import { type JobRunState, originsOf } from './run-state.js';

export interface ReserveRequest {
  readonly id: string;
  readonly owner: string;
  /** The entry to record, with the price that this process knows. */
  readonly entry: OpenCreate;
  /** For each budget: true if it rejects creates of unknown price. */
  readonly rejectsUnknown: readonly boolean[];
  /** True if the create may be known, because its key may have been used before. */
  readonly isAgain: boolean;
}

export type ReserveResult =
  /** Recorded, now or before, under `id`: it may be sent. */
  | { readonly outcome: 'recorded'; readonly id: string }
  /** Another call has used the key for something else. */
  | { readonly outcome: 'reused'; readonly jobId: string | undefined }
  | NoRoom;

/** A budget has no room; `unpriced` if it rejects unknown prices. */
export interface NoRoom {
  readonly outcome: Exclude<Admission, 'room'> | 'unpriced';
  readonly budget: BudgetTerms;
  readonly snapshot: BudgetSnapshot;
  readonly tokens: number | null;
}

/** Joins a create that is known and needs no room, or reports its key as reused. Returns undefined if it needs room. */
export function reuseCreate(
  tx: LedgerTransaction,
  { id: asked, owner, entry }: ReserveRequest,
): ReserveResult | undefined {
  const id = knownId(tx, asked, entry);
  const isFirst = entry.sentKey === entry.key;
  const usedKey = tx.usedKey(id);
  const known = tx.entry(id);
  const { digest, earlierJobs } = known ?? usedKey ?? {};
  const differs = digest !== undefined && entry.digest !== undefined && digest !== entry.digest;
  // A run sends its later creates under keys and models of its own.
  if (differs && isFirst) return { outcome: 'reused', jobId: entryJobId(known) ?? usedKey?.jobId };
  const hasJob = (usedKey && isFirst) || earlierJobs?.[entry.sentKey] !== undefined;
  if (!hasJob && !(known && isInProgress(tx, known, entry.sentKey))) return undefined;
  if (known) replaceEntry(tx, id, withOwner(tx, markLostIfOrphaned(tx, known), owner));
  return { outcome: 'recorded', id };
}

/** Reserves the price of a create in all its budgets and records it, in one step. Joins a create that is known. */
export function reserveCreate(tx: LedgerTransaction, request: ReserveRequest): ReserveResult {
  const reused = reuseCreate(tx, request);
  if (reused) return reused;
  const { owner, entry, rejectsUnknown } = request;
  const id = knownId(tx, request.id, entry);
  const known = tx.entry(id);
  const before: CreateEntry = { ...(known ?? entry), ...priceNow(tx, entry) };
  const noRoom = noRoomFor(tx, before, { step: 'reserve', rejectsUnknown });
  if (noRoom) return noRoom;
  const jobId = entryJobId(known);
  const earlier = known && jobId !== undefined ? { [known.sentKey]: jobId } : {};
  const jobs = { ...tx.usedKey(id)?.earlierJobs, ...known?.earlierJobs, ...earlier };
  const reserved = transition(before, { type: 'reserved', nowMs: tx.nowMs });
  replaceEntry(tx, id, {
    ...withOwner(tx, reserved, owner),
    sentKey: entry.sentKey,
    params: entry.params ?? before.params,
    ...(Object.keys(jobs).length > 0 && { earlierJobs: jobs }),
  });
  return { outcome: 'recorded', id };
}

/** Returns the price of a create. A learned price counts more than an estimate. */
function priceNow(
  tx: LedgerTransaction,
  entry: Pick<CreateEntry, 'account' | 'priceClass' | 'hasFixedPrice' | 'tokens' | 'isLearned'>,
): Pick<CreateEntry, 'tokens' | 'isLearned'> {
  const learned = entry.hasFixedPrice ? tx.price(entry) : undefined;
  const { tokens, isLearned } = entry;
  return learned === undefined ? { tokens, isLearned } : { tokens: learned, isLearned: true };
}

/** Returns the first budget that can't cover the create, or undefined if all can. */
function noRoomFor(
  tx: LedgerTransaction,
  { budgets, tokens, isLearned }: CreateEntry,
  { step, rejectsUnknown = [] }: { readonly step: 'reserve' | 'send'; readonly rejectsUnknown?: readonly boolean[] },
): NoRoom | undefined {
  for (const [at, budget] of budgets.entries()) {
    fillIn(tx, budget);
    const snapshot = snapshotOf(tx.budget(budget), budget, tx.nowMs, tx.isAlive);
    const admission = admissionOf(snapshot, budget.maxTokens, { tokens, isLearned }, step);
    const outcome = tokens === null && rejectsUnknown[at] ? 'unpriced' : admission;
    if (outcome !== 'room') return { outcome, budget, snapshot, tokens };
  }
  return undefined;
}

/** Returns the ID of the entry that a key belongs to. The SDK may have derived the key, and sent it instead of another one. */
function knownId(tx: LedgerTransaction, id: string, { account, key, sentKey }: CreateEntry): string {
  const ids = originsOf(key).map((origin) => entryId(account, origin));
  return tx.entry(id) ? id : (ids.find((it) => tx.entry(it)?.sentKey === sentKey) ?? id);
}

/** Returns true if the create counts in its budgets already, or has a job. */
function isInProgress(tx: LedgerTransaction, known: CreateEntry, sentKey: string): boolean {
  if (known.phase === 'open') return known.isReserved && known.sentKey === sentKey && known.owners.some(tx.isAlive);
  return !isAccepted(known) || sentKey === known.sentKey || sentKey === known.key;
}

export interface SendRequest extends Pick<CreateEntry, 'params' | 'sentKey'> {
  readonly id: string;
  readonly owner: string;
}

export type SendResult =
  /** The request may go out now. */
  | { readonly outcome: 'sent' }
  /** Another process has claimed the create, after the lease of this one expired. */
  | { readonly outcome: 'taken' }
  | NoRoom;

/**
 * Records that the request goes out now. Asks for its room again, whatever was reserved: its price may have risen, or its
 * reservation expired while its process was stopped.
 */
export function recordSent(tx: LedgerTransaction, { id, owner, params, sentKey }: SendRequest): SendResult {
  const entry = tx.entry(id);
  if (!entry) return { outcome: tx.usedKey(id) ? 'sent' : 'taken' };
  if (!entry.owners.includes(owner)) return { outcome: 'taken' };
  if (isAccepted(entry) || hasEarlierJob(entry, sentKey)) return { outcome: 'sent' };
  const priced = entry.phase === 'open' ? { ...entry, ...priceNow(tx, entry) } : entry;
  const noRoom = entry.phase === 'open' ? noRoomFor(tx, priced, { step: 'send' }) : undefined;
  if (noRoom) return noRoom;
  const sent = transition(markLostIfOrphaned(tx, priced), { type: 'sent', owner });
  replaceEntry(tx, id, { ...sent, sentKey, params: params ?? entry.params });
  return { outcome: 'sent' };
}

/** Returns true if the key is that of an earlier create of the run, which another call passes once more. */
function hasEarlierJob({ earlierJobs }: CreateEntry, sentKey: string | undefined): boolean {
  return sentKey !== undefined && earlierJobs?.[sentKey] !== undefined;
}

/**
 * Records that the service has created nothing for the last attempt of a call, before the pause until the next one. A create
 * that another call has sent stays sent.
 */
export function recordUnsent(tx: LedgerTransaction, id: string, owner: string): void {
  const entry = tx.entry(id);
  if (!entry?.owners.includes(owner)) return;
  replaceEntry(tx, id, withdraw(tx, { ...entry, owners: withFirst(owner, entry.owners) }, owner, true));
}

/** Takes back what a call has sent. What other calls have sent stays sent, or is lost if they have crashed. */
function withdraw(tx: LedgerTransaction, entry: CreateEntry, owner: string, isReserved: boolean): CreateEntry {
  if (entry.phase !== 'sent') return transition(entry, { type: 'unsent', isReserved });
  const senders = entry.senders.filter((it) => it !== owner);
  if (senders.length === 0) return transition(entry, { type: 'unsent', isReserved });
  return markLostIfOrphaned(tx, { ...entry, senders });
}

export function recordParams(tx: LedgerTransaction, id: string, params: CreateEntry['params']): void {
  const entry = tx.entry(id);
  if (entry && entry.params === null) replaceEntry(tx, id, { ...entry, params });
}

export interface AcceptedResponse {
  readonly id: string;
  readonly owner: string;
  readonly sentKey: string;
  /** The entry as it was requested, in case the ledger has lost it. */
  readonly asked: OpenCreate;
  readonly jobId: string;
  /** The quote of the response; null if it has none. */
  readonly quotedTokens: number | null;
  readonly isUncharged: boolean;
}

/** The service has accepted the create. Returns true if no budget can know what it costs. */
export function acceptCreate(tx: LedgerTransaction, response: AcceptedResponse): boolean {
  const { id, owner, asked, sentKey, jobId, quotedTokens, isUncharged } = response;
  if (asked.hasFixedPrice && quotedTokens !== null) tx.learnPrice(asked, quotedTokens);
  const { jobId: usedJob, earlierJobs = {} } = tx.usedKey(id) ?? {};
  if ([usedJob, ...Object.values(earlierJobs)].includes(jobId)) return false;
  const entry = tx.entry(id) ?? asked;
  const owners = entry.rules === null ? [] : entry.owners;
  // A run that is repeated from its start passes the jobs that it has created before.
  const isKnown = isAccepted(entry) && (entry.jobId === jobId || entry.sentKey !== sentKey);
  if (isKnown || entry.earlierJobs?.[sentKey] === jobId) {
    if (entry.rules === null) replaceEntry(tx, id, withoutOwner(entry, owner));
    return false;
  }
  const tokens = isUncharged ? 0 : (quotedTokens ?? entry.tokens ?? tx.price(entry) ?? null);
  const accepted = {
    ...transition(entry, { type: 'accepted', jobId, nowMs: tx.nowMs }),
    owners,
    tokens,
    isLearned: true,
  };
  replaceEntry(tx, id, { ...accepted, sentKey, budgets: spend(tx, entry.budgets, tokens ?? 0) });
  // The process alone remembers it, and no budget counts it: nobody asks again.
  if (!entry.retainUntilStored && entry.budgets.length === 0 && entry.rules === null) closeEntry(tx, id);
  return tokens === null && entry.budgets.length > 0;
}

/** A job's final state, from a poll or a webhook. */
export interface FinalState {
  readonly id: string;
  readonly jobId: string;
  readonly status: string;
  /** What was charged; undefined if nobody says it. */
  readonly chargedTokens: number | undefined;
  /** When the link of the file expires; undefined if it has no expiry. */
  readonly expiresMs?: number | undefined;
}

/** The job of a create is final. Its budgets are settled at what was charged. */
export function endCreate(tx: LedgerTransaction, final: FinalState): void {
  const { id, jobId, status, chargedTokens, expiresMs = tx.nowMs + COMPLETED_TTL_MS } = final;
  const entry = tx.entry(id);
  // The end of an earlier job of the run is recorded already.
  if (!entry || !isAccepted(entry) || entry.jobId !== jobId) return;
  const tokens = chargedTokens ?? entry.tokens;
  if (entry.hasFixedPrice && entry.tokens === null && tokens !== null && tokens > 0) tx.learnPrice(entry, tokens);
  if (tokens !== null) adjustSpent(tx, entry.budgets, tokens - (entry.tokens ?? 0));
  const retainUntilMs = status === 'completed' ? Math.max(tx.nowMs, expiresMs) : tx.nowMs + ENTRY_TTL_MS;
  replaceEntry(tx, id, { ...transition(entry, { type: 'final', jobId, status, retainUntilMs }), tokens });
  // A webhook does not say what was charged: its budgets wait for the poll that does.
  const isSettled = chargedTokens !== undefined || entry.budgets.length === 0;
  if (!entry.retainUntilStored && isSettled && entry.rules === null) closeEntry(tx, id);
}

/** Why a create has no job: see `outcomeUnderKey`. */
export interface FailedCreate {
  readonly id: string;
  readonly owner: string;
  readonly outcome: 'refused' | 'unsent' | 'lost';
  readonly sentKey?: string | undefined;
  /** True if a process that crashed has left the create, so that nobody else can send it again. */
  readonly isResumed?: boolean | undefined;
}

/** A call has no job. What may have been accepted stays; the entry of a run stays until the run is over. */
export function failCreate(tx: LedgerTransaction, failed: FailedCreate): void {
  const { id, owner, outcome, sentKey, isResumed = false } = failed;
  const entry = tx.entry(id);
  if (!entry?.owners.includes(owner) || isAccepted(entry) || hasEarlierJob(entry, sentKey)) return;
  const isRun = entry.rules !== null || isResumed;
  const others = entry.owners.filter((it) => it !== owner);
  const left = { ...entry, owners: isRun ? entry.owners : others };
  if (outcome === 'lost') {
    replaceEntry(tx, id, { ...transition(left, { type: 'unanswered' }), sentKey: sentKey ?? entry.sentKey });
    return;
  }
  // A rejection is the service's word, and another process may have crashed. Calls of this process speak for themselves.
  const isShared = others.some(outcome === 'refused' ? tx.isOwn : tx.isAlive);
  const after =
    outcome === 'refused' && !isShared
      ? transition(left, { type: 'rejected', isReserved: false })
      : withdraw(tx, left, owner, isShared);
  if (after.phase === 'open' && !isShared && !isRun) removeEntry(tx, id);
  else replaceEntry(tx, id, after);
}

/** Records the state of a run, before it pauses or creates again. */
export function recordRun(tx: LedgerTransaction, id: string, run: JobRunState): void {
  const entry = tx.entry(id);
  if (entry) replaceEntry(tx, id, { ...entry, run });
}
