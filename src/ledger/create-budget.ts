// Budgets: what a user makes, and what the calls of a client need of one, whichever copy of the package made it.
import * as z from 'zod/mini';
import { BudgetExceededError } from '../errors/client-errors.js';
import { GenError } from '../errors/index.js';
import { type BudgetPeriod, type BudgetStanding, type BudgetTerms, budgetName, standingOf } from '../rules/budget.js';
import { type BudgetRefused, releaseCreate } from '../rules/ledger.js';
import { type CreateEntry, entryId } from '../rules/ledger-draft.js';
import { isUnresolved } from '../rules/ledger-shares.js';
import * as option from '../rules/options.js';
import { callObserver, reasonOf } from '../runtime/callbacks.js';
import { type Clock, clockOf, randomOf, systemClock } from '../runtime/clock.js';
import type { Budget, BudgetUsage, PricedCall } from '../schemas/budget.js';
import { mustBe } from '../schemas/show.js';
import { processStore, type Store } from '../store/store.js';
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
  store: option.methods('read', 'write'),
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
  return Object.freeze(budget);
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

/** The name under which a budget shows its terms to the calls that it counts, whichever copy of the package made it. */
const TERMS: unique symbol = Symbol.for('gen-client.budget');

export interface ClientHome {
  readonly store: Store | undefined;
  readonly clock: Clock;
}

interface CountingBudget extends Budget {
  readonly [TERMS]: {
    readonly refusesUnknown: boolean;
    /** The store that a client's creates count in, which is the client's or the process's where the budget has none. */
    countIn(home: ClientHome): { readonly store: Store; readonly terms: BudgetTerms };
    /** What the user estimates; null for no estimate. */
    guess(job: PricedCall): number | null;
    reportLow(balanceTokens: number | undefined): void;
  };
}

export function countingOf(budget: Budget): CountingBudget[typeof TERMS] {
  return (budget as CountingBudget)[TERMS];
}

/** What the scope of a budget without a name begins with. */
const ALONE = 'default#';

function shownScope(scope: string): string {
  return scope.startsWith(ALONE) ? 'default' : scope;
}

export function counts({ budgets }: CreateEntry, terms: BudgetTerms): boolean {
  return budgets.some((budget) => budgetName(budget) === budgetName(terms));
}

/** The keys of the creates that hold tokens without that anybody works on them. */
async function unresolvedKeys(ledger: Ledger, terms: BudgetTerms, { lost }: BudgetStanding): Promise<string[]> {
  if (lost.creates === 0) return [];
  const { entries, ...at } = await ledger.recentEntries();
  return entries.filter((it) => counts(it, terms) && isUnresolved(it, terms, at)).map(({ sentKey }) => sentKey);
}

function resetOf({ endMs }: BudgetStanding): string | null {
  return endMs === null ? null : new Date(endMs).toISOString();
}

export async function budgetRefusal(ledger: Ledger, refused: BudgetRefused): Promise<BudgetExceededError> {
  const { outcome, budget, standing, tokens } = refused;
  const scope = shownScope(budget.scope);
  const cost = tokens === null ? 'a create of unknown price' : `a create of ${tokens} tokens`;
  const [leftTokens, resetsAt] = [standing.leftTokens, resetOf(standing)];
  const details = { estimateTokens: tokens ?? undefined, leftTokens, resetsAt, scope };
  const state = `The budget "${scope}" has ${leftTokens} of ${budget.maxTokens} tokens left`;
  if (outcome === 'unpriced') {
    const advice = "Let unknownPrice estimate, or set it to 'one-at-a-time'.";
    const message = `${state} and refuses unknown prices, so ${cost} was not sent. ${advice}`;
    return new BudgetExceededError(message, { ...details, reason: 'spent' });
  }
  if (outcome === 'spent') {
    const next = resetsAt === null ? '' : ` The next period begins at ${resetsAt}.`;
    return new BudgetExceededError(`${state}, so ${cost} was not sent.${next}`, { ...details, reason: 'spent' });
  }
  const keys = await unresolvedKeys(ledger, budget, standing).catch(() => []);
  const shown = keys.slice(0, 3).join(', ') + (keys.length > 3 ? ` and ${keys.length - 3} more` : '');
  const advice = `Send them again under their keys, or call budget.release(key)${shown === '' ? '' : `: ${shown}`}.`;
  const message = `${state} while creates have no answer or no price yet, so ${cost} was not sent. ${advice}`;
  return new BudgetExceededError(message, { ...details, reason: 'unresolved' });
}
