import { GenError } from '../errors/index.js';
import { type BudgetPeriod, type BudgetTerms, snapshotOf } from '../rules/budget.js';
import { entryId } from '../rules/create-entry.js';
import { countsIn } from '../rules/ledger-budgets.js';
import { releaseCreate } from '../rules/ledger-owners.js';
import * as option from '../rules/options.js';
import { callObserver, reasonOf } from '../runtime/callbacks.js';
import { clockOf, systemClock } from '../runtime/clock.js';
import type { Budget, BudgetUsage, PricedCall } from '../schemas/budget.js';
import { formatKind } from '../schemas/format-value.js';
import { processStore, type Store } from '../store/store.js';
import { withLedger } from './client-ledger.js';
import { type BudgetClient, type CountingBudget, resetOf, TERMS, unresolvedKeys } from './counting-budget.js';
import { type Ledger, ledgerOf } from './ledger.js';

/** Options for {@link createBudget}. */
export interface BudgetOptions {
  /** Tokens that may be spent in each period. 1 token is 0.05 USD. */
  readonly maxTokens: number;
  /**
   * Budget period: a UTC day or month, `'total'` for no period, or milliseconds from the first create.
   * @default 'total'
   */
  readonly per?: BudgetPeriod | undefined;
  /**
   * Name of the budget, for example a tenant. In one store, budgets with the same scope and period share their tokens.
   * @default 'default'
   */
  readonly scope?: string | undefined;
  /**
   * Store of the budget: `redisStore(redis)` for several processes, `durableObjectStore(env.ACCOUNT, 'main')` for
   * Workers, or your own store.
   * @default the `store` of the client that uses the budget, or this process's memory
   */
  readonly store?: Store | undefined;
  /**
   * Policy for creates of unknown price: `one-at-a-time` makes other creates wait until the response contains the price,
   * `refuse` rejects the create. A function returns an estimate in tokens, or undefined if it has none. A learned price overrides
   * the estimate.
   * @default 'one-at-a-time'
   */
  readonly unknownPrice?: 'one-at-a-time' | 'refuse' | ((job: PricedCall) => number | undefined) | undefined;
  /** Account balance, in tokens, below which `onLow` is called. @default never */
  readonly lowBalanceTokens?: number | undefined;
  /**
   * Called when a create leaves less than `lowBalanceTokens` in the account, and again only after the balance has
   * recovered. Errors that it throws are ignored.
   */
  readonly onLow?: ((low: { readonly balanceTokens: number }) => unknown) | undefined;
}

const isTokens = (value: unknown) => typeof value === 'number' && value >= 0 && value < Number.POSITIVE_INFINITY;
const TOKENS_TEXT = 'a number of tokens, 0 or more';

const BUDGET_OPTIONS = option.optionsOf({
  maxTokens: option.required(TOKENS_TEXT, isTokens),
  per: option.must(
    "'day', 'month', 'total', or a number of milliseconds above 0",
    (value) =>
      (typeof value === 'number' && value > 0 && value < Number.POSITIVE_INFINITY) ||
      (typeof value === 'string' && ['day', 'month', 'total'].includes(value)),
  ),
  scope: option.text,
  store: option.store,
  unknownPrice: option.must(
    "'one-at-a-time', 'refuse', or a function that returns an estimate",
    (value) => typeof value === 'function' || value === 'one-at-a-time' || value === 'refuse',
  ),
  lowBalanceTokens: option.must(TOKENS_TEXT, isTokens),
  onLow: option.callback,
});

/**
 * Creates a limit on what creates can spend, for a client (`new GenClient({ budget })`), for one call
 * (`videos.create(params, { budget })`), or both. Spending exceeds the limit by at most one job: one of unknown price,
 * or the first one after a price increase. Throws a GenError for an invalid option.
 *
 * @example
 * const budget = createBudget({ maxTokens: 2_000, per: 'day' });
 * const client = new GenClient({ budget });
 */
export function createBudget(options: BudgetOptions): Budget {
  option.checkOptions('createBudget', BUDGET_OPTIONS, options);
  const { maxTokens, per = 'total', scope = 'default', store, unknownPrice } = options;
  const terms: BudgetTerms = { scope, per, maxTokens };
  const ledgerTarget = ({ store: clientStore, clock }: BudgetClient) => ({
    store: store ?? clientStore ?? processStore(clock),
    terms,
  });
  /** The client that last used the budget. */
  let lastClient: BudgetClient = { store, clock: store ? clockOf(store) : systemClock };
  const ledger = () => ledgerOf(ledgerTarget(lastClient).store, lastClient.clock);
  const budget: CountingBudget = {
    [TERMS]: {
      rejectsUnknown: unknownPrice === 'refuse',
      ledgerTarget(client) {
        lastClient = client;
        return ledgerTarget(client);
      },
      estimate: (job) => (typeof unknownPrice === 'function' ? estimateOf(unknownPrice, job) : null),
      reportLow: lowBalanceReporter(options),
    },
    usage: () => usageOf(ledger(), terms),
    async release(key) {
      const { entries } = await ledger().entries();
      for (const entry of entries.filter((it) => [it.key, it.sentKey].includes(key) && countsIn(it, terms))) {
        await ledger().awaitBriefly(ledger().record((tx) => releaseCreate(tx, entryId(entry.account, entry.key))));
      }
    },
    scoped: (newScope) => createBudget({ ...options, scope: newScope }),
  };
  return Object.freeze(withLedger(budget));
}

async function usageOf(ledger: Ledger, terms: BudgetTerms): Promise<BudgetUsage> {
  const snapshot = await ledger.transact((tx) => snapshotOf(tx.budget(terms), terms, tx.nowMs, tx.isAlive));
  const { spentTokens, reservedTokens, leftTokens } = snapshot;
  return {
    spentTokens,
    reservedTokens,
    leftTokens,
    unresolved: await unresolvedKeys(ledger, terms, snapshot),
    resetsAt: resetOf(snapshot),
  };
}

function estimateOf(estimate: (job: PricedCall) => number | undefined, job: PricedCall): number | null {
  let tokens: number | undefined;
  try {
    tokens = estimate(job);
  } catch (cause) {
    throw new GenError(`unknownPrice threw "${reasonOf(cause)}". Return undefined if it has no estimate.`, { cause });
  }
  if (tokens === undefined) return null;
  if (typeof tokens === 'number' && tokens >= 0 && tokens < Number.POSITIVE_INFINITY) return tokens;
  throw new GenError(`unknownPrice must return ${TOKENS_TEXT}, or undefined, not ${formatKind(tokens)}.`);
}

/** Returns a function that reports a low balance once, and again only after the balance has recovered. */
function lowBalanceReporter({
  lowBalanceTokens = 0,
  onLow,
}: BudgetOptions): (balanceTokens: number | undefined) => void {
  let isLow = false;
  return (balanceTokens) => {
    if (balanceTokens === undefined) return;
    const wasLow = isLow;
    isLow = balanceTokens < lowBalanceTokens;
    if (isLow && !wasLow) callObserver(() => onLow?.({ balanceTokens }));
  };
}
