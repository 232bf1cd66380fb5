import { callObserver, reasonOf } from '../callbacks.js';
import { sleep, systemClock } from '../clock.js';
import { BudgetExceededError } from '../errors/budget-error.js';
import { APIError, ConnectionError, documentedStatus, GenError } from '../errors/index.js';
import { checkOptions } from '../options.js';
import type {
  Budget,
  BudgetOrder,
  BudgetReservation,
  FailedCreate,
  PricedCall,
  SpentTokens,
} from '../schemas/budget.js';
import { mustBe } from '../schemas/show.js';
import { BUDGET_OPTIONS } from './budget-options.js';
import type { BudgetPeriod, BudgetReply, BudgetScope, BudgetStep, BudgetStore } from './budget-store.js';
import { memoryBudget } from './memory-budget.js';

/** What a budget is made with. */
export interface BudgetOptions {
  /** Tokens that may be spent in each period. 1 token is 0.05 USD (spec: Billing). */
  readonly maxTokens: number;
  /**
   * How long they last: a UTC day or month, for ever, or a number of milliseconds that begins with the first create.
   * @default 'total'
   */
  readonly per?: BudgetPeriod | undefined;
  /** The name of the budget in its store, such as a tenant. Budgets of one name share their tokens. @default 'default' */
  readonly scope?: string | undefined;
  /**
   * Where the budget is kept: `redisBudget(redis)` for several processes, `durableObjectBudget(env.ACCOUNT, 'main')` for
   * Workers.
   * @default the memory of this budget alone
   */
  readonly store?: BudgetStore | undefined;
  /**
   * What happens to a create whose price is not learned yet. `one-at-a-time`: creates of unknown prices go one after the
   * other, so that each tells its price. `refuse`: they are refused. A function estimates the tokens; undefined means
   * unknown, and goes one at a time. A price that was quoted counts more than the estimate.
   * @default 'one-at-a-time'
   */
  readonly unknownPrice?: 'one-at-a-time' | 'refuse' | ((job: PricedCall) => number | undefined) | undefined;
  /** Balance of the account, in tokens, under which `onLow` is called. @default never */
  readonly lowBalanceTokens?: number | undefined;
  /**
   * Called when a create leaves less than `lowBalanceTokens` on the account: once until the balance has been higher again.
   * It only observes.
   */
  readonly onLow?: ((low: { readonly balanceTokens: number }) => unknown) | undefined;
}

/** How a budget stands. */
export interface BudgetUsage {
  /** Tokens of creates that were answered. */
  readonly spentTokens: number;
  /** Tokens of creates that have not been answered, or whose answer was lost. */
  readonly reservedTokens: number;
  /** Tokens that are left; 0 where the limit is passed. */
  readonly leftTokens: number;
  /** ISO timestamp at which the next period begins; null without one. */
  readonly resetsAt: string | null;
}

/** A budget that tells how it stands. */
export interface SpendingBudget extends Budget {
  /** How the budget stands now. */
  usage(): Promise<BudgetUsage>;
}

/** How long a create may take before its answer counts as lost. */
const LEASE_MS = 30_000;
const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 250;
/** How often a change of the store is tried before the call goes on, and how long after the first failure. */
const TRIES = 4;
const RETRY_MS = 250;
/** Changes that wait until the store is back. More of them are dropped: their reservations stay until the period ends. */
const MOST_MISSED = 10_000;
/** A job that was created so long before the period, by the service's clock, belongs to the one before. */
const CLOCK_SKEW_MS = 300_000;

/**
 * Makes a limit on what creates may spend, for a client (`new GenClient({ budget })`), for one call
 * (`videos.create(params, { budget })`), or both.
 *
 * What a create may cost is reserved before it is sent, under its idempotency key, settled at the service's quote, and given
 * back when the create is refused or the job ends uncharged. A create whose answer is lost keeps its reservation until its
 * key is resolved or the period ends. The spending passes the limit by one job of a price that was never seen at most.
 *
 * Throws a GenError for an option that cannot be right.
 *
 * @example
 * const budget = createBudget({ maxTokens: 2_000, per: 'day' });
 * const client = new GenClient({ budget });
 */
