import type { BudgetReply, BudgetStore } from '../budget/budget-store.js';
import type { Clock } from '../clock.js';
import { GenError } from '../errors/gen-error.js';
import { checkOptions } from '../options.js';
import { type RedisClient, redisScript } from '../redis-client.js';
import { BUDGET_KEYS, BUDGET_SCRIPT } from './budget-script.js';
import { REDIS_BUDGET_OPTIONS } from './redis-budget-options.js';

/** What a {@link redisBudget} is made with. */
export interface RedisBudgetOptions {
  /** Put before each key. Use one for each account of the service, because prices are learned by it. @default 'gen-client:budget:' */
  readonly prefix?: string | undefined;
}

/** Only for tests: the clock that periods go by, in place of the Redis server's. */
const CLOCK: unique symbol = Symbol.for('gen-client.clock');

const OUTCOMES: readonly string[] = [
  'reserved',
  'held',
  'wait',
  'refused',
  'unknown',
  'done',
] satisfies readonly BudgetReply['outcome'][];

/**
 * Keeps the budgets of any number of processes in one Redis (5 or later): the `store` of `createBudget`. Takes a connected
 * client of `ioredis`, `redis` (node-redis) or `@upstash/redis`. Each step is one Lua script, and time is the Redis server's
 * own. While Redis is away, creates reject and nothing is sent. Redis must keep what it has written, and must not evict it.
 *
 * Throws a {@link GenError} for a client of no known shape.
 *
 * @example
 * const budget = createBudget({ maxTokens: 2_000, per: 'day', scope: 'tenant-7', store: redisBudget(redis) });
 */
export function redisBudget(
  client: RedisClient,
  options: RedisBudgetOptions & { readonly [CLOCK]?: Clock } = {},
): BudgetStore {
  checkOptions('redisBudget', REDIS_BUDGET_OPTIONS, options);
  const { prefix = 'gen-client:budget:', [CLOCK]: clock } = options;
  const run = redisScript(client, BUDGET_SCRIPT);
  return {
    async apply(scope, step) {
      // In a cluster the keys of one budget have to be together.
      const keys = BUDGET_KEYS.map((part) => `${prefix}{${scope.name}}:${part}`);
      const reply = await run(keys, [clock?.now() ?? '', JSON.stringify(scope), JSON.stringify(step)]);
      return replyIn(reply);
    },
  };
}

/** Some clients turn what looks like a number into one. */
function replyIn(reply: unknown): BudgetReply {
  const [outcome, ...figures] = Array.isArray(reply) ? reply : [];
  const isOutcome = (value: unknown): value is BudgetReply['outcome'] => OUTCOMES.includes(String(value));
  if (!isOutcome(outcome))
    throw new GenError('Redis gave an answer that is not a budget. Does the client change replies?');
  const [tokens, spentTokens, reservedTokens, startMs, endMs] = figures.map((value) =>
    value === '' || value === null ? null : Number(value),
  );
  return {
    outcome,
    tokens: tokens ?? null,
    spentTokens: spentTokens ?? 0,
    reservedTokens: reservedTokens ?? 0,
    startMs: startMs ?? 0,
    endMs: endMs ?? null,
  };
}
