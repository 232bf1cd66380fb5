// What the calls of a client need of a budget, whoever made it.
import { BudgetExceededError } from '../errors/client-errors.js';
import { type BudgetStanding, type BudgetTerms, budgetName } from '../rules/budget.js';
import type { BudgetRefused } from '../rules/ledger.js';
import type { CreateEntry } from '../rules/ledger-draft.js';
import { isUnresolved } from '../rules/ledger-shares.js';
import type { Clock } from '../runtime/clock.js';
import type { Budget, PricedCall } from '../schemas/budget.js';
import type { Store } from '../store/store.js';
import type { Ledger } from './ledger.js';

/** The name under which a budget shows its terms to the calls that it counts, whichever copy of the package made it. */
export const TERMS: unique symbol = Symbol.for('gen-client.budget');

export interface ClientHome {
  readonly store: Store | undefined;
  readonly clock: Clock;
}

export interface CountingBudget extends Budget {
  readonly [TERMS]: {
    readonly refusesUnknown: boolean;
    /** The store that a client's creates count in, which is the client's or the process's where the budget has none. */
    countIn(home: ClientHome): { readonly store: Store; readonly terms: BudgetTerms };
    /** What the user estimates; null for no estimate. */
    guess(job: PricedCall): number | null;
    reportLow(balanceTokens: number | undefined): void;
  };
}

export function countingOf(budget: Budget): CountingBudget[typeof TERMS] {
  return (budget as CountingBudget)[TERMS];
}

/** What the scope of a budget without a name begins with. */
export const ALONE = 'default#';

/** The name of a budget for messages. */
function shownScope(scope: string): string {
  return scope.startsWith(ALONE) ? 'default' : scope;
}

export function counts({ budgets }: CreateEntry, terms: BudgetTerms): boolean {
  return budgets.some((budget) => budgetName(budget) === budgetName(terms));
}

/** The keys of the creates that hold tokens without that anybody works on them. */
export async function unresolvedKeys(ledger: Ledger, terms: BudgetTerms, { lost }: BudgetStanding): Promise<string[]> {
  if (lost.creates === 0) return [];
  const { entries, ...at } = await ledger.recentEntries();
  return entries.filter((it) => counts(it, terms) && isUnresolved(it, terms, at)).map(({ sentKey }) => sentKey);
}

/** When the period of a budget ends, as an ISO timestamp. */
export function resetOf({ endMs }: BudgetStanding): string | null {
  return endMs === null ? null : new Date(endMs).toISOString();
}

export async function budgetRefusal(ledger: Ledger, refused: BudgetRefused): Promise<BudgetExceededError> {
  const { outcome, budget, standing, tokens } = refused;
  const scope = shownScope(budget.scope);
  const cost = tokens === null ? 'a create of unknown price' : `a create of ${tokens} tokens`;
  const [leftTokens, resetsAt] = [standing.leftTokens, resetOf(standing)];
  const details = { estimateTokens: tokens ?? undefined, leftTokens, resetsAt, scope };
  const state = `The budget "${scope}" has ${leftTokens} of ${budget.maxTokens} tokens left`;
  if (outcome === 'unpriced') {
    const advice = "Let unknownPrice estimate, or set it to 'one-at-a-time'.";
    const message = `${state} and refuses unknown prices, so ${cost} was not sent. ${advice}`;
    return new BudgetExceededError(message, { ...details, reason: 'spent' });
  }
  if (outcome === 'spent') {
    const next = resetsAt === null ? '' : ` The next period begins at ${resetsAt}.`;
    return new BudgetExceededError(`${state}, so ${cost} was not sent.${next}`, { ...details, reason: 'spent' });
  }
  const keys = await unresolvedKeys(ledger, budget, standing).catch(() => []);
  const shown = keys.slice(0, 3).join(', ') + (keys.length > 3 ? ` and ${keys.length - 3} more` : '');
  const advice = `Send them again under their keys, or call budget.release(key)${shown === '' ? '' : `: ${shown}`}.`;
  const message = `${state} while creates have no answer or no price yet, so ${cost} was not sent. ${advice}`;
  return new BudgetExceededError(message, { ...details, reason: 'unresolved' });
}
