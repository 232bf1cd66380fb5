import { describe, expect, test } from 'vitest';
import { createBudget, memoryStore } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';

const VIDEO = { prompt: 'a fox at dawn', duration: 4 } as const;
const openSandbox = () => createSandbox({ balanceTokens: 10_000, prices: 10, limits: 'off' });

describe('a budget without its own store', () => {
  test("counts in its client's store, so other processes share it", async () => {
    const sandbox = openSandbox();
    const store = memoryStore();
    const budget = createBudget({ maxTokens: 35, per: 'day', scope: 'team' });
    await sandbox.client({ store, budget }).videos.create(VIDEO);
    const elsewhere = createBudget({ maxTokens: 35, per: 'day', scope: 'team', store });
    expect((await elsewhere.usage()).spentTokens).toBe(10);
    expect((await budget.usage()).spentTokens).toBe(10);
  });

  test('uses the scope "default" if none is set, so its count survives a restart', async () => {
    const sandbox = openSandbox();
    const store = memoryStore();
    const run = () => sandbox.client({ store, budget: createBudget({ maxTokens: 15 }), maxRetries: 0 });
    await run().videos.create(VIDEO);
    await expect(run().videos.create(VIDEO)).rejects.toMatchObject({ code: 'budget_exceeded', scope: 'default' });
  });

  test("uses the client's store even if passed to a call", async () => {
    const sandbox = openSandbox();
    const store = memoryStore();
    const client = sandbox.client({ store, budget: createBudget({ maxTokens: 100, store }) });
    const budget = createBudget({ maxTokens: 100, scope: 'user-7' });
    await client.videos.create(VIDEO, { budget });
    expect((await budget.usage()).spentTokens).toBe(10);
  });

  test('counts once per process if its client has no store, however often it is created (U1)', async () => {
    const sandbox = openSandbox();
    const run = () => sandbox.client({ budget: createBudget({ maxTokens: 15 }), maxRetries: 0 });
    await run().videos.create(VIDEO);
    await expect(run().videos.create(VIDEO)).rejects.toMatchObject({ code: 'budget_exceeded', scope: 'default' });
  });
});
