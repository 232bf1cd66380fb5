import { type BudgetOptions, createBudget as budgetWith, memoryStore } from 'gen-client';
import { expect, it } from 'vitest';
import { describeWithRedis, queuesOnSandboxes } from './queue-on-sandbox.js';

/** Creates a budget with a separate store. Without a store, budgets with equal scopes share their sum in a process. */
const createBudget = (options: BudgetOptions) => budgetWith({ store: memoryStore(), ...options });

const PARAMS = { prompt: 'a fox at dawn', duration: 4 } as const;

describeWithRedis('queued calls with a budget', () => {
  const { open } = queuesOnSandboxes();

  it('wait for the next period if they exceed it', async () => {
    const budget = createBudget({ maxTokens: 25, per: 2_000 });
    const { sandbox, queue, startWorker, untilEnded, failures } = open({ prices: 10, client: { budget } });
    startWorker({ timeoutMs: 500 });
    for (let at = 0; at < 5; at++) await queue.videos.create(PARAMS, { jobId: `order-${at}` });
    await expect.poll(() => sandbox.jobs.length).toBe(2);
    await untilEnded(5);
    expect(await queue.queue.getCompletedCount()).toBe(5);
    expect(failures).toEqual([]);
    expect(sandbox.jobs).toHaveLength(5);
  });

  it.each(['month', 'total'] as const)(
    'retry within seconds if a create of unknown price loses its response (%s)',
    async (per) => {
      const budget = createBudget({ maxTokens: 100_000, per });
      const { sandbox, queue, startWorker, untilEnded, failures } = open({ prices: 10, client: { budget } });
      sandbox.faults.add({ match: { method: 'POST', path: '/v1/videos' }, commitThenDrop: true, times: 1 });
      startWorker({ retryDelayMs: 100 });
      for (let at = 0; at < 6; at++) await queue.videos.create(PARAMS, { jobId: `order-${at}` });
      await untilEnded(6);
      expect(failures).toEqual([]);
      expect(sandbox.jobs).toHaveLength(6);
      expect(await budget.usage()).toMatchObject({ spentTokens: 60, unresolved: [] });
    },
  );

  it.each(['month', 'total'] as const)('wait for a running job, which may release its tokens (%s)', async (per) => {
    const budget = createBudget({ maxTokens: 15, per });
    const { sandbox, queue, startWorker, untilEnded, failures } = open({ prices: 10, client: { budget } });
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_failed' });
    startWorker({ retryDelayMs: 100 });
    for (let at = 0; at < 2; at++) await queue.videos.create(PARAMS, { jobId: `order-${at}` });
    await untilEnded(2);
    expect(failures).toMatchObject([{ code: 'generation_failed' }]);
    expect(sandbox.jobs).toHaveLength(2);
    expect(await budget.usage()).toMatchObject({ spentTokens: 10, reservedTokens: 0, unresolved: [] });
  });

  it("fail with the budget's error if there is no next period", async () => {
    const budget = createBudget({ maxTokens: 15 });
    const { sandbox, queue, startWorker, untilEnded, failures } = open({ prices: 10, client: { budget } });
    startWorker();
    for (let at = 0; at < 2; at++) await queue.videos.create(PARAMS, { jobId: `order-${at}` });
    await untilEnded(2);
    expect(failures).toMatchObject([{ name: 'BudgetExceededError', code: 'budget_exceeded' }]);
    expect(sandbox.jobs).toHaveLength(1);
  });

  it("spend from their tenant's budget if budgetScope is set", async () => {
    const budget = createBudget({ maxTokens: 15 });
    const { sandbox, queue, startWorker, untilEnded, record } = open({ prices: 10, client: { budget } });
    startWorker({ concurrency: 1 });
    for (const budgetScope of ['fox', 'owl']) {
      for (let at = 0; at < 2; at++) await queue.videos.create(PARAMS, { jobId: `${budgetScope}-${at}`, budgetScope });
    }
    await untilEnded(4);
    expect(sandbox.jobs).toHaveLength(2);
    for (const tenant of ['fox', 'owl']) {
      expect((await record(`${tenant}-1`)).data.failure).toMatchObject({ scope: tenant, code: 'budget_exceeded' });
    }
    expect(await budget.usage()).toMatchObject({ spentTokens: 0 });
  });

  it('spend from the budget that the worker returns for a scope', async () => {
    const budgets = new Map(['fox', 'owl'].map((name, at) => [name, createBudget({ maxTokens: 10 + 10 * at })]));
    const fallback = createBudget({ maxTokens: 1 });
    const { sandbox, queue, startWorker, untilEnded } = open({ prices: 10 });
    startWorker({ concurrency: 1, budget: (scope) => budgets.get(scope) ?? fallback });
    for (const budgetScope of ['fox', 'fox', 'owl', 'owl']) await queue.videos.create(PARAMS, { budgetScope });
    await untilEnded(4);
    expect(sandbox.jobs).toHaveLength(3);
  });

  it('fail with a setup error if the worker has no budget for the scope', async () => {
    const { sandbox, queue, startWorker, untilEnded, failures } = open();
    startWorker();
    await queue.videos.create(PARAMS, { budgetScope: 'fox' });
    await untilEnded();
    expect(failures).toMatchObject([{ message: expect.stringContaining('createBudget'), recovery: 'fix_setup' }]);
    expect(sandbox.requests).toHaveLength(0);
  });
});
