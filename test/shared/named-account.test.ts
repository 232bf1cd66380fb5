// Which account a call counts for in a shared store: by its key, or by the name that the store has for the account.
import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { GenClient, memoryStore, RateLimitError, type Store } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';

const limits = { 'videos.create': { limit: 2, windowMs: 60_000 } };
const params = { prompt: 'a fox at dawn' };

/** Two clients whose keys differ, as two processes have them during a rotation. */
function beforeAndAfter(storeOf: (base: Store) => Store) {
  const { baseUrl, fetch, createKey, requests } = createSandbox();
  const base = memoryStore();
  const [before, after] = [createKey(), createKey()].map(
    (apiKey) => new GenClient({ apiKey, baseUrl, fetch, limits, store: storeOf(base), rateLimit: 'throw' }),
  );
  if (!before || !after) throw new TypeError('there are two keys');
  return { before, after, requests };
}

it('counts the calls under an old and a new key together, where the store names the account', async () => {
  const { before, after, requests } = beforeAndAfter((base) => ({ ...base, account: 'main' }));
  await before.videos.create(params);
  await after.videos.create(params);
  await expect(after.videos.create(params)).rejects.toThrow(RateLimitError);
  await expect(before.videos.create(params)).rejects.toThrow(RateLimitError);
  expect(requests).toHaveLength(2);
});

it('shares what was learned of prices with a process that has the new key', async () => {
  const { before, after } = beforeAndAfter((base) => ({ ...base, account: 'main' }));
  const kind = { call: 'videos' } as const;
  const { quoted_token_cost } = await before.videos.create(params);
  // The price is written, and then read, in the background.
  await setImmediate();
  after.estimate(kind);
  await setImmediate();
  expect(after.estimate(kind).tokens).toBe(quoted_token_cost);
});

it.each([
  ['without a name', (base: Store) => base],
  [
    'under two names',
    (() => {
      let names = 0;
      return (base: Store) => ({ ...base, account: `tenant-${++names}` });
    })(),
  ],
])('counts the calls of two keys apart, %s', async (_, storeOf) => {
  const { before, after, requests } = beforeAndAfter(storeOf);
  for (const client of [before, after, before, after]) await client.videos.create(params);
  expect(requests).toHaveLength(4);
});
