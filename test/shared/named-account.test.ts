import { expect, it } from 'vitest';
import { GenClient, memoryStore, RateLimitError } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';

const limits = { 'videos.create': { limit: 2, windowMs: 60_000 } };
const params = { prompt: 'a fox at dawn' };

/** Opens two clients with different keys, as during a key rotation. */
function rotatedClients(...accounts: (string | undefined)[]) {
  const { baseUrl, fetch, createKey, requests } = createSandbox();
  const store = memoryStore();
  const [before, after] = [createKey(), createKey()].map(
    (apiKey, at) => new GenClient({ apiKey, baseUrl, fetch, limits, store, account: accounts[at], rateLimit: 'throw' }),
  );
  if (!before || !after) throw new TypeError('expected two keys');
  return { before, after, requests };
}

it('shares one limit between an old and a new API key if both clients set the same account', async () => {
  const { before, after, requests } = rotatedClients('main', 'main');
  await before.videos.create(params);
  await after.videos.create(params);
  await expect(after.videos.create(params)).rejects.toThrow(RateLimitError);
  await expect(before.videos.create(params)).rejects.toThrow(RateLimitError);
  expect(requests).toHaveLength(2);
});

it.each<[string, string[]]>([
  ['without an account name', []],
  ['with two account names', ['tenant-1', 'tenant-2']],
])('has a separate limit for each API key %s', async (_, accounts) => {
  const { before, after, requests } = rotatedClients(...accounts);
  for (const client of [before, after, before, after]) await client.videos.create(params);
  expect(requests).toHaveLength(4);
});
