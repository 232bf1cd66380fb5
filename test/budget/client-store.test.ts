import { describe, expect, test } from 'vitest';
import { createBudget, memoryStore } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';

const VIDEO = { prompt: 'a fox at dawn', duration: 4 } as const;
const openSandbox = () => createSandbox({ balanceTokens: 10_000, prices: 10, limits: 'off' });

describe('a budget without its own store', () => {
  test("counts in its client's store, so another process finds it", async () => {
    const sandbox = openSandbox();
    const store = memoryStore();
    const budget = createBudget({ maxTokens: 35, per: 'day', scope: 'team' });
    await sandbox.client({ store, budget }).videos.create(VIDEO);
    const elsewhere = createBudget({ maxTokens: 35, per: 'day', scope: 'team', store });
    expect((await elsewhere.usage()).spentTokens).toBe(10);
    expect((await budget.usage()).spentTokens).toBe(10);
  });

  test('uses the scope "default" of that store without a scope, so a restart doesn\'t start again', async () => {
    const sandbox = openSandbox();
    const store = memoryStore();
    const run = () => sandbox.client({ store, budget: createBudget({ maxTokens: 15 }), maxRetries: 0 });
    await run().videos.create(VIDEO);
    await expect(run().videos.create(VIDEO)).rejects.toMatchObject({ code: 'budget_exceeded', scope: 'default' });
  });

  test("of a call uses the same store as the client's", async () => {
    const sandbox = openSandbox();
    const store = memoryStore();
    const client = sandbox.client({ store, budget: createBudget({ maxTokens: 100, store }) });
    const budget = createBudget({ maxTokens: 100, scope: 'user-7' });
    await client.videos.create(VIDEO, { budget });
    expect((await budget.usage()).spentTokens).toBe(10);
  });

  test('counts in the process if its client has no store, however often it is created (U1)', async () => {
    const sandbox = openSandbox();
    const run = () => sandbox.client({ budget: createBudget({ maxTokens: 15 }), maxRetries: 0 });
    await run().videos.create(VIDEO);
    await expect(run().videos.create(VIDEO)).rejects.toMatchObject({ code: 'budget_exceeded', scope: 'default' });
  });
});
