import * as z from 'zod/mini';
import { GenError } from '../errors/index.js';
import { type BudgetPeriod, type BudgetTerms, budgetName, standingOf } from '../rules/budget.js';
import { releaseCreate } from '../rules/ledger.js';
import { entryId } from '../rules/ledger-draft.js';
import * as option from '../rules/options.js';
import { callObserver, reasonOf } from '../runtime/callbacks.js';
import { clockOf, randomOf, systemClock } from '../runtime/clock.js';
import type { Budget, BudgetUsage, PricedCall } from '../schemas/budget.js';
import { mustBe } from '../schemas/show.js';
import { processStore, type Store } from '../store/store.js';
import { withLedger } from './client-ledger.js';
import {
  ALONE,
  type ClientHome,
  type CountingBudget,
  counts,
  resetOf,
  TERMS,
  unresolvedKeys,
} from './counting-budget.js';
import { type Ledger, ledgerOf } from './ledger.js';

/** What a budget is made with. */
export interface BudgetOptions {
  /** Tokens that may be spent in each period. 1 token is 0.05 USD. */
  readonly maxTokens: number;
  /**
   * How long they last: a UTC day or month, for ever, or a number of milliseconds that begins with the first create.
   * @default 'total'
   */
  readonly per?: BudgetPeriod | undefined;
  /**
   * The name of the budget, such as a tenant. Budgets of one name in one store share their tokens, whoever makes them.
   * @default 'default' in a store; in the memory of the process, a budget that has no name counts alone
   */
  readonly scope?: string | undefined;
  /**
   * Where the budget is kept: `redisStore(redis)` for many processes, `durableObjectStore(env.ACCOUNT, 'main')` for
   * Workers, or your own store.
   * @default the `store` of the client that uses the budget, else the memory of this process
   */
  readonly store?: Store | undefined;
  /**
   * What happens to a create whose price is not learned. `one-at-a-time`: it goes alone, and others wait for its answer,
   * which tells the price. `refuse`: it is refused. A function estimates the tokens; undefined means unknown, and goes one
   * at a time. A learned price counts more than the estimate.
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
 * Makes a limit on what creates may spend, for a client (`new GenClient({ budget })`), for one call
 * (`videos.create(params, { budget })`), or both.
 *
 * What a create may cost is reserved before it is sent, under its idempotency key, settled at the service's quote, and given
 * back when the create is refused or the job ends uncharged. A create whose answer is lost stays reserved until its key is
 * answered, until `release`, or until the end of the next period (a day for `'total'`). The spending passes the limit by at
 * most one job: one with a price never seen, or the first one after a price has risen.
 *
 * A budget is known by its scope and its period. Throws a GenError for an option that cannot be right.
 *
 * @example
 * const budget = createBudget({ maxTokens: 2_000, per: 'day' });
 * const client = new GenClient({ budget });
 */
export function createBudget(options: BudgetOptions): Budget {
  option.checkOptions('createBudget', BUDGET_OPTIONS, options);
  const { maxTokens, per = 'total', store, unknownPrice } = options;
  // Without a store and a name, a budget counts alone. Its name is made when it is used: a Worker draws no random numbers
  // while its module loads.
  let alone: string | undefined;
  const ownName = () => {
    alone ??= `${ALONE}${randomOf(systemClock).uuid()}`;
    return alone;
  };
  const countIn = ({ store: given, clock }: ClientHome) => {
    const kept = store ?? given;
    const terms: BudgetTerms = { scope: options.scope ?? (kept ? 'default' : ownName()), per, maxTokens };
    return { store: kept ?? processStore('creates', clock), terms };
  };
  /** That of the client that used the budget last. */
  let home: ClientHome = { store, clock: store ? clockOf(store) : systemClock };
  const counted = () => {
    const { store: kept, terms } = countIn(home);
    return { ledger: ledgerOf(kept, home.clock), terms };
  };
  const budget: CountingBudget = {
    [TERMS]: {
      refusesUnknown: unknownPrice === 'refuse',
      countIn(given) {
        home = given;
        return countIn(given);
      },
      guess: (job) => (typeof unknownPrice === 'function' ? guess(unknownPrice, job) : null),
      reportLow: lowBalance(options),
    },
    async usage() {
      const { ledger, terms } = counted();
      return usageOf(ledger, terms);
    },
    async release(key) {
      const { ledger, terms } = counted();
      const { entries } = await ledger.entries();
      for (const entry of entries.filter((it) => [it.key, it.sentKey].includes(key) && counts(it, terms))) {
        await ledger.note((draft) => releaseCreate(draft, entryId(entry.account, entry.key)));
      }
    },
    scoped: (other) => createBudget({ ...options, scope: other }),
  };
  return Object.freeze(withLedger(budget));
}

async function usageOf(ledger: Ledger, terms: BudgetTerms): Promise<BudgetUsage> {
  const standing = await ledger.ask((draft) =>
    standingOf(draft.budget(budgetName(terms)), terms, draft.nowMs, draft.isAlive),
  );
  const { spentTokens, reservedTokens, leftTokens } = standing;
  return {
    spentTokens,
    reservedTokens,
    leftTokens,
    unresolved: await unresolvedKeys(ledger, terms, standing),
    resetsAt: resetOf(standing),
  };
}

function guess(estimate: (job: PricedCall) => number | undefined, job: PricedCall): number | null {
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

/** Reports once that the balance falls under the limit, and again after it was above. */
function lowBalance({ lowBalanceTokens = 0, onLow }: BudgetOptions): (balanceTokens: number | undefined) => void {
  let isLow = false;
  return (balanceTokens) => {
    if (balanceTokens === undefined) return;
    const wasLow = isLow;
    isLow = balanceTokens < lowBalanceTokens;
    if (isLow && !wasLow) callObserver(() => onLow?.({ balanceTokens }));
  };
}
