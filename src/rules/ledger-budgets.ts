// What the entries of the ledger reserve and spend in their budgets. Pure.
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

/** Returns true if a create reserves tokens of a budget although no process works on it. */
export function isEntryUnresolved(
  entry: CreateEntry,
  { per }: Pick<BudgetTerms, 'per'>,
  at: { readonly nowMs: number; readonly isAlive: (owner: string) => boolean },
): boolean {
  const reservation = reservationOf(entry);
  return reservation !== undefined && isUnresolved(reservation, per, at);
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

/** Returns what a create is expected to cost. One that was accepted without a price may cost anything. */
function expectedOf(entry: CreateEntry): ExpectedPrice {
  const { tokens, isLearned } = entry;
  return isAccepted(entry) ? { tokens: tokens ?? 0, isLearned: tokens !== null } : { tokens, isLearned };
}

/** Puts an entry into the ledger, and changes what its budgets reserve. */
export function replaceEntry(tx: LedgerTransaction, id: string, entry: CreateEntry): void {
  const before = unreserve(tx, id);
  reserve(tx, id, entry, 1);
  const [oldJob, newJob] = [entryJobId(before), entryJobId(entry)];
  if (oldJob !== undefined && oldJob !== newJob) tx.putJob(oldJob, undefined);
  if (newJob !== undefined && oldJob !== newJob) tx.putJob(newJob, id);
  tx.put(id, entry);
}

/** Removes an entry that created no job, with its key. */
export function removeEntry(tx: LedgerTransaction, id: string): void {
  const jobId = entryJobId(unreserve(tx, id));
  if (jobId !== undefined) tx.putJob(jobId, undefined);
  tx.remove(id);
}

/** Removes an entry that is over. Its key stays known for a while, unless the process alone knows it and drew it at random. */
export function closeEntry(tx: LedgerTransaction, id: string): void {
  const entry = tx.entry(id);
  if (!entry) return;
  removeEntry(tx, id);
  if (tx.isPersistent || entry.digest !== undefined) tx.remove(id, usedKeyOf(entry));
}

/**
 * Removes what an older create left behind, to bound the memory of the process. What it spent stays counted. Keeps an entry
 * that a call owns, or that a budget needs because its price is unknown.
 */
export function evictCreate(tx: LedgerTransaction, id: string): void {
  const entry = tx.entry(id);
  const isNeeded = entry && (!isAccepted(entry) || entry.tokens === null || entry.owners.some(tx.isAlive));
  if (!isNeeded) removeEntry(tx, id);
}

/** Removes what an entry reserves, and returns the entry. */
function unreserve(tx: LedgerTransaction, id: string): CreateEntry | undefined {
  const entry = tx.entry(id);
  if (entry) reserve(tx, id, entry, -1);
  return entry;
}

function reserve(tx: LedgerTransaction, id: string, entry: CreateEntry, sign: 1 | -1): void {
  const reserved = reservationOf(entry);
  if (reserved === undefined) return;
  const unpricedId = entry.tokens === null && entry.hasFixedPrice ? id : undefined;
  const reservation = { ...reserved, unpricedId };
  for (const budget of sumsOf(entry.budgets)) {
    const state = budgetAt(tx.budget(budget), budget.per, tx);
    tx.putBudget(budget, withReservation(state, { ...reservation, per: budget.per }, expectedOf(entry), sign));
  }
}

/** Fills in the price of entries whose response was lost, or had none, if another create has taught it since. */
export function fillIn(tx: LedgerTransaction, budget: BudgetTerms): void {
  for (const id of unpricedIn(budgetAt(tx.budget(budget), budget.per, tx), tx.isAlive)) {
    const entry = tx.entry(id);
    const tokens = entry && tx.price(entry);
    if (!entry || tokens === undefined) continue;
    const budgets = isAccepted(entry) ? spend(tx, entry.budgets, tokens) : entry.budgets;
    replaceEntry(tx, id, { ...entry, tokens, isLearned: true, budgets });
  }
}

/** Counts tokens in the present period of each budget. */
export function spend(tx: LedgerTransaction, budgets: readonly CountedBudget[], tokens: number): CountedBudget[] {
  for (const budget of sumsOf(budgets)) {
    const state = budgetAt(tx.budget(budget), budget.per, tx);
    tx.putBudget(budget, withSpent(state, budget.per, tokens, tx.nowMs));
  }
  return budgets.map((budget) => ({ ...budget, startMs: tx.budget(budget).startMs }));
}

/** Adds tokens to what was spent, unless the period has ended since. */
export function adjustSpent(tx: LedgerTransaction, budgets: readonly CountedBudget[], tokens: number): void {
  if (tokens === 0) return;
  for (const budget of sumsOf(budgets)) {
    const state = budgetAt(tx.budget(budget), budget.per, tx);
    if (state.startMs === budget.startMs) tx.putBudget(budget, withSpent(state, budget.per, tokens, tx.nowMs));
  }
}

/** Two budgets of one scope and period are one sum with two limits. */
function sumsOf(budgets: readonly CountedBudget[]): readonly CountedBudget[] {
  return budgets.filter((it, at) => budgets.findIndex((other) => budgetName(other) === budgetName(it)) === at);
}
