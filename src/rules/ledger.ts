// The rules that record a create's progress in the ledger. All are pure and idempotent.
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
import {
  adjustSpent,
  applyLearnedPrice,
  closeEntry,
  removeEntry,
  replaceEntry,
  spend,
  withLimits,
} from './ledger-budgets.js';
import { markLostIfOrphaned, withOwner, withoutOwner } from './ledger-owners.js';
import type { LedgerTransaction } from './ledger-transaction.js';
import { type JobRunState, originsOf } from './run-state.js';

export interface ReserveRequest {
  readonly id: string;
  readonly owner: string;
  /** Entry to record, with the price as known to this process. */
  readonly entry: OpenCreate;
  /** For each budget, true if it rejects creates with an unknown price. */
  readonly rejectsUnknown: readonly boolean[];
  /** If true, the key may have been used before. */
  readonly mayBeUsed: boolean;
}

export type ReserveResult =
  /** The create is recorded under `id`, so it may be sent. */
  | { readonly outcome: 'recorded'; readonly id: string }
  /** The key was used with different params. */
  | { readonly outcome: 'reused'; readonly jobId: string | undefined }
  | NoRoom;

/** A budget can't cover the create. `unpriced`: it rejects unknown prices. */
export interface NoRoom {
  readonly outcome: Exclude<Admission, 'room'> | 'unpriced';
  readonly budget: BudgetTerms;
  readonly snapshot: BudgetSnapshot;
  readonly tokens: number | null;
}

/** Joins an existing create, or reports its key as reused. Returns undefined if the create must be reserved first. */
export function reuseCreate(tx: LedgerTransaction, request: ReserveRequest): ReserveResult | undefined {
  const { owner, entry } = request;
  const id = existingId(tx, request.id, entry);
  const isFirst = entry.sentKey === entry.key;
  const usedKey = tx.usedKey(id);
  const existing = tx.entry(id);
  const { digest, earlierJobs } = existing ?? usedKey ?? {};
  const isDifferent = digest !== undefined && entry.digest !== undefined && digest !== entry.digest;
  // Later creates of a run may differ, because the run may change the model.
  if (isDifferent && isFirst) {
    return { outcome: 'reused', jobId: earlierJobs?.[entry.sentKey] ?? entryJobId(existing) ?? usedKey?.jobId };
  }
  const hasJob = (usedKey && isFirst) || earlierJobs?.[entry.sentKey] !== undefined;
  if (!hasJob && !(existing && isInProgress(tx, existing, entry.sentKey))) return undefined;
  if (existing) replaceEntry(tx, id, withOwner(tx, markLostIfOrphaned(tx, existing), owner));
  return { outcome: 'recorded', id };
}

/** Reserves a create's price in all its budgets and records the create, atomically. Joins an existing create. */
export function reserveCreate(tx: LedgerTransaction, request: ReserveRequest): ReserveResult {
  const result = reuseCreate(tx, request);
  if (result) return result;
  const { owner, entry, rejectsUnknown } = request;
  const id = existingId(tx, request.id, entry);
  const existing = tx.entry(id);
  const pricedEntry: CreateEntry = existing
    ? { ...existing, budgets: withLimits(existing.budgets, entry.budgets), ...currentPrice(tx, entry) }
    : { ...entry, ...currentPrice(tx, entry) };
  const noRoom = noRoomFor(tx, pricedEntry, { step: 'reserve', rejectsUnknown });
  if (noRoom) return noRoom;
  const jobId = entryJobId(existing);
  const lastJob = existing && jobId !== undefined ? { [existing.sentKey]: jobId } : {};
  const jobs = { ...tx.usedKey(id)?.earlierJobs, ...existing?.earlierJobs, ...lastJob };
  const reservedEntry = transition(pricedEntry, { type: 'reserved', nowMs: tx.nowMs });
  replaceEntry(tx, id, {
    ...withOwner(tx, reservedEntry, owner),
    sentKey: entry.sentKey,
    params: entry.params ?? pricedEntry.params,
    ...(Object.keys(jobs).length > 0 && { earlierJobs: jobs }),
  });
  return { outcome: 'recorded', id };
}

/** Returns the price of a create. A learned price overrides an estimate. */
function currentPrice(
  tx: LedgerTransaction,
  entry: Pick<CreateEntry, 'account' | 'priceClass' | 'hasFixedPrice' | 'tokens' | 'isLearned'>,
): Pick<CreateEntry, 'tokens' | 'isLearned'> {
  const learnedPrice = entry.hasFixedPrice ? tx.price(entry) : undefined;
  const { tokens, isLearned } = entry;
  return learnedPrice === undefined ? { tokens, isLearned } : { tokens: learnedPrice, isLearned: true };
}

