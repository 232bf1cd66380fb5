// One table of cases over every store: its contract, and the limits and budgets that are kept in it.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BudgetExceededError, createBudget, createStore, GenClient } from '../../src/index.js';
import { checkStore, createSandbox } from '../../src/sandbox/index.js';
import type { Store } from '../../src/store/store.js';
import { inTurn, openService, quoted, spenderOn, VIDEO } from '../budget/service.js';
import { type OpenStore, STORES } from './stores.js';

describe.concurrent.each(STORES.map((store) => [store.name, store] as const))('%s', (_, { skip, open }) => {
  if (skip) return it.skip(skip, () => {});
  let opened: OpenStore;
  let scopes = 0;
  /** A name that no other test uses, and the budget of that name as one more process has it. */
  function tenant(maxTokens: number, store = viewOf(opened.another())) {
    scopes += 1;
    const scope = `tenant {"${scopes}"} %`;
    return () => createBudget({ maxTokens, per: 'day', scope, store });
  }
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened.close());

  it('keeps the contract of a store (real time)', async () => {
    const { publish, subscribe } = opened.another();
    expect(publish !== undefined && subscribe !== undefined).toBe(opened.notifies);
    await checkStore(() => opened.another());
  });

  it('keeps the limits of clients in many processes together, and none meets a 429', async () => {
    const limits = { 'videos.create': { limit: 5, windowMs: 400 } };
    const sandbox = createSandbox({ limits });
    const { apiKey, baseUrl, fetch } = sandbox;
    const open = () => new GenClient({ apiKey, baseUrl, fetch, store: viewOf(opened.another()), limits });
    const clients = Array.from({ length: 4 }, open);
    await Promise.all(
      Array.from({ length: 20 }, (__, at) => clients[at % 4]?.videos.create({ prompt: `a fox, ${at}` })),
    );
    expect(sandbox.requests.filter(({ status }) => status === 429)).toEqual([]);
    expect(sandbox.jobs).toHaveLength(20);
  });

  it('keeps a budget over processes that spend at once', async () => {
    const budgetOf = tenant(35);
    const sandbox = createSandbox({ prices: 10.5, limits: 'off' });
    const clients = [1, 2, 3].map(() => sandbox.client({ budget: budgetOf() }));
    const calls = Array.from({ length: 12 }, (__, at) => clients[at % 3]?.videos.create(VIDEO));
    const refused = (await Promise.allSettled(calls)).filter((call) => call.status === 'rejected');
    expect(refused.filter(({ reason }) => !BudgetExceededError.isInstance(reason))).toEqual([]);
    const tomorrow = new Date(Math.floor(Date.now() / 86_400_000 + 1) * 86_400_000).toISOString();
    const spent = { spentTokens: 31.5, reservedTokens: 0, leftTokens: 3.5, unresolved: [], resetsAt: tomorrow };
    expect(await budgetOf().usage()).toEqual(spent);
  });

  it('keeps a lost answer until its key is answered or released, by any process', async () => {
    const budgetOf = tenant(100);
    const isLost = (number: number) => number === 2 || number === 3;
    const service = openService({ answer: (job) => (isLost(job.number) ? new TypeError('terminated') : quoted(job)) });
    const one = spenderOn(service, { maxTokens: 1 }).client.withOptions({ budget: budgetOf() });
    await one.videos.create(VIDEO);
    await inTurn(2, (number) => one.videos.create(VIDEO, { idempotencyKey: `lost-${number}` }));
    const lost = { spentTokens: 12, reservedTokens: 24, unresolved: ['lost-0', 'lost-1'] };
    expect(await budgetOf().usage()).toMatchObject(lost);
    await budgetOf().release('lost-0');
    const well = one.withOptions({ budget: budgetOf(), fetch: openService().fetch });
    await well.videos.create(VIDEO, { idempotencyKey: 'lost-1' });
    expect(await budgetOf().usage()).toMatchObject({ spentTokens: 24, reservedTokens: 0, unresolved: [] });
  });

  it('gives back to every budget what an uncharged job has cost, whichever process learns of its end', async () => {
    const store = viewOf(opened.another());
    const [all, own] = [tenant(100, store), tenant(100, store)];
    const sandbox = createSandbox({ prices: 15, limits: 'off', clock: 'manual' });
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_failed' });
    const { job } = await sandbox.client({ budget: all() }).videos.create(VIDEO, { budget: own() });
    expect(await own().usage()).toMatchObject({ spentTokens: 15 });
    await sandbox.advance(120_000);
    await sandbox.client({ budget: all() }).jobs.get(job.id);
    for (const budget of [all(), own()]) expect(await budget.usage()).toMatchObject({ spentTokens: 0 });
  });
});

/** A store of its own to look at, so that nothing in this process is shared but what is in the store. */
function viewOf({ read, write }: Store): Store {
  return createStore({ timeoutMs: 60_000, read: (...args) => read(...args), write: (...args) => write(...args) });
}
