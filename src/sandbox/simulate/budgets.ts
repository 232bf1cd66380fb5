import { readBudget, scopeOf } from '../../budget/ledger.js';
import type { PendingCreate, SettledCreate } from '../../rules/budget-state.js';
import type { SharedChanges } from '../../shared/shared-store.js';
import type { SandboxJob } from '../world/store.js';

/** What a budget in the shared store says, as of its last write. */
interface KnownBudget {
  readonly values: Record<string, string>;
  pending: ReadonlyMap<string, PendingCreate>;
  settled: ReadonlyMap<string, SettledCreate>;
  /** Keys whose reservation was given back although nobody has answered them. */
  readonly released: Set<string>;
}

/** The budgets that the processes keep in the shared store, as their writes show them. */
export class BudgetBook {
  readonly #budgets = new Map<string, KnownBudget>();

  /** Takes note of a write to the shared store. */
  observe(group: string, changes: SharedChanges, nowMs: number): void {
    const scope = scopeOf(group);
    if (scope === undefined) return;
    const budget: KnownBudget = this.#budgets.get(scope) ?? {
      values: {},
      pending: new Map(),
      settled: new Map(),
      released: new Set(),
    };
    this.#budgets.set(scope, budget);
    for (const [key, change] of Object.entries(changes)) if (change) budget.values[key] = change.value;
    const { pending, settled } = readBudget(budget.values);
    for (const [key, { lostUntilMs }] of budget.pending) {
      // A lost create stays reserved until the end of the next period. After that the budget may forget it.
      const isForgotten = lostUntilMs !== null && lostUntilMs <= nowMs;
      if (!pending.has(key) && !settled.has(key) && !isForgotten) budget.released.add(key);
    }
    for (const key of pending.keys()) budget.released.delete(key);
    Object.assign(budget, { pending, settled });
  }

  /** Says where a budget counts less for a job than the service has charged. */
  *undercounted(jobs: readonly SandboxJob[], keyOf: (jobId: string) => string | null): Generator<string> {
    for (const { id, finalTokenCost } of jobs) {
      const key = keyOf(id);
      const charged = finalTokenCost ?? 0;
      if (key === null || charged === 0) continue;
      for (const [scope, { settled, released }] of this.#budgets) {
        const counted = settled.get(key)?.tokens ?? (released.has(key) ? 0 : charged);
        if (charged > counted) {
          yield `${id} was charged ${charged} tokens, and the budget "${scope}" counts ${counted} for its key ${key}`;
        }
      }
    }
  }
}