/** Returns the first budget that can't cover the create, or undefined if all can. */
function noRoomFor(
  tx: LedgerTransaction,
  { budgets, tokens, isLearned }: CreateEntry,
  { step, rejectsUnknown = [] }: { readonly step: 'reserve' | 'send'; readonly rejectsUnknown?: readonly boolean[] },
): NoRoom | undefined {
  for (const [at, budget] of budgets.entries()) {
    applyLearnedPrice(tx, budget);
    const snapshot = snapshotOf(tx.budget(budget), budget, tx.nowMs, tx.isAlive);
    const admission = admissionOf(snapshot, budget.maxTokens, { tokens, isLearned }, step);
    const outcome = tokens === null && rejectsUnknown[at] ? 'unpriced' : admission;
    if (outcome !== 'room') return { outcome, budget, snapshot, tokens };
  }
  return undefined;
}

/** Returns the ID of the entry that a key belongs to. The key may be derived from that of the entry. */
function existingId(tx: LedgerTransaction, id: string, { account, key, sentKey }: CreateEntry): string {
  const ids = originsOf(key).map((origin) => entryId(account, origin));
  return tx.entry(id) ? id : (ids.find((it) => tx.entry(it)?.sentKey === sentKey) ?? id);
}

/** Returns true if the create already counts in its budgets, or has a job. */
function isInProgress(tx: LedgerTransaction, entry: CreateEntry, sentKey: string): boolean {
  if (entry.phase === 'open') return entry.isReserved && entry.sentKey === sentKey && entry.owners.some(tx.isAlive);
  return !isAccepted(entry) || sentKey === entry.sentKey || sentKey === entry.key;
}

export interface SendRequest extends Pick<CreateEntry, 'params' | 'sentKey'> {
  readonly id: string;
  readonly owner: string;
}

export type SendResult =
  /** The request may be sent now. */
  | { readonly outcome: 'sent' }
  /** This process's lease expired, and another process has claimed the create. */
  | { readonly outcome: 'taken' }
  | NoRoom;

/**
 * Records that the request is about to be sent. Checks the budgets again, because the price may have risen, or the
 * reservation may have expired while the process was suspended. A lost create is sent without a check: it may have a
 * job, which only a retry with its key can find.
 */
export function recordSent(tx: LedgerTransaction, { id, owner, params, sentKey }: SendRequest): SendResult {
  const entry = tx.entry(id);
  if (!entry) return { outcome: tx.usedKey(id) ? 'sent' : 'taken' };
  if (!entry.owners.includes(owner)) return { outcome: 'taken' };
  if (isAccepted(entry) || hasEarlierJob(entry, sentKey)) return { outcome: 'sent' };
  const pricedEntry = entry.phase === 'open' ? { ...entry, ...currentPrice(tx, entry) } : entry;
  const noRoom = entry.phase === 'open' ? noRoomFor(tx, pricedEntry, { step: 'send' }) : undefined;
  if (noRoom) return noRoom;
  const sentEntry = transition(markLostIfOrphaned(tx, pricedEntry), { type: 'sent', owner });
  replaceEntry(tx, id, { ...sentEntry, sentKey, params: params ?? entry.params });
  return { outcome: 'sent' };
}

/** Returns true if the run already has a job under the key. */
function hasEarlierJob({ earlierJobs }: CreateEntry, sentKey: string | undefined): boolean {
  return sentKey !== undefined && earlierJobs?.[sentKey] !== undefined;
}

/** Records that a call's last attempt created no job, before the call pauses. Other calls' requests remain in flight. */
export function recordUnsent(tx: LedgerTransaction, id: string, owner: string): void {
  const entry = tx.entry(id);
  if (!entry?.owners.includes(owner)) return;
  replaceEntry(tx, id, withdraw(tx, { ...entry, owners: withFirst(owner, entry.owners) }, owner, true));
}

/** Withdraws a call's request. Requests of other calls remain in flight, or count as lost if their processes crashed. */
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

/** A call's run. The call owns its entry until `closeRun`. */
export interface CallRun {
  /** If true, a crashed process left the create unfinished, so its entry must be retained. */
  readonly isResumed?: boolean;
}

export interface AcceptedResponse {
  readonly id: string;
  readonly owner: string;
  readonly sentKey: string;
  /** Replaces an entry that the ledger no longer has. */
  readonly fallback: CreateEntry;
  readonly jobId: string;
  /** The quote in the response, or null if it has none. */
  readonly quotedTokens: number | null;
  readonly isUncharged: boolean;
  readonly run?: CallRun | undefined;
}

