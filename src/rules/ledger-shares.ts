// What the entries of the ledger reserve and spend in their budgets. Pure.
import {
  type BudgetTerms,
  budgetAt,
  budgetName,
  type ExpectedPrice,
  lostUntilMs,
  type Reservation,
  withShare,
  withSpent,
} from './budget.js';
import { type CreateEntry, type LedgerDraft, processOf } from './ledger-draft.js';

/** Whether a create holds tokens of a budget without that anybody works on it, so that only its key tells its outcome. */
export function isUnresolved(
  entry: CreateEntry,
  { per }: Pick<BudgetTerms, 'per'>,
  at: { readonly nowMs: number; readonly isAlive: (holder: string) => boolean },
): boolean {
  const reserved = reservationOf(entry);
  if (reserved?.phase !== 'sent' || at.isAlive(reserved.owner)) return false;
  return lostUntilMs(per, reserved.sinceMs) > at.nowMs;
}

/** What a create is reserved as; undefined once its cost is spent. */
function reservationOf(entry: CreateEntry): Reservation | undefined {
  const { phase, holders, isAside, tokens, atMs, sinceMs = atMs } = entry;
  if (isAnswered(entry)) return tokens === null ? { phase: 'sent', owner: '', sinceMs } : undefined;
  if (phase === 'open' && isAside) return undefined;
  const [holder] = holders;
  return { phase: phase === 'open' ? 'open' : 'sent', owner: holder === undefined ? '' : processOf(holder), sinceMs };
}

export function isAnswered({ phase }: CreateEntry): boolean {
  return phase === 'accepted' || phase === 'ended';
}

/** What a create is taken to cost. One that was accepted without a price counts as spent, and may cost anything. */
function expectedOf({ phase, tokens, isSure }: CreateEntry): ExpectedPrice {
  return phase === 'open' || phase === 'sent' ? { tokens, isSure } : { tokens: 0, isSure: false };
}

export function replace(draft: LedgerDraft, id: string, entry: CreateEntry | undefined): void {
  const before = draft.entry(id);
  reserve(draft, before, -1);
  reserve(draft, entry, 1);
  if (before?.jobId !== undefined && entry === undefined) draft.putJob(before.jobId, undefined);
  draft.put(id, entry);
}

function reserve(draft: LedgerDraft, entry: CreateEntry | undefined, sign: 1 | -1): void {
  const reserved = entry && reservationOf(entry);
  if (!entry || reserved === undefined) return;
  for (const budget of sumsOf(entry.budgets)) {
    const state = budgetAt(draft.budget(budgetName(budget)), budget.per, draft);
    draft.putBudget(budget, withShare(state, { ...reserved, per: budget.per }, expectedOf(entry), sign));
  }
}

/** The entry has done its work. Its key stays known for a while. */
export function finish(draft: LedgerDraft, id: string): void {
  const entry = draft.entry(id);
  if (!entry) return;
  replace(draft, id, undefined);
  const { jobId, digest, sentKey, tries } = entry;
  draft.put(id, undefined, {
    jobId,
    digest,
    tries: tries && jobId !== undefined ? { ...tries, [sentKey]: jobId } : tries,
  });
}

/** Counts tokens in the present period of each budget. */
export function spend(draft: LedgerDraft, budgets: CreateEntry['budgets'], tokens: number): CreateEntry['budgets'] {
  for (const budget of sumsOf(budgets)) {
    const state = budgetAt(draft.budget(budgetName(budget)), budget.per, draft);
    draft.putBudget(budget, withSpent(state, budget.per, tokens, draft.nowMs));
  }
  return budgets.map((budget) => ({ ...budget, startMs: draft.budget(budgetName(budget)).startMs }));
}

/** Two budgets of one scope and period are one sum with two limits. */
function sumsOf(budgets: CreateEntry['budgets']): CreateEntry['budgets'] {
  return budgets.filter((it, at) => budgets.findIndex((other) => budgetName(other) === budgetName(it)) === at);
}

/** Corrects what was counted, where the period is still the same. */
export function correct(draft: LedgerDraft, budgets: CreateEntry['budgets'], tokens: number): CreateEntry['budgets'] {
  if (tokens === 0) return budgets;
  for (const budget of sumsOf(budgets)) {
    const state = budgetAt(draft.budget(budgetName(budget)), budget.per, draft);
    if (state.startMs === budget.startMs) draft.putBudget(budget, withSpent(state, budget.per, tokens, draft.nowMs));
  }
  return budgets;
}