export function createBudget(options: BudgetOptions): SpendingBudget {
  checkOptions('createBudget', BUDGET_OPTIONS, options);
  const { maxTokens, per = 'total', scope: name = 'default', store = memoryBudget() } = options;
  const scope: BudgetScope = { name, maxTokens, per };
  const account = openAccount(store, scope);
  const tellLow = lowBalance(options);
  return {
    async reserve(order) {
      const holder = crypto.randomUUID();
      const reply = await admitted({ order, holder, scope, options, account });
      return reservation({ order, holder, reply, account, tellLow });
    },
    async refund(jobId) {
      await account.change({ op: 'refund', jobId });
    },
    async usage() {
      return usageOf(scope, await account.ask({ op: 'look' }));
    },
  };
}

interface Admission {
  readonly order: BudgetOrder;
  readonly holder: string;
  readonly scope: BudgetScope;
  readonly options: BudgetOptions;
  readonly account: BudgetAccount;
}

/** Waits until the create may be sent. Throws a BudgetExceededError where it must not. */
async function admitted({ order, holder, scope, options, account }: Admission): Promise<BudgetReply> {
  const { idempotencyKey: key, priceClass, job, signal } = order;
  const { unknownPrice = 'one-at-a-time' } = options;
  const guessedTokens = typeof unknownPrice === 'function' ? guess(unknownPrice, job) : null;
  const refusesUnknown = unknownPrice === 'refuse';
  let pauseMs = FIRST_PAUSE_MS;
  for (;;) {
    signal?.throwIfAborted();
    const step = { op: 'reserve', key, holder, priceClass, guessedTokens, refusesUnknown, leaseMs: LEASE_MS } as const;
    const reply = await account.ask(step).catch((cause: unknown) => {
      // A connection failure, so that a queue tries the create again.
      const message = `The store of the budget did not answer, so the create was not sent (${reasonOf(cause)})`;
      throw new ConnectionError(message, { idempotencyKey: key, attempts: 0, cause });
    });
    if (reply.outcome === 'reserved' || reply.outcome === 'held') return reply;
    if (reply.outcome !== 'wait') throw refusal(scope, reply);
    await sleep(systemClock, pauseMs, signal);
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
  }
}

function guess(estimate: (job: PricedCall) => number | undefined, job: PricedCall): number | null {
  const tokens = estimate(job);
  if (tokens === undefined) return null;
  if (typeof tokens === 'number' && tokens >= 0 && tokens < Number.POSITIVE_INFINITY) return tokens;
  throw new GenError(mustBe('unknownPrice()', 'a number of tokens, 0 or more, or undefined', tokens));
}

interface Reserved {
  readonly order: BudgetOrder;
  readonly holder: string;
  readonly reply: BudgetReply;
  readonly account: BudgetAccount;
  readonly tellLow: (balanceTokens: number | undefined) => void;
}

function reservation({ order, holder, reply, account, tellLow }: Reserved): BudgetReservation {
  const { idempotencyKey: key, priceClass } = order;
  return {
    async answered({ jobId, quotedTokens, balanceTokens, createdAt, isUncharged }: SpentTokens) {
      tellLow(balanceTokens);
      const quoted = quotedTokens ?? null;
      const tokens = isUncharged ? 0 : quoted;
      const isEarlier = Date.parse(createdAt ?? '') < reply.startMs - CLOCK_SKEW_MS;
      await account.change({ op: 'settle', key, jobId, priceClass, tokens, quotedTokens: quoted, isEarlier });
    },
    async failed(failure) {
      const fate = fateOf(failure);
      const step: BudgetStep =
        fate === 'lost' ? { op: 'keep', key } : { op: 'release', key, holder: fate === 'refused' ? null : holder };
      await account.change(step);
    },
  };
}

