import * as z from 'zod/mini';
import * as option from '../options.js';

const tokens = option.must<number>(
  'a number of tokens, 0 or more',
  (value) => typeof value === 'number' && value >= 0 && value < Number.POSITIVE_INFINITY,
);

/** The options of `createBudget`. */
export const BUDGET_OPTIONS = z.strictObject({
  maxTokens: z.custom<number>(
    (value) => tokens.safeParse(value).success && value !== undefined,
    'a number of tokens, 0 or more',
  ),
  per: option.must(
    "'day', 'month', 'total' or a number of milliseconds above 0",
    (value) =>
      (typeof value === 'number' && value > 0 && value < Number.POSITIVE_INFINITY) ||
      ['day', 'month', 'total'].includes(String(value)),
  ),
  scope: option.text,
  store: option.methods('apply'),
  unknownPrice: option.must(
    "'one-at-a-time', 'refuse' or a function that estimates",
    (value) => typeof value === 'function' || value === 'one-at-a-time' || value === 'refuse',
  ),
  lowBalanceTokens: tokens,
  onLow: option.callback,
});
