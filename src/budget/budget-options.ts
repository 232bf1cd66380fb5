import * as z from 'zod/mini';
import * as option from '../options.js';
import type { BudgetPeriod } from '../rules/budget-period.js';
import type { PricedCall } from '../schemas/budget.js';
import type { SharedStore } from '../shared/shared-store.js';

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
   * @default 'default' with `shared`; without it, a budget that has no name counts alone
   */
  readonly scope?: string | undefined;
  /**
   * Where the budget is kept: `redisShared(redis)` for many processes, `durableObjectShared(env.ACCOUNT, 'main')` for
   * Workers, or your own store.
   * @default the memory of this process
   */
  readonly shared?: SharedStore | undefined;
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

/** The options of `createBudget`. */
export const BUDGET_OPTIONS = z.strictObject({
  maxTokens: z.custom<number>(isTokens, TOKENS),
  per: option.must(
    "'day', 'month', 'total' or a number of milliseconds above 0",
    (value) =>
      (typeof value === 'number' && value > 0 && value < Number.POSITIVE_INFINITY) ||
      ['day', 'month', 'total'].includes(String(value)),
  ),
  scope: option.text,
  shared: option.methods('read', 'write'),
  unknownPrice: option.must(
    "'one-at-a-time', 'refuse' or a function that estimates",
    (value) => typeof value === 'function' || value === 'one-at-a-time' || value === 'refuse',
  ),
  lowBalanceTokens: option.must<number>(TOKENS, isTokens),
  onLow: option.callback,
});
