import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { applyBudgetStep, type BudgetState, emptyBudget } from '../../src/budget/budget-state.js';
import { BudgetExceededError, createBudget } from '../../src/index.js';
import { type RedisClient, redisBudget } from '../../src/redis/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { type RealRedis, startCluster, startRedis, whyNoRedis } from '../redis/real-redis.js';
import { startUpstash } from '../redis/upstash-bridge.js';
import { randomSteps } from './random-steps.js';

const VIDEO = { prompt: 'a fox at dawn', duration: 4 } as const;
/** The option by which a budget in Redis takes its time from elsewhere. */
const CLOCK = Symbol.for('gen-client.clock');

describe.skipIf(whyNoRedis())('a budget in Redis', () => {
  let redis: RealRedis;
  let cluster: Awaited<ReturnType<typeof startCluster>>;
  let upstash: Awaited<ReturnType<typeof startUpstash>>;
  beforeAll(async () => {
    redis = await startRedis();
    cluster = await startCluster();
    upstash = await startUpstash(redis.ioredis);
  });
  afterAll(async () => {
    upstash.close();
    await cluster.close();
    await redis.close();
  });
  beforeEach(async () => {
    await redis.ioredis.flushall();
    await cluster.flush();
  });

  const clients: Record<string, () => RedisClient> = {
    ioredis: () => redis.ioredis,
    'node-redis': () => redis.nodeRedis,
    'a cluster by ioredis': () => cluster.ioredis,
    'a cluster by node-redis': () => cluster.nodeRedis,
    '@upstash/redis': () => upstash.client(),
    '@upstash/redis that leaves replies alone': () => upstash.client({ automaticDeserialization: false }),
  };

  test.each(Object.keys(clients))('holds over %s, and is shared by all who name it', async (kind) => {
    const client = clients[kind]?.();
    if (!client) throw new Error('no client');
    const sandbox = createSandbox({ prices: 10.5, limits: 'off' });
    const budgetOf = (scope: string) => createBudget({ maxTokens: 35, per: 'day', scope, store: redisBudget(client) });
    const [one, two, other] = ['tenant "7"', 'tenant "7"', 'tenant-8'].map(budgetOf);
    if (!one || !two || !other) throw new Error('no budget');
    const calls = Array.from({ length: 10 }, (_, at) =>
      sandbox.client({ budget: at % 2 === 0 ? one : two }).videos.create(VIDEO),
    );
    const refusals = (await Promise.allSettled(calls)).filter(({ status }) => status === 'rejected');
    expect(refusals).toHaveLength(7);
    expect(refusals.every((it) => it.status === 'rejected' && BudgetExceededError.isInstance(it.reason))).toBe(true);
    expect(await two.usage()).toMatchObject({ spentTokens: 31.5, reservedTokens: 0, leftTokens: 3.5 });
    const tomorrow = new Date(Math.floor(Date.now() / 86_400_000 + 1) * 86_400_000).toISOString();
    expect(await two.usage()).toMatchObject({ resetsAt: tomorrow });
    expect(await other.usage()).toMatchObject({ spentTokens: 0 });
  });

  test.each([1, 2, 3, 4, 5, 6])(
    'follows the same rules as the one in memory, in any order of steps (seed %i)',
    async (seed) => {
      const { scope, steps } = randomSteps(seed);
      const state: BudgetState = emptyBudget();
      let time = 0;
      const store = redisBudget(redis.ioredis, { [CLOCK]: { now: () => time, after: () => () => {} } } as object);
      for (const [count, { step, nowMs }] of steps.entries()) {
        time = nowMs;
        const expected = applyBudgetStep(state, { scope, step, nowMs });
        expect({ count, step, ...(await store.apply(scope, step)) }).toEqual({ count, step, ...expected });
      }
    },
  );

  test('knows every month of four centuries', async () => {
    let nowMs = 0;
    const store = redisBudget(redis.ioredis, { [CLOCK]: { now: () => nowMs, after: () => () => {} } } as object);
    const months = Array.from({ length: 250 }, (_, at) => Date.UTC(1999, at * 19 + 1));
    for (const first of months) {
      for (const offset of [-1, 0, 1]) {
        nowMs = first + offset;
        const scope = { name: `m-${nowMs}`, maxTokens: 1, per: 'month' } as const;
        const { startMs, endMs } = await store.apply(scope, { op: 'look' });
        const now = new Date(nowMs);
        const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()];
        expect([startMs, endMs]).toEqual([Date.UTC(year, month), Date.UTC(year, month + 1)]);
      }
    }
  });

  test('sends nothing while Redis is away, and goes on when it is back', async () => {
    const own = await startRedis({ keeps: true });
    try {
      const sandbox = createSandbox({ prices: 10, limits: 'off' });
      const budget = createBudget({ maxTokens: 25, store: redisBudget(own.nodeRedis) });
      const client = sandbox.client({ budget });
      await client.videos.create(VIDEO);
      const restarted = own.restart();
      const settled = await Promise.allSettled(Array.from({ length: 5 }, () => client.videos.create(VIDEO)));
      await restarted;
      const made = settled.filter(({ status }) => status === 'fulfilled').length;
      expect(sandbox.jobs).toHaveLength(1 + made);
      expect(made).toBeLessThanOrEqual(1);
      if (made === 0) await client.videos.create(VIDEO);
      await expect(client.videos.create(VIDEO)).rejects.toMatchObject({ code: 'budget_exceeded' });
      expect(await budget.usage()).toMatchObject({ spentTokens: 20, reservedTokens: 0 });
    } finally {
      await own.close();
    }
  });

  test('refuses a client of no known shape, and an option that does not exist', () => {
    expect(() => redisBudget({} as never)).toThrow('client must be a connected client of');
    expect(() => redisBudget(redis.ioredis, { prefx: 'x' } as object)).toThrow('Did you mean "prefix"');
  });
});
