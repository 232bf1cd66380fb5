import * as z from 'zod/mini';
import { BudgetExceededError } from '../errors/client-errors.js';
import { GenError } from '../errors/index.js';
import type { BudgetPeriod, BudgetReply, BudgetScope, ReserveStep } from '../rules/budget-state.js';
import { outcomeUnderKey } from '../rules/fate.js';
import * as option from '../rules/options.js';
import { callObserver, reasonOf } from '../runtime/callbacks.js';
import { type Clock, clockOf, randomOf, systemClock } from '../runtime/clock.js';
import type { Budget, BudgetOrder, PricedCall } from '../schemas/budget.js';
import { mustBe } from '../schemas/show.js';
import { memoryStoreOn, type Store } from '../store/store.js';
import { homeOf, processStore } from './home.js';

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
   * @default 'default' with `store`; without it, a budget that has no name counts alone
   */
  readonly scope?: string | undefined;
  /**
   * Where the budget is kept: `redisStore(redis)` for many processes, `durableObjectStore(env.ACCOUNT, 'main')` for
   * Workers, or your own store.
   * @default the memory of this process
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

/** How a budget stands. */
export interface BudgetUsage {
  /** Tokens of creates that were answered in this period. */
  readonly spentTokens: number;
  /** Tokens of creates that are in flight, or whose answer was lost. One of an unknown price reserves all that is left. */
  readonly reservedTokens: number;
  /** Tokens that are left; 0 where the limit is passed. */
  readonly leftTokens: number;
  /** How many creates have lost their answer. Send them again under their keys, or call `release`. */
  readonly unresolved: number;
  /** ISO timestamp at which the next period begins; null without one. */
  readonly resetsAt: string | null;
}

/** A budget that shows how it stands. */
export interface SpendingBudget extends Budget {
  /** How the budget stands now. Rejects where its store does not answer. */
  usage(): Promise<BudgetUsage>;
  /**
   * Gives back what is reserved for a create whose answer was lost. Call it when you know that the service has made no job
   * under the key, which the error names as `idempotencyKey`. It does not free a create that is in flight. Rejects where the
   * store does not answer.
   */
  release(idempotencyKey: string): Promise<void>;
}

/** How long a create waits at most while nobody of its queue gets a turn. */
const PATIENCE_MS = 60_000;
/**
 * Makes a limit on what creates may spend, for a client (`new GenClient({ budget })`), for one call
 * (`videos.create(params, { budget })`), or both.
 *
 * What a create may cost is reserved before it is sent, under its idempotency key, settled at the service's quote, and given
 * back when the create is refused or the job ends uncharged. A create whose answer is lost stays reserved until its key is
 * answered, until `release`, or until the end of the next period (a day for `'total'`). The spending passes the limit by at
 * most one job: one with a price never seen, or the first one after a price has risen.
 *
 * Throws a GenError for an option that cannot be right.
 *
 * @example
 * const budget = createBudget({ maxTokens: 2_000, per: 'day' });
 * const client = new GenClient({ budget });
 */
