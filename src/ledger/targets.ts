// Determines which ledgers record a client's creates.
import { GenError } from '../errors/index.js';
import type { Budget } from '../schemas/budget.js';
import type { Call, Core } from '../transport/call.js';
import { type BudgetClient, budgetTermsOf } from './counting-budget.js';
import { type Ledger, ledgerOf } from './ledger.js';

/** Returns the ledger of the client's store, or undefined if the client has no store. */
export function storeLedgerOf({ config }: Pick<Core, 'config'>): Ledger | undefined {
  return config.store && ledgerOf(config.store, config.clock.wall);
}

export function budgetClientOf({ config }: Pick<Core, 'config'>): BudgetClient {
  return { store: config.store, clock: config.clock.wall };
}

export interface Target {
  readonly ledger: Ledger;
  readonly budgets: readonly Budget[];
}

/** Returns the ledgers that record a create: first its budgets' ledger, then its client's. */
export function targetsOf({ core, options }: Call<unknown>): Target[] {
  const { store, budget, clock } = core.config;
  const budgets = [...new Set([budget, options.budget].filter((it) => it !== undefined))];
  const stores = [...new Set(budgets.map((it) => budgetTermsOf(it).ledgerTarget(budgetClientOf(core)).store))];
  const [budgetStore] = stores;
  if (stores.length > 1) {
    throw new GenError(
      'budget: the budgets of one call have different stores. Pass the same store to each createBudget.',
    );
  }
  return [...new Set([budgetStore, store].filter((it) => it !== undefined))].map((it) => ({
    ledger: ledgerOf(it, clock.wall),
    budgets: it === budgetStore ? budgets : [],
  }));
}
