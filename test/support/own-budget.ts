import { type Budget, type BudgetOptions, createBudget } from '../../src/index.js';

let budgets = 0;

/** Creates a budget with a scope of its own. */
export function ownBudget(options: BudgetOptions): Budget {
  budgets += 1;
  return createBudget({ scope: `own-${budgets}`, ...options });
}
