import * as z from 'zod/mini';
import { GenError } from '../errors/index.js';
import { type BudgetPeriod, type BudgetTerms, snapshotOf } from '../rules/budget.js';
import { entryId } from '../rules/create-entry.js';
import { countsIn } from '../rules/ledger-budgets.js';
import { releaseCreate } from '../rules/ledger-owners.js';
import * as option from '../rules/options.js';
import { callObserver, reasonOf } from '../runtime/callbacks.js';
import { clockOf, systemClock } from '../runtime/clock.js';
import type { Budget, BudgetUsage, PricedCall } from '../schemas/budget.js';
import { mustBe } from '../schemas/show.js';
import { processStore, type Store } from '../store/store.js';
import { withLedger } from './client-ledger.js';
import { type ClientHome, type CountingBudget, resetOf, TERMS, unresolvedKeys } from './counting-budget.js';
import { type Ledger, ledgerOf } from './ledger.js';

/** Options of {@link createBudget}. */
export interface BudgetOptions {
  /** Tokens that may be spent in each period. 1 token is 0.05 USD. */
  readonly maxTokens: number;
  /**
   * Budget period: a UTC day or month, `'total'` for no period, or milliseconds from the first create.
   * @default 'total'
   */
  readonly per?: BudgetPeriod | undefined;
  /**
   * Name of the budget, such as a tenant. Budgets of one scope and period in one store share their tokens.
   * @default 'default'
   */
  readonly scope?: string | undefined;
  /**
   * Where the budget is stored: `redisStore(redis)` for many processes, `durableObjectStore(env.ACCOUNT, 'main')` for
   * Workers, or your own store.
   * @default the `store` of the client that uses the budget, otherwise the memory of this process
   */
  readonly store?: Store | undefined;
  /**
   * What happens to a create whose price is not known. `one-at-a-time`: it is sent alone, and others wait for its response,
   * which has the price. `refuse`: it is rejected. A function returns an estimate in tokens, or undefined for none. A learned
   * price counts more than an estimate.
   * @default 'one-at-a-time'
   */
  readonly unknownPrice?: 'one-at-a-time' | 'refuse' | ((job: PricedCall) => number | undefined) | undefined;
  /** Balance of the account, in tokens, below which `onLow` is called. @default never */
  readonly lowBalanceTokens?: number | undefined;
  /**
   * Called when a create leaves less than `lowBalanceTokens` on the account: once, until the balance has been higher again.
   * What it throws changes nothing.
   */
  readonly onLow?: ((low: { readonly balanceTokens: number }) => unknown) | undefined;
}

const isTokens = (value: unknown) => typeof value === 'number' && value >= 0 && value < Number.POSITIVE_INFINITY;
const TOKENS = 'a number of tokens, 0 or more';

const BUDGET_OPTIONS = z.strictObject({
  maxTokens: z.custom<number>(isTokens, TOKENS),
  per: option.must(
    "'day', 'month', 'total' or a number of milliseconds above 0",
    (value) =>
      (typeof value === 'number' && value > 0 && value < Number.POSITIVE_INFINITY) ||
      ['day', 'month', 'total'].includes(String(value)),
  ),
  scope: option.text,
  store: option.store,
  unknownPrice: option.must(
    "'one-at-a-time', 'refuse' or a function that estimates",
    (value) => typeof value === 'function' || value === 'one-at-a-time' || value === 'refuse',
  ),
  lowBalanceTokens: option.must<number>(TOKENS, isTokens),
  onLow: option.callback,
});

/**
 * Creates a limit on what creates may spend, for a client (`new GenClient({ budget })`), for one call
 * (`videos.create(params, { budget })`), or both. Its scope and its period identify it. Throws a GenError for an invalid
 * option.
 *
 * The price of a create is reserved before it is sent, settled at the service's quote, and released when the create is
 * rejected or the job ends uncharged. A create whose response was lost stays reserved until its key is answered, until
 * `release`, or until the end of the next period (a day for `'total'`). The spending exceeds the limit by at most one job:
 * one whose price was unknown, or the first one after a price has risen.
 *
 * @example
 * const budget = createBudget({ maxTokens: 2_000, per: 'day' });
 * const client = new GenClient({ budget });
 */
export function createBudget(options: BudgetOptions): Budget {
  option.checkOptions('createBudget', BUDGET_OPTIONS, options);
  const { maxTokens, per = 'total', scope = 'default', store, unknownPrice } = options;
  const terms: BudgetTerms = { scope, per, maxTokens };
  const countIn = ({ store: ofClient, clock }: ClientHome) => ({
    store: store ?? ofClient ?? processStore(clock),
    terms,
  });
  /** That of the client that used the budget last. */
  let home: ClientHome = { store, clock: store ? clockOf(store) : systemClock };
  const ledger = () => ledgerOf(countIn(home).store, home.clock);
  const budget: CountingBudget = {
    [TERMS]: {
      rejectsUnknown: unknownPrice === 'refuse',
      countIn(ofClient) {
        home = ofClient;
        return countIn(ofClient);
      },
      estimate: (job) => (typeof unknownPrice === 'function' ? estimateOf(unknownPrice, job) : null),
      reportLow: lowBalance(options),
    },
    usage: () => usageOf(ledger(), terms),
    async release(key) {
      const { entries } = await ledger().entries();
      for (const entry of entries.filter((it) => [it.key, it.sentKey].includes(key) && countsIn(it, terms))) {
        await ledger().awaitBriefly(ledger().record((tx) => releaseCreate(tx, entryId(entry.account, entry.key))));
      }
    },
    scoped: (other) => createBudget({ ...options, scope: other }),
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
    throw new GenError(`unknownPrice failed: ${reasonOf(cause)}`, { cause });
  }
  if (tokens === undefined) return null;
  if (typeof tokens === 'number' && tokens >= 0 && tokens < Number.POSITIVE_INFINITY) return tokens;
  throw new GenError(mustBe('unknownPrice()', 'a number of tokens, 0 or more, or undefined', tokens));
}

/** Reports once that the balance is below the limit, and again after it was above. */
function lowBalance({ lowBalanceTokens = 0, onLow }: BudgetOptions): (balanceTokens: number | undefined) => void {
  let isLow = false;
  return (balanceTokens) => {
    if (balanceTokens === undefined) return;
    const wasLow = isLow;
    isLow = balanceTokens < lowBalanceTokens;
    if (isLow && !wasLow) callObserver(() => onLow?.({ balanceTokens }));
  };
}
