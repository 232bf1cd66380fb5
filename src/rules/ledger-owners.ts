// Ownership of ledger entries: calls own entries, release them, and claim those of crashed processes. Pure.
import { type CreateEntry, isAccepted, isFailedJob, sendersOf, transition, withFirst } from './create-entry.js';
import { closeEntry, closeIfStored, removeEntry, replaceEntry } from './ledger-budgets.js';
import type { LedgerTransaction } from './ledger-transaction.js';

/** Marks a sent create as lost if its process crashed, because a job may exist even if the next attempt fails. */
export function markLostIfOrphaned(tx: LedgerTransaction, entry: CreateEntry): CreateEntry {
  const isOrphaned = entry.phase === 'sent' && !entry.senders.some(tx.isAlive);
  return isOrphaned ? transition(entry, { type: 'responseLost' }) : entry;
}

/** Makes a call the newest owner of an entry, and removes crashed owners. */
export function withOwner<T extends CreateEntry>(tx: LedgerTransaction, entry: T, owner: string): T {
  return { ...entry, owners: withFirst(owner, entry.owners.filter(tx.isAlive)) };
}

export function withoutOwner<T extends CreateEntry>(entry: T, owner: string): T {
  return { ...entry, owners: entry.owners.filter((other) => other !== owner) };
}

/** Records that a call starts or stops waiting for the job or storing its file. */
export function setJobOwner(tx: LedgerTransaction, id: string, owner: string, isOwner: boolean): void {
  const entry = tx.entry(id);
  if (entry && isAccepted(entry))
    replaceEntry(tx, id, isOwner ? withOwner(tx, entry, owner) : withoutOwner(entry, owner));
}

/**
 * Records that the program has received a job's outcome, or has stored its file. A completed job is retained until its
 * file is stored.
 */
export function acknowledge(tx: LedgerTransaction, id: string, subject: 'outcome' | 'file'): void {
  const entry = tx.entry(id);
  if (!entry || !isAccepted(entry)) return;
  // If a failed job's entry has an owner, the run continues with another job.
  if (subject === 'file' || (isFailedJob(entry) && !entry.owners.some(tx.isAlive))) closeEntry(tx, id);
}

export interface ClosedRun {
  readonly id: string;
  readonly owner: string;
  /** True if the program has received the outcome. A create without a job is then finished, too. */
  readonly isDelivered: boolean;
  readonly isResumed?: boolean | undefined;
}

/** Records that a call no longer works on an entry, because its run ended or was aborted. */
export function closeRun(tx: LedgerTransaction, { id, owner, isDelivered, isResumed = false }: ClosedRun): void {
  const entry = tx.entry(id);
  if (!entry?.owners.includes(owner)) return;
  // If the call ended before its request was settled, a job may exist.
  const isInFlight = sendersOf(entry).includes(owner);
  const releasedEntry = withoutOwner(isInFlight ? transition(entry, { type: 'responseLost' }) : entry, owner);
  const isOver =
    (isDelivered && (entry.phase === 'open' || isFailedJob(entry))) ||
    (!entry.retainUntilStored && entry.phase === 'ended' && entry.tokens !== null);
  if (releasedEntry.owners.length > 0) replaceEntry(tx, id, releasedEntry);
  else if (entry.phase === 'open' && entry.earlierJobs === undefined && !isResumed) removeEntry(tx, id);
  else if (isOver) closeEntry(tx, id, releasedEntry);
  else
    replaceEntry(tx, id, entry.phase === 'sent' ? transition(releasedEntry, { type: 'responseLost' }) : releasedEntry);
}

/**
 * Releases a create, because the user confirmed that no job exists under its key. Requests in flight still count in its
 * budgets.
 */
export function releaseCreate(tx: LedgerTransaction, id: string): void {
  const entry = tx.entry(id);
  if (!entry) return;
  if (entry.owners.some(tx.isAlive)) replaceEntry(tx, id, transition(entry, { type: 'released' }));
  else if (!isAccepted(entry)) removeEntry(tx, id);
  else if (entry.tokens === null) {
    replaceEntry(tx, id, { ...entry, tokens: 0 });
    closeIfStored(tx, id);
  }
}

/**
 * Makes a call the owner of a create without a live owner. Returns undefined if a live process or a detached run owns
 * it.
 */
export function claimCreate(
  tx: LedgerTransaction,
  id: string,
  owner: string,
  isInFlight: (owner: string) => boolean,
): CreateEntry | undefined {
  const entry = tx.entry(id);
  if (!entry?.retainUntilStored) return undefined;
  if (entry.owners.some((other) => tx.isAlive(other) && isInFlight(other))) return undefined;
  // A sent create may have a job. An unsent create has lost its reservation, so it must reserve its price again.
  const lostEntry = entry.phase === 'sent' ? transition(entry, { type: 'responseLost' }) : entry;
  const claimedEntry = { ...transition(lostEntry, { type: 'unsent', isReserved: false }), owners: [owner] };
  replaceEntry(tx, id, claimedEntry);
  return claimedEntry;
}

/** Removes a resumed create that has no job, or whose job the service doesn't know (`isUnknown`). */
export function discardCreate(tx: LedgerTransaction, id: string, isUnknown: boolean): void {
  const entry = tx.entry(id);
  if (!entry || entry.owners.some(tx.isAlive)) return;
  if (isUnknown || entry.phase === 'open') removeEntry(tx, id);
}
