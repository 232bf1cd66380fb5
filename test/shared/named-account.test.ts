import { expect, it } from 'vitest';
import { GenClient, memoryStore, RateLimitError } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';

const limits = { 'videos.create': { limit: 2, windowMs: 60_000 } };
const params = { prompt: 'a fox at dawn' };

/** Creates two clients with different API keys, as during a rotation. */
function createRotatedClients(...accounts: (string | undefined)[]) {
  const { baseUrl, fetch, createKey, requests } = createSandbox();
  const store = memoryStore();
  const [oldKeyClient, newKeyClient] = [createKey(), createKey()].map(
    (apiKey, at) => new GenClient({ apiKey, baseUrl, fetch, limits, store, account: accounts[at], rateLimit: 'throw' }),
  );
  if (!oldKeyClient || !newKeyClient) throw new TypeError('expected two keys');
  return { oldKeyClient, newKeyClient, requests };
}

it('an old and a new API key share one limit if both clients set the same account', async () => {
  const { oldKeyClient, newKeyClient, requests } = createRotatedClients('main', 'main');
  await oldKeyClient.videos.create(params);
  await newKeyClient.videos.create(params);
  await expect(newKeyClient.videos.create(params)).rejects.toThrow(RateLimitError);
  await expect(oldKeyClient.videos.create(params)).rejects.toThrow(RateLimitError);
  expect(requests).toHaveLength(2);
});

it.each<[string, string[]]>([
  ['without an account name', []],
  ['with two account names', ['tenant-1', 'tenant-2']],
])('each API key has a separate limit %s', async (_, accounts) => {
  const { oldKeyClient, newKeyClient, requests } = createRotatedClients(...accounts);
  for (const client of [oldKeyClient, newKeyClient, oldKeyClient, newKeyClient]) await client.videos.create(params);
  expect(requests).toHaveLength(4);
});
