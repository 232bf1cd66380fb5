// Reserves and spends the tokens of ledger entries in their budgets. Pure.
import {
  type BudgetTerms,
  budgetAt,
  budgetName,
  type ExpectedPrice,
  isUnresolved,
  type Reservation,
  unpricedIn,
  withReservation,
  withSpent,
} from './budget.js';
import { type CountedBudget, type CreateEntry, entryJobId, isAccepted, processOf } from './create-entry.js';
import { type LedgerTransaction, usedKeyOf } from './ledger-transaction.js';

/** Returns true if a create that may have been charged reserves tokens but has no live owner. */
export function isEntryUnresolved(
  entry: CreateEntry,
  { per }: Pick<BudgetTerms, 'per'>,
  context: { readonly nowMs: number; readonly isAlive: (owner: string) => boolean },
): boolean {
  const reservation = reservationOf(entry);
  return reservation !== undefined && isUnresolved(reservation, per, context);
}

export function countsIn({ budgets }: CreateEntry, terms: BudgetTerms): boolean {
  return budgets.some((budget) => budgetName(budget) === budgetName(terms));
}

function reservationOf(entry: CreateEntry): Reservation | undefined {
  const { sinceMs, tokens } = entry;
  const owner = processOf((entry.phase === 'sent' ? entry.senders : entry.owners)[0] ?? '');
  switch (entry.phase) {
    case 'open':
      return entry.isReserved ? { phase: 'open', owner, sinceMs } : undefined;
    case 'sent':
    case 'lost':
      return { phase: 'sent', owner, sinceMs };
    case 'accepted':
      return { phase: tokens === null ? 'sent' : 'accepted', owner: '', sinceMs };
    case 'ended':
      return tokens === null ? { phase: 'sent', owner: '', sinceMs } : undefined;
  }
}

/** Returns the expected price of a create. If it was accepted without a price, it counts as an estimate. */
function expectedOf(entry: CreateEntry): ExpectedPrice {
  const { tokens, isLearned } = entry;
  return isAccepted(entry) ? { tokens: tokens ?? 0, isLearned: tokens !== null } : { tokens, isLearned };
}

/** Replaces an entry, and updates the reservations in its budgets. */
export function replaceEntry(tx: LedgerTransaction, id: string, entry: CreateEntry): void {
  const oldEntry = unreserve(tx, id);
  reserve(tx, id, entry, 1);
  const [oldJob, newJob] = [entryJobId(oldEntry), entryJobId(entry)];
  if (oldJob !== undefined && oldJob !== newJob) tx.putJob(oldJob, undefined);
  if (newJob !== undefined && oldJob !== newJob) tx.putJob(newJob, id);
  tx.put(id, entry);
}

/** Removes an entry, including its key. */
export function removeEntry(tx: LedgerTransaction, id: string): void {
  const jobId = entryJobId(unreserve(tx, id));
  if (jobId !== undefined) tx.putJob(jobId, undefined);
  tx.remove(id);
}

/**
 * Removes a finished entry, but retains its key. A random key in memory is never reused, so it is removed, too. An entry
 * without a price remains until a poll returns the charge, because otherwise its budgets would never count it.
 */
export function closeEntry(tx: LedgerTransaction, id: string, entry = tx.entry(id)): void {
  if (!entry) return;
  if (isAccepted(entry) && entry.tokens === null && entry.budgets.length > 0) {
    replaceEntry(tx, id, { ...entry, retainUntilStored: false });
    return;
  }
  removeEntry(tx, id);
  if (tx.isPersistent || entry.digest !== undefined) tx.remove(id, usedKeyOf(entry));
}

/**
 * Removes an old entry to limit memory use, unless it has an owner or an unknown price. Its spent tokens still count in
 * its budgets.
 */
export function evictCreate(tx: LedgerTransaction, id: string): void {
  const entry = tx.entry(id);
  const isNeeded = entry && (!isAccepted(entry) || entry.tokens === null || entry.owners.some(tx.isAlive));
  if (!isNeeded) removeEntry(tx, id);
}

/** Removes an entry's reservations, and returns the entry. */
function unreserve(tx: LedgerTransaction, id: string): CreateEntry | undefined {
  const entry = tx.entry(id);
  if (entry) reserve(tx, id, entry, -1);
  return entry;
}

function reserve(tx: LedgerTransaction, id: string, entry: CreateEntry, sign: 1 | -1): void {
  const baseReservation = reservationOf(entry);
  if (baseReservation === undefined) return;
  const unpricedId = entry.tokens === null && entry.hasFixedPrice ? id : undefined;
  const reservation = { ...baseReservation, unpricedId };
  for (const budget of distinctBudgets(entry.budgets)) {
    const state = budgetAt(tx.budget(budget), budget.per, tx);
    tx.putBudget(budget, withReservation(state, { ...reservation, per: budget.per }, expectedOf(entry), sign));
  }
}

/** Returns an entry's budgets with their current limits. */
export function withLimits(budgets: readonly CountedBudget[], current: readonly BudgetTerms[]): CountedBudget[] {
  const isIn = (list: readonly BudgetTerms[], it: BudgetTerms) =>
    list.some((other) => budgetName(other) === budgetName(it));
  return [...current.filter((it) => isIn(budgets, it)), ...budgets.filter((it) => !isIn(current, it))];
}

/** Sets the price of entries without one, if another create has revealed the price in the meantime. */
export function applyLearnedPrice(tx: LedgerTransaction, budget: BudgetTerms): void {
  for (const id of unpricedIn(budgetAt(tx.budget(budget), budget.per, tx), tx.isAlive)) {
    const entry = tx.entry(id);
    const tokens = entry && tx.price(entry);
    if (!entry || tokens === undefined) continue;
    const budgets = isAccepted(entry) ? spend(tx, entry.budgets, tokens) : entry.budgets;
    replaceEntry(tx, id, { ...entry, tokens, isLearned: true, budgets });
    closeIfStored(tx, id);
  }
}

/** Closes an entry that was retained only because it had no price. */
export function closeIfStored(tx: LedgerTransaction, id: string): void {
  const entry = tx.entry(id);
  const isStored = entry?.phase === 'ended' && !entry.retainUntilStored;
  if (isStored && !entry.owners.some(tx.isAlive)) closeEntry(tx, id);
}

/** Adds tokens to the current period of each budget. */
export function spend(tx: LedgerTransaction, budgets: readonly CountedBudget[], tokens: number): CountedBudget[] {
  for (const budget of distinctBudgets(budgets)) {
    const state = budgetAt(tx.budget(budget), budget.per, tx);
    tx.putBudget(budget, withSpent(state, budget.per, tokens, tx.nowMs));
  }
  return budgets.map((budget) => ({ ...budget, startMs: tx.budget(budget).startMs }));
}

/** Adjusts each budget's spent tokens, unless its period has ended in the meantime. */
export function adjustSpent(tx: LedgerTransaction, budgets: readonly CountedBudget[], tokens: number): void {
  if (tokens === 0) return;
  for (const budget of distinctBudgets(budgets)) {
    const state = budgetAt(tx.budget(budget), budget.per, tx);
    if (state.startMs === budget.startMs) tx.putBudget(budget, withSpent(state, budget.per, tokens, tx.nowMs));
  }
}

/**
 * Returns the budgets without duplicates. Budgets with the same scope and period share their tokens, even if their
 * limits differ.
 */
function distinctBudgets(budgets: readonly CountedBudget[]): readonly CountedBudget[] {
  return budgets.filter((budget, at) => budgets.findIndex((other) => budgetName(other) === budgetName(budget)) === at);
}
