// Who works on the entries of the ledger: calls own them, leave them, and claim what a crash has left. Pure.
import { type CreateEntry, isAccepted, isFailedJob, sendersOf, transition, withFirst } from './create-entry.js';
import { closeEntry, removeEntry, replaceEntry } from './ledger-budgets.js';
import type { LedgerTransaction } from './ledger-transaction.js';

/** The process that sent this create has crashed. A job may exist even if the next attempt fails. */
export function markLostIfOrphaned(tx: LedgerTransaction, entry: CreateEntry): CreateEntry {
  const isOrphaned = entry.phase === 'sent' && !entry.senders.some(tx.isAlive);
  return isOrphaned ? transition(entry, { type: 'unanswered' }) : entry;
}

/** Makes a call the newest owner of an entry. Owners that have crashed leave it. */
export function withOwner<T extends CreateEntry>(tx: LedgerTransaction, entry: T, owner: string): T {
  return { ...entry, owners: withFirst(owner, entry.owners.filter(tx.isAlive)) };
}

export function withoutOwner<T extends CreateEntry>(entry: T, owner: string): T {
  return { ...entry, owners: entry.owners.filter((it) => it !== owner) };
}

/** A call starts or stops to wait for the job or to store its file. */
export function setJobOwner(tx: LedgerTransaction, id: string, owner: string, isOwner: boolean): void {
  const entry = tx.entry(id);
  if (entry && isAccepted(entry))
    replaceEntry(tx, id, isOwner ? withOwner(tx, entry, owner) : withoutOwner(entry, owner));
}

/** The program has the outcome of a job, or its file is stored. A completed job stays until its file is stored. */
export function acknowledge(tx: LedgerTransaction, id: string, what: 'outcome' | 'file'): void {
  const entry = tx.entry(id);
  if (!entry || !isAccepted(entry)) return;
  // Another wait may have thrown the failure of a job whose run continues.
  if (what === 'file' || (isFailedJob(entry) && !entry.owners.some(tx.isAlive))) closeEntry(tx, id);
}

export interface ClosedRun {
  readonly id: string;
  readonly owner: string;
  /** True if the program has the outcome: then a create without a job is over, too. */
  readonly isDelivered: boolean;
  readonly isResumed?: boolean | undefined;
}

/** A call no longer works on an entry: its run is over, was aborted, or gives up. */
export function closeRun(tx: LedgerTransaction, { id, owner, isDelivered, isResumed = false }: ClosedRun): void {
  const entry = tx.entry(id);
  if (!entry?.owners.includes(owner)) return;
  // A call that leaves without a word about its request may have created a job.
  const hasSent = sendersOf(entry).includes(owner);
  const left = withoutOwner(hasSent ? transition(entry, { type: 'unanswered' }) : entry, owner);
  const isOver =
    (isDelivered && (entry.phase === 'open' || isFailedJob(entry))) ||
    (!entry.retainUntilStored && entry.phase === 'ended' && entry.tokens !== null);
  if (left.owners.length > 0) replaceEntry(tx, id, left);
  else if (entry.phase === 'open' && entry.earlierJobs === undefined && !isResumed) removeEntry(tx, id);
  else if (isOver) closeEntry(tx, id);
  else replaceEntry(tx, id, entry.phase === 'sent' ? transition(left, { type: 'unanswered' }) : left);
}

/** The user knows that no job exists under the key. What is in flight stays. */
export function releaseCreate(tx: LedgerTransaction, id: string): void {
  const entry = tx.entry(id);
  if (!entry) return;
  if (entry.owners.some(tx.isAlive)) replaceEntry(tx, id, transition(entry, { type: 'released' }));
  else if (!isAccepted(entry)) removeEntry(tx, id);
  else if (entry.tokens === null) replaceEntry(tx, id, { ...entry, tokens: 0 });
}

/**
 * Makes a call the owner of a create that has no live owner. Returns undefined if a living process, or the record of a detached
 * run, works on it.
 */
export function claimCreate(
  tx: LedgerTransaction,
  id: string,
  owner: string,
  isInFlight: (owner: string) => boolean,
): CreateEntry | undefined {
  const entry = tx.entry(id);
  if (!entry?.retainUntilStored) return undefined;
  if (entry.owners.some((it) => tx.isAlive(it) && isInFlight(it))) return undefined;
  // What was sent may have a job. What was not sent has lost its reservation, and asks for room again.
  const left = entry.phase === 'sent' ? transition(entry, { type: 'unanswered' }) : entry;
  const claimed = { ...transition(left, { type: 'unsent', isReserved: false }), owners: [owner] };
  replaceEntry(tx, id, claimed);
  return claimed;
}

/** The program knows that a create which a crash has left made no job, or one that the service does not know. */
export function discardCreate(tx: LedgerTransaction, id: string, isUnknown: boolean): void {
  const entry = tx.entry(id);
  if (!entry || entry.owners.some(tx.isAlive)) return;
  if (isUnknown || entry.phase === 'open') removeEntry(tx, id);
}