export function createBudget(options: BudgetOptions): SpendingBudget {
  option.checkOptions('createBudget', BUDGET_OPTIONS, options);
  const { maxTokens, per = 'total', scope: given, store } = options;
  const name = given ?? 'default';
  const scope: BudgetScope = { maxTokens, per };
  const reportLow = lowBalance(options);
  const own: Store | undefined = store ?? (given === undefined ? memoryStoreOn(systemClock) : undefined);
  /** The clock of the client that used the budget last. */
  let clock: Clock = store ? clockOf(store) : systemClock;
  const home = () => homeOf(own ?? processStore(clock));
  const account = () => home().account(name, clock);
  return {
    async reserve(order) {
      clock = order.clock ?? clock;
      const [at, time] = [home(), clock];
      const queue = at.account(name, time);
      const holder = randomOf(time).uuid();
      const step = reserveStep(order, holder, options);
      const { idempotencyKey, priceClass, signal, timeoutMs = PATIENCE_MS, isSent = () => true } = order;
      const reply = await queue.reserve({ scope, step }, { signal, timeoutMs, isSent });
      if (reply.outcome !== 'reserved' && reply.outcome !== 'held') {
        throw budgetRefusal(name, maxTokens, reply, step.refusesUnknown);
      }
      const key = reply.heldKey ?? idempotencyKey;
      return {
        async answered({ jobId, quotedTokens = null, balanceTokens, isUncharged }) {
          queue.ended(holder);
          reportLow(balanceTokens);
          const { teaches } = step;
          const settle = { op: 'settle', key, jobId, priceClass, teaches, quotedTokens, isUncharged } as const;
          const settled = queue.change({ scope, step: settle }).then((after) => {
            if (after?.outcome === 'unpriced') order.warn?.(unpriced(jobId));
          });
          await at.soon(Promise.all([at.note(jobId, [name, key, per], time), settled]), time);
        },
        async failed({ error, wasSent, derivedKey }) {
          queue.ended(holder);
          const fate = wasSent ? outcomeUnderKey(error) : 'unsent';
          await at.soon(queue.change({ scope, step: { op: 'fail', key, holder, fate, derivedKey } }), time);
        },
      };
    },
    async refund(jobId, chargedTokens, given) {
      clock = given ?? clock;
      const at = home();
      await at.soon(at.charge(jobId, chargedTokens, clock), clock);
    },
    async usage() {
      return usageOf(await account().look(scope));
    },
    async release(key) {
      // A change is repeated until the store has it. A look says at once that the store is away.
      await account().look(scope);
      await account().change({ scope, step: { op: 'release', key } });
    },
    scoped: (other) => createBudget({ ...options, ...(own && { store: own }), scope: other }),
  };
}

function reserveStep(order: BudgetOrder, holder: string, options: BudgetOptions): ReserveStep {
  const { idempotencyKey: key, priceClass, isFixedPrice, learnedTokens, job } = order;
  const { unknownPrice = 'one-at-a-time' } = options;
  return {
    op: 'reserve',
    key,
    holder,
    priceClass,
    teaches: isFixedPrice,
    knownTokens: learnedTokens ?? null,
    guessedTokens: typeof unknownPrice === 'function' ? guess(unknownPrice, job) : null,
    refusesUnknown: unknownPrice === 'refuse',
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

function unpriced(jobId: string): string {
  return `the answer to the create of job ${jobId} has no price, so a budget cannot count it and refuses creates of unknown prices until the job has ended and is read, or its period ends`;
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

function usageOf({ spentTokens, reservedTokens, leftTokens, endMs, unresolved }: BudgetReply): BudgetUsage {
  const resetsAt = endMs === null ? null : new Date(endMs).toISOString();
  return { spentTokens, reservedTokens, leftTokens, unresolved, resetsAt };
}

/** The error of a create that does not fit into the budget, or whose price is unknown. */
function budgetRefusal(
  name: string,
  maxTokens: number,
  reply: BudgetReply,
  refusesUnknown: boolean,
): BudgetExceededError {
  const { leftTokens, resetsAt, unresolved } = usageOf(reply);
  const [why, ...advice] = explanation(reply, refusesUnknown);
  const estimateTokens = reply.tokens ?? undefined;
  const cost = estimateTokens === undefined ? 'a create of unknown price' : `a create of ${estimateTokens} tokens`;
  const lost = unresolved === 1 ? '1 create has lost its answer' : `${unresolved} creates have lost their answers`;
  const message = [
    `The budget "${name}" has ${leftTokens} of ${maxTokens} tokens left${why}, so ${cost} was not sent.`,
    ...(resetsAt === null ? [] : [`The next period begins at ${resetsAt}.`]),
    ...(unresolved === 0 ? [] : [`${lost}: send it again under its key, or call budget.release(key).`]),
    ...advice,
  ].join(' ');
  return new BudgetExceededError(message, { estimateTokens, leftTokens, resetsAt, scope: name });
}

function explanation({ outcome }: BudgetReply, refusesUnknown: boolean): readonly [why: string, ...advice: string[]] {
  if (outcome !== 'unknown') return [''];
  if (refusesUnknown)
    return [' and refuses unknown prices', "Let unknownPrice estimate, or set it to 'one-at-a-time'."];
  return [
    ' and contains a create whose price is not known yet',
    'Read its job when it has ended, or let unknownPrice estimate.',
  ];
}
