// All budgets without a scope share one sum (U1).
import { expect, test } from 'vitest';
import { createBudget, memoryStore } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';

const VIDEO = { prompt: 'a fox at dawn', duration: 4 } as const;
const fresh = () => createBudget({ maxTokens: 25 });
const spent = { code: 'budget_exceeded', scope: 'default' };

test('budgets created for each call, client, and withOptions share one sum in the store', async () => {
  const sandbox = createSandbox({ balanceTokens: 10_000, prices: 10, limits: 'off' });
  const store = memoryStore();
  const client = sandbox.client({ store, maxRetries: 0 });
  await client.videos.create(VIDEO, { budget: fresh() });
  await client.withOptions({ budget: fresh() }).videos.create(VIDEO);
  await expect(client.videos.create(VIDEO, { budget: fresh() })).rejects.toMatchObject(spent);
  await expect(client.withOptions({ budget: fresh() }).videos.create(VIDEO)).rejects.toMatchObject(spent);
  const other = sandbox.client({ store, maxRetries: 0, budget: fresh() });
  await expect(other.videos.create(VIDEO)).rejects.toMatchObject(spent);
});
