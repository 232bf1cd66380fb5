import { type BudgetOptions, createBudget as budgetWith, memoryStore } from 'gen-client';
import { expect, it } from 'vitest';
import { describeWithRedis, queuesOnSandboxes } from './queue-on-sandbox.js';

/** Creates a budget in its own store. Without a store, equal scopes would share one sum in the process. */
const createBudget = (options: BudgetOptions) => budgetWith({ store: memoryStore(), ...options });

const PARAMS = { prompt: 'a fox at dawn', duration: 4 } as const;

describeWithRedis('queued calls with a budget', () => {
  const { open } = queuesOnSandboxes();

  it('wait for the next period if they exceed it', async () => {
    const budget = createBudget({ maxTokens: 25, per: 2_000 });
    const { sandbox, queue, work, ended, failures } = open({ prices: 10, client: { budget } });
    work({ timeoutMs: 500 });
    for (let at = 0; at < 5; at++) await queue.videos.create(PARAMS, { jobId: `order-${at}` });
    await expect.poll(() => sandbox.jobs.length).toBe(2);
    await ended(5);
    expect(await queue.queue.getCompletedCount()).toBe(5);
    expect(failures).toEqual([]);
    expect(sandbox.jobs).toHaveLength(5);
  });

  it.each(['month', 'total'] as const)(
    'wait for seconds, not for the next period, if a create of unknown price loses its response (%s)',
    async (per) => {
      const budget = createBudget({ maxTokens: 100_000, per });
      const { sandbox, queue, work, ended, failures } = open({ prices: 10, client: { budget } });
      sandbox.faults.add({ match: { method: 'POST', path: '/v1/videos' }, commitThenDrop: true, times: 1 });
      work({ retryDelayMs: 100 });
      for (let at = 0; at < 6; at++) await queue.videos.create(PARAMS, { jobId: `order-${at}` });
      await ended(6);
      expect(failures).toEqual([]);
      expect(sandbox.jobs).toHaveLength(6);
      expect(await budget.usage()).toMatchObject({ spentTokens: 60, unresolved: [] });
    },
  );

  it.each(['month', 'total'] as const)('wait for a running job, which may release its tokens (%s)', async (per) => {
    const budget = createBudget({ maxTokens: 15, per });
    const { sandbox, queue, work, ended, failures } = open({ prices: 10, client: { budget } });
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_failed' });
    work({ retryDelayMs: 100 });
    for (let at = 0; at < 2; at++) await queue.videos.create(PARAMS, { jobId: `order-${at}` });
    await ended(2);
    expect(failures).toMatchObject([{ code: 'generation_failed' }]);
    expect(sandbox.jobs).toHaveLength(2);
    expect(await budget.usage()).toMatchObject({ spentTokens: 10, reservedTokens: 0, unresolved: [] });
  });

  it("fail with the budget's error if there is no next period", async () => {
    const budget = createBudget({ maxTokens: 15 });
    const { sandbox, queue, work, ended, failures } = open({ prices: 10, client: { budget } });
    work();
    for (let at = 0; at < 2; at++) await queue.videos.create(PARAMS, { jobId: `order-${at}` });
    await ended(2);
    expect(failures).toMatchObject([{ name: 'BudgetExceededError', code: 'budget_exceeded' }]);
    expect(sandbox.jobs).toHaveLength(1);
  });

  it("spend from their tenant's budget with budgetScope", async () => {
    const budget = createBudget({ maxTokens: 15 });
    const { sandbox, queue, work, ended, record } = open({ prices: 10, client: { budget } });
    work({ concurrency: 1 });
    for (const budgetScope of ['fox', 'owl']) {
      for (let at = 0; at < 2; at++) await queue.videos.create(PARAMS, { jobId: `${budgetScope}-${at}`, budgetScope });
    }
    await ended(4);
    expect(sandbox.jobs).toHaveLength(2);
    for (const tenant of ['fox', 'owl']) {
      expect((await record(`${tenant}-1`)).data.failure).toMatchObject({ scope: tenant, code: 'budget_exceeded' });
    }
    expect(await budget.usage()).toMatchObject({ spentTokens: 0 });
  });

  it('spend from the budget that the worker returns for a scope', async () => {
    const budgets = new Map(['fox', 'owl'].map((name, at) => [name, createBudget({ maxTokens: 10 + 10 * at })]));
    const none = createBudget({ maxTokens: 1 });
    const { sandbox, queue, work, ended } = open({ prices: 10 });
    work({ concurrency: 1, budget: (scope) => budgets.get(scope) ?? none });
    for (const budgetScope of ['fox', 'fox', 'owl', 'owl']) await queue.videos.create(PARAMS, { budgetScope });
    await ended(4);
    expect(sandbox.jobs).toHaveLength(3);
  });

  it('fail with the fix if the worker returns no budget for the scope', async () => {
    const { sandbox, queue, work, ended, failures } = open();
    work();
    await queue.videos.create(PARAMS, { budgetScope: 'fox' });
    await ended();
    expect(failures).toMatchObject([{ message: expect.stringContaining('createBudget'), recovery: 'fix_setup' }]);
    expect(sandbox.requests).toHaveLength(0);
  });
});
