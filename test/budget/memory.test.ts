// The memory that a budget uses per create (U4).
import { expect, test } from 'vitest';
import { createBudget, GenClient, memoryStore } from '../../src/index.js';
import { ledgerOf } from '../../src/ledger/ledger.js';
import { systemClock } from '../../src/runtime/clock.js';

/** Opens a client with a budget, and a service whose jobs have this status. Tracks the keys in the store. */
function openProgram(status: 'processing' | 'completed') {
  const keys = new Set<string>();
  const store = memoryStore();
  const { write } = store;
  store.write = (group, version, changes) => {
    for (const [key, change] of Object.entries(changes)) change ? keys.add(key) : keys.delete(key);
    return write(group, version, changes);
  };
  let jobs = 0;
  const fetch = async () => {
    jobs += 1;
    const job = { id: `job_${jobs}`, status, finalTokenCost: 3, providerOutputUrl: 'https://x.example/f' };
    return Response.json({ data: { job, quoted_token_cost: 3 } }, { status: 201 });
  };
  const budget = createBudget({ maxTokens: 1e9, store });
  const client = new GenClient({ apiKey: 'k', baseUrl: 'https://x.example', rateLimit: 'off', fetch, budget });
  const storedKeys = () => [...keys].filter((key) => /^(create|job|index)\//.test(key));
  return { client, budget, storedKeys, ledger: ledgerOf(store, systemClock) };
}

const CALLS = Array.from({ length: 50 }, (_, at) => ({ prompt: `fox ${at}` }));

test("a finished create leaves no value in the store, unless its key is the caller's", async () => {
  const { client, budget, storedKeys } = openProgram('completed');
  await Promise.all(CALLS.map((params) => client.images.createAndWait(params)));
  expect(storedKeys()).toEqual([]);
  const idempotencyKey = 'order-17';
  await client.images.createAndWait({ prompt: 'a fox' }, { idempotencyKey });
  expect(storedKeys()).toEqual([expect.stringMatching(/^create\/.*\/order-17$/)]);
  expect((await budget.usage()).spentTokens).toBe(3 * 51);
});

test('the ledger retains the newest 10,000 creates that no call waits for, and counts the cost of all', async () => {
  const { client, budget, storedKeys, ledger } = openProgram('processing');
  await Promise.all(CALLS.map((params) => client.images.create(params)));
  expect(storedKeys().length).toBeGreaterThanOrEqual(2 * CALLS.length);
  for (let at = 0; at < 9_990; at++) ledger.retain(`account/later ${at}`);
  await expect.poll(() => storedKeys().filter((key) => key.startsWith('create/')).length).toBe(10);
  for (let at = 0; at < 10; at++) ledger.retain(`account/last ${at}`);
  await expect.poll(storedKeys).toEqual([]);
  expect(await budget.usage()).toMatchObject({ spentTokens: 3 * CALLS.length, reservedTokens: 0 });
});