/** Refusals that come before the service looks at the key, so that they say nothing of an earlier attempt. */
const BEFORE_THE_KEY: readonly number[] = [401, 403, 429];
/** Refusals after which the job may exist or be on its way. */
const UNCLEAR: readonly number[] = [408, 409, 425];

/** What a failed create means: `refused` for its key, `unsent` for this call only, or `lost`. */
function fateOf({ error, wasSent, wasRetried }: FailedCreate): 'refused' | 'unsent' | 'lost' {
  if (!wasSent) return 'unsent';
  if (!APIError.isInstance(error)) return 'lost';
  const status = documentedStatus(error);
  if (error.code === 'character_pending') return 'refused';
  if (error.code === 'dispatch_disabled' || BEFORE_THE_KEY.includes(status)) return wasRetried ? 'lost' : 'unsent';
  return status < 400 || status >= 500 || UNCLEAR.includes(status) ? 'lost' : 'refused';
}

/** The budget in its store. */
interface BudgetAccount {
  /** Makes a step whose answer counts. Rejects where the store does. */
  ask(step: BudgetStep): Promise<BudgetReply>;
  /** Makes a change about a create that is over: what the store fails with must not hide a job that is paid for. */
  change(step: BudgetStep): Promise<void>;
}

/** A change that the store has missed is made up for before the next step. Each may be made twice. */
function openAccount(store: BudgetStore, scope: BudgetScope): BudgetAccount {
  const missed: BudgetStep[] = [];
  const miss = (steps: readonly BudgetStep[]) => {
    missed.push(...steps.slice(0, MOST_MISSED - missed.length));
  };
  const ask = async (step: BudgetStep) => {
    const steps = missed.splice(0);
    for (const [at, one] of steps.entries()) {
      try {
        await store.apply(scope, one);
      } catch (error) {
        miss(steps.slice(at));
        throw error;
      }
    }
    return store.apply(scope, step);
  };
  return {
    ask,
    async change(step) {
      for (let failures = 0; failures < TRIES; failures++) {
        if (failures > 0) await sleep(systemClock, RETRY_MS * 2 ** (failures - 1));
        try {
          await ask(step);
          return;
        } catch {
          // Tried again.
        }
      }
      miss([step]);
    },
  };
}

/** Tells once when the balance falls under the limit, and again after it was above. */
function lowBalance({ lowBalanceTokens = 0, onLow }: BudgetOptions): (balanceTokens: number | undefined) => void {
  let isLow = false;
  return (balanceTokens) => {
    if (balanceTokens === undefined) return;
    const wasLow = isLow;
    isLow = balanceTokens < lowBalanceTokens;
    if (isLow && !wasLow) callObserver(() => onLow?.({ balanceTokens }));
  };
}

function usageOf({ maxTokens }: BudgetScope, { spentTokens, reservedTokens, endMs }: BudgetReply): BudgetUsage {
  return {
    spentTokens,
    reservedTokens,
    leftTokens: Math.max(0, maxTokens - spentTokens - reservedTokens),
    resetsAt: endMs === null ? null : new Date(endMs).toISOString(),
  };
}

function refusal(scope: BudgetScope, reply: BudgetReply): BudgetExceededError {
  const { leftTokens, resetsAt } = usageOf(scope, reply);
  const estimateTokens = reply.tokens ?? undefined;
  const budget = `The budget "${scope.name}" has ${leftTokens} of ${scope.maxTokens} tokens left`;
  const cost = estimateTokens === undefined ? 'a create of unknown price' : `a create of ${estimateTokens} tokens`;
  const why = reply.outcome === 'unknown' ? `${budget} and refuses unknown prices` : budget;
  const until = resetsAt === null ? '' : ` The next period begins at ${resetsAt}.`;
  const advice = reply.outcome === 'unknown' ? " Let unknownPrice estimate, or set it to 'one-at-a-time'." : '';
  const message = `${why}, so ${cost} was not sent.${until}${advice}`;
  return new BudgetExceededError(message, { estimateTokens, leftTokens, resetsAt, scope: scope.name });
}
