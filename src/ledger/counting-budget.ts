// The internal interface of a budget.
import { BudgetExceededError } from '../errors/client-errors.js';
import type { BudgetSnapshot, BudgetTerms } from '../rules/budget.js';
import type { NoRoom } from '../rules/ledger.js';
import { countsIn, isEntryUnresolved } from '../rules/ledger-budgets.js';
import type { Clock } from '../runtime/clock.js';
import type { Budget, PricedCall } from '../schemas/budget.js';
import type { Store } from '../store/store.js';
import type { Ledger } from './ledger.js';

/** The property of a budget that contains its terms. Shared by copies of the package. */
export const TERMS: unique symbol = Symbol.for('gen-client.budget');

/** A client that uses a budget. */
export interface BudgetClient {
  readonly store: Store | undefined;
  readonly clock: Clock;
}

export interface CountingBudget extends Budget {
  readonly [TERMS]: {
    readonly rejectsUnknown: boolean;
    /** Returns the terms, and the first of these stores that is set: the budget's, the client's, the process's. */
    ledgerTarget(client: BudgetClient): { readonly store: Store; readonly terms: BudgetTerms };
    /** Returns the user's estimate, or null without one. */
    estimate(job: PricedCall): number | null;
    reportLow(balanceTokens: number | undefined): void;
  };
}

export function budgetTermsOf(budget: Budget): CountingBudget[typeof TERMS] {
  return (budget as CountingBudget)[TERMS];
}

/** Returns the idempotency keys of creates that reserve tokens but have no live owner. */
export async function unresolvedKeys(ledger: Ledger, terms: BudgetTerms, { lost }: BudgetSnapshot): Promise<string[]> {
  if (lost.creates === 0) return [];
  const { entries, ...state } = await ledger.recentEntries();
  return entries
    .filter((it) => countsIn(it, terms) && isEntryUnresolved(it, terms, state))
    .map(({ sentKey }) => sentKey);
}

/** Returns when the budget's period ends, as an ISO timestamp, or null if it doesn't end. */
export function resetOf({ endMs }: BudgetSnapshot): string | null {
  return endMs === null ? null : new Date(endMs).toISOString();
}

export async function noRoomError(ledger: Ledger, noRoom: NoRoom): Promise<BudgetExceededError> {
  const { outcome, budget, snapshot, tokens } = noRoom;
  const { scope } = budget;
  const cost = tokens === null ? 'a create of unknown price' : `a create of ${tokens} tokens`;
  const [leftTokens, resetsAt] = [snapshot.leftTokens, resetOf(snapshot)];
  const details = { estimateTokens: tokens ?? undefined, leftTokens, resetsAt, scope };
  const state = `The budget "${scope}" has ${leftTokens} of ${budget.maxTokens} tokens left`;
  if (outcome === 'unpriced') {
    const advice = "Let unknownPrice estimate, or set it to 'one-at-a-time'.";
    const message = `${state} and rejects unknown prices, so ${cost} was not sent. ${advice}`;
    return new BudgetExceededError(message, { ...details, reason: 'spent' });
  }
  if (outcome === 'spent') {
    const resetAdvice = resetsAt === null ? ' Raise maxTokens.' : ` The next period begins at ${resetsAt}.`;
    return new BudgetExceededError(`${state}, so ${cost} was not sent.${resetAdvice}`, { ...details, reason: 'spent' });
  }
  const keys = await unresolvedKeys(ledger, budget, snapshot).catch(() => []);
  const unresolved = { ...details, reason: 'unresolved' } as const;
  if (keys.length === 0) {
    const message = `${state} while running jobs may still release tokens, so ${cost} was not sent. Call again when they have ended.`;
    return new BudgetExceededError(message, unresolved);
  }
  const keyList = keys.slice(0, 3).join(', ') + (keys.length > 3 ? ` and ${keys.length - 3} more` : '');
  const advice = `Send them again under their keys, or call budget.release(key): ${keyList}.`;
  const message = `${state} while creates have no response or no price yet, so ${cost} was not sent. ${advice}`;
  return new BudgetExceededError(message, unresolved);
}