/** Records that the service accepted the create. Returns true if it counts in a budget but has no price. */
export function acceptCreate(tx: LedgerTransaction, response: AcceptedResponse): boolean {
  const { id, owner, fallback, sentKey, jobId, quotedTokens, isUncharged, run } = response;
  if (fallback.hasFixedPrice && quotedTokens !== null) tx.learnPrice(fallback, quotedTokens);
  const { jobId: lastJobId, earlierJobs = {} } = tx.usedKey(id) ?? {};
  if ([lastJobId, ...Object.values(earlierJobs)].includes(jobId)) return false;
  const entry = tx.entry(id) ?? fallback;
  const releasedEntry = run ? entry : withoutOwner(entry, owner);
  // If a run is repeated, the service returns the jobs that the run created before.
  const isRecorded = isAccepted(entry) && (entry.jobId === jobId || entry.sentKey !== sentKey);
  if (isRecorded || entry.earlierJobs?.[sentKey] === jobId) {
    replaceEntry(tx, id, releasedEntry);
    return false;
  }
  const tokens = isUncharged ? 0 : (quotedTokens ?? entry.tokens ?? tx.price(entry) ?? null);
  const acceptedEntry = {
    ...transition(releasedEntry, { type: 'accepted', jobId, nowMs: tx.nowMs }),
    tokens,
    isLearned: true,
  };
  replaceEntry(tx, id, { ...acceptedEntry, sentKey, budgets: spend(tx, entry.budgets, tokens ?? 0) });
  // The entry doesn't persist, and no budget or run uses it.
  if (!entry.retainUntilStored && entry.budgets.length === 0 && entry.rules === null) closeEntry(tx, id);
  return tokens === null && entry.budgets.length > 0;
}

/** A job's final state, from a poll or a webhook. */
export interface FinalState {
  readonly id: string;
  readonly jobId: string;
  readonly status: string;
  /** Undefined if the charge is unknown. */
  readonly chargedTokens: number | undefined;
  /** When the file's link expires. Undefined if it has no expiry. */
  readonly expiresMs?: number | undefined;
}

/** Records that a create's job is final, and replaces the quote in its budgets with the charge. */
export function endCreate(tx: LedgerTransaction, finalState: FinalState): void {
  const { id, jobId, status, chargedTokens } = finalState;
  const entry = tx.entry(id);
  // Earlier jobs of the run are already recorded as final.
  if (!entry || !isAccepted(entry) || entry.jobId !== jobId) return;
  // A webhook contains no expiry, so retain that of an earlier poll.
  const defaultMs = entry.phase === 'ended' ? entry.retainUntilMs : tx.nowMs + COMPLETED_TTL_MS;
  const { expiresMs = defaultMs } = finalState;
  const tokens = chargedTokens ?? entry.tokens;
  if (entry.hasFixedPrice && entry.tokens === null && tokens !== null && tokens > 0) tx.learnPrice(entry, tokens);
  if (tokens !== null) adjustSpent(tx, entry.budgets, tokens - (entry.tokens ?? 0));
  const retainUntilMs = status === 'completed' ? Math.max(tx.nowMs, expiresMs) : tx.nowMs + ENTRY_TTL_MS;
  replaceEntry(tx, id, { ...transition(entry, { type: 'final', jobId, status, retainUntilMs }), tokens });
  // A webhook doesn't contain the charge, so the budgets wait for a poll.
  const isSettled = chargedTokens !== undefined || entry.budgets.length === 0;
  if (!entry.retainUntilStored && isSettled && entry.rules === null) closeEntry(tx, id);
}

/** A create that returned no job. For its outcome, see `outcomeUnderKey`. */
export interface FailedCreate {
  readonly id: string;
  readonly owner: string;
  readonly outcome: 'refused' | 'unsent' | 'lost';
  readonly sentKey?: string | undefined;
  readonly run?: CallRun | undefined;
}

/** Records that a create returned no job. Retains the entry if a job may exist, or if it belongs to a run. */
export function failCreate(tx: LedgerTransaction, failure: FailedCreate): void {
  const { id, owner, outcome, sentKey, run } = failure;
  const entry = tx.entry(id);
  if (!entry?.owners.includes(owner)) return;
  if (isAccepted(entry) || hasEarlierJob(entry, sentKey)) {
    if (!run) replaceEntry(tx, id, withoutOwner(entry, owner));
    return;
  }
  const isRun = entry.rules !== null || run?.isResumed === true;
  const otherOwners = entry.owners.filter((it) => it !== owner);
  const releasedEntry = { ...entry, owners: run ? entry.owners : otherOwners };
  if (outcome === 'lost') {
    replaceEntry(tx, id, { ...transition(releasedEntry, { type: 'responseLost' }), sentKey: sentKey ?? entry.sentKey });
    return;
  }
  // A rejection is final for other processes, which may have crashed. Other calls of this process settle their own
  // requests.
  const isShared = otherOwners.some(outcome === 'refused' ? tx.isOwn : tx.isAlive);
  const nextEntry =
    outcome === 'refused' && !isShared
      ? transition(releasedEntry, { type: 'rejected', isReserved: false })
      : withdraw(tx, releasedEntry, owner, isShared);
  // After a rejection, an ended run has no use for its entry either, unless it must still deliver earlier jobs.
  const isOver = !isRun || (!run && outcome === 'refused' && entry.earlierJobs === undefined);
  if (nextEntry.phase === 'open' && !isShared && isOver) removeEntry(tx, id);
  else replaceEntry(tx, id, nextEntry);
}

/** Records the state of a run before it pauses or sends its next create. */
export function recordRun(tx: LedgerTransaction, id: string, run: JobRunState): void {
  const entry = tx.entry(id);
  if (entry) replaceEntry(tx, id, { ...entry, run });
}
