import { systemClock } from '../clock.js';
import { applyBudgetStep, type BudgetState, emptyBudget } from './budget-state.js';
import type { BudgetStore } from './budget-store.js';

/**
 * Keeps budgets in the memory of this process. Give one store to several budgets whose scopes may be the same: those that a
 * web handler makes for each request, for example.
 */
export function memoryBudget(): BudgetStore {
  const states = new Map<string, BudgetState>();
  return {
    async apply(scope, step) {
      const state = states.get(scope.name) ?? emptyBudget();
      states.set(scope.name, state);
      return applyBudgetStep(state, { scope, step, nowMs: systemClock.now() });
    },
  };
}
