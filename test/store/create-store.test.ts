import { expect, test } from 'vitest';
import { createBudget, createStore, GenClient, memoryStore, type Store } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { createWebhookHandler } from '../../src/webhooks/index.js';
import { openService, VIDEO } from '../budget/service.js';

const BASE = { apiKey: 'k', baseUrl: 'https://service.example' };

test('a raw store is rejected with a message that suggests createStore', () => {
  const { read, write } = memoryStore();
  const error = expect.objectContaining({
    name: 'GenError',
    message: expect.stringContaining('createStore({ read, write })'),
  });
  for (const open of [
    () => new GenClient({ ...BASE, store: { read, write } }),
    () => new GenClient(BASE).withOptions({ store: { read, write } }),
    () => createBudget({ maxTokens: 1, store: { read, write } }),
    () => createWebhookHandler({ store: { read, write } }),
  ]) {
    expect(open).toThrow(error);
  }
});

test.each<[string, unknown, string]>([
  ['undefined', undefined, 'read must be a function'],
  ['a store without write', { read() {} }, 'write must be a function, not undefined.'],
  ['a misspelled function', { read() {}, write() {}, publsh() {} }, 'Did you mean "publish"?'],
  ['an invalid timeout', { read() {}, write() {}, timeoutMs: '2s' }, 'must be a number of milliseconds above 0'],
])('createStore rejects %s', (_, store, message) => {
  expect(() => createStore(store as Store)).toThrow(message);
});

test('a store can be a class instance without notifications', async () => {
  class Database implements Store {
    readonly #store = memoryStore();
    read(...args: Parameters<Store['read']>) {
      return this.#store.read(...args);
    }
    write(...args: Parameters<Store['write']>) {
      return this.#store.write(...args);
    }
  }
  const store = createStore(new Database());
  expect(store).not.toHaveProperty('publish');
  const sandbox = createSandbox();
  const { job } = await sandbox.client({ store }).videos.create({ prompt: 'a fox' });
  const unfinished = [];
  for await (const { jobId } of sandbox.client({ store }).unfinishedCreates()) unfinished.push(jobId);
  expect(unfinished).toEqual([job.id]);
});

test("a call's budget applies even if the client has no store and no budget", async () => {
  const { fetch, jobs } = openService();
  const client = new GenClient({ ...BASE, fetch });
  const budget = createBudget({ maxTokens: 12, scope: 'one call', unknownPrice: () => 12 });
  await client.videos.create(VIDEO, { budget });
  await expect(client.videos.create(VIDEO, { budget })).rejects.toMatchObject({ code: 'budget_exceeded' });
  await client.videos.create(VIDEO);
  expect(jobs.size).toBe(2);
  expect(await budget.usage()).toMatchObject({ spentTokens: 12 });
});
