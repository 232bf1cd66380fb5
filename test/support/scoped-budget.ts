import { type Budget, type BudgetOptions, createBudget } from '../../src/index.js';

let budgets = 0;

/** Creates a budget with a unique scope, unless `options` has one. */
export function scopedBudget(options: BudgetOptions): Budget {
  budgets += 1;
  return createBudget({ scope: `own-${budgets}`, ...options });
}
