import { describe, expect, test } from 'vitest';
import { createBudget, memoryStore } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { VIDEO } from './service.js';

const openSandbox = () => createSandbox({ balanceTokens: 10_000, prices: 10, limits: 'off' });

describe('a budget without its own store', () => {
  test("uses its client's store, so other processes share it", async () => {
    const sandbox = openSandbox();
    const store = memoryStore();
    const budget = createBudget({ maxTokens: 35, per: 'day', scope: 'team' });
    await sandbox.client({ store, budget }).videos.create(VIDEO);
    const other = createBudget({ maxTokens: 35, per: 'day', scope: 'team', store });
    expect((await other.usage()).spentTokens).toBe(10);
    expect((await budget.usage()).spentTokens).toBe(10);
  });

  test('or scope shares its tokens with all others, whether passed to a call, a client, or withOptions (U1)', async () => {
    const sandbox = openSandbox();
    const store = memoryStore();
    const unscoped = () => createBudget({ maxTokens: 25 });
    const client = sandbox.client({ store, maxRetries: 0 });
    const creates = [
      () => client.videos.create(VIDEO, { budget: unscoped() }),
      () => client.withOptions({ budget: unscoped() }).videos.create(VIDEO),
      () => sandbox.client({ store, maxRetries: 0, budget: unscoped() }).videos.create(VIDEO),
    ];
    await creates[0]?.();
    await creates[1]?.();
    for (const create of creates) {
      await expect(create()).rejects.toMatchObject({ code: 'budget_exceeded', scope: 'default' });
    }
  });

  test("uses the client's store even if passed to a call", async () => {
    const sandbox = openSandbox();
    const store = memoryStore();
    const client = sandbox.client({ store, budget: createBudget({ maxTokens: 100, store }) });
    const budget = createBudget({ maxTokens: 100, scope: 'user-7' });
    await client.videos.create(VIDEO, { budget });
    expect((await budget.usage()).spentTokens).toBe(10);
  });

  test('is a single budget per process if its client has no store, however often it is created (U1)', async () => {
    const sandbox = openSandbox();
    const newClient = () => sandbox.client({ budget: createBudget({ maxTokens: 15 }), maxRetries: 0 });
    await newClient().videos.create(VIDEO);
    await expect(newClient().videos.create(VIDEO)).rejects.toMatchObject({ code: 'budget_exceeded', scope: 'default' });
  });
});
