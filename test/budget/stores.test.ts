// One table of cases over every store that a budget can be kept in.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Budget, BudgetExceededError, createBudget } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import type { Store } from '../../src/store/store.js';
import { type OpenStore, STORES } from '../shared/stores.js';
import { inTurn, openService, spenderOn, VIDEO } from './service.js';

describe.each(STORES.map((store) => [store.name, store] as const))('a budget in %s', (_, { skip, open }) => {
  if (skip) return it.skip(skip, () => {});
  let opened: OpenStore;
  let scopes = 0;
  /** A name that no other test uses, and the budget of that name as one more process has it. */
  function tenant(maxTokens: number, store = viewOf(opened.another())): () => Budget {
    scopes += 1;
    const scope = `tenant {"${scopes}"} %`;
    return () => createBudget({ maxTokens, per: 'day', scope, store });
  }
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened.close());

  it('holds over processes that spend at once', async () => {
    const budgetOf = tenant(35);
    const sandbox = createSandbox({ prices: 10.5, limits: 'off' });
    const clients = [1, 2, 3].map(() => sandbox.client({ budget: budgetOf() }));
    const calls = Array.from({ length: 12 }, (__, at) => clients[at % 3]?.videos.create(VIDEO));
    const refused = (await Promise.allSettled(calls)).filter((call) => call.status === 'rejected');
    expect(refused.filter(({ reason }) => !BudgetExceededError.isInstance(reason))).toEqual([]);
    const tomorrow = new Date(Math.floor(Date.now() / 86_400_000 + 1) * 86_400_000).toISOString();
    expect(await budgetOf().usage()).toEqual({
      spentTokens: 31.5,
      reservedTokens: 0,
      leftTokens: 3.5,
      unresolved: [],
      resetsAt: tomorrow,
    });
  });

  it('keeps a lost answer until its key is answered or released, by any process', async () => {
    const budgetOf = tenant(100);
    const service = openService({
      answer: ({ id, tokens, number }) =>
        number === 2 || number === 3
          ? new TypeError('terminated')
          : Response.json({ data: { job: { id, status: 'processing' }, quoted_token_cost: tokens } }),
    });
    const one = spenderOn(service, { maxTokens: 1 }).client.withOptions({ budget: budgetOf() });
    await one.videos.create(VIDEO);
    await inTurn(2, (number) => one.videos.create(VIDEO, { idempotencyKey: `lost-${number}` }));
    expect(await budgetOf().usage()).toMatchObject({
      spentTokens: 12,
      reservedTokens: 24,
      unresolved: ['lost-0', 'lost-1'],
    });
    await budgetOf().release('lost-0');
    const well = one.withOptions({ budget: budgetOf(), fetch: openService().fetch });
    await well.videos.create(VIDEO, { idempotencyKey: 'lost-1' });
    expect(await budgetOf().usage()).toMatchObject({ spentTokens: 24, reservedTokens: 0, unresolved: [] });
  });

  it('gives back what an uncharged job has cost, whichever process learns of its end', async () => {
    const store = viewOf(opened.another());
    const [all, own] = [tenant(100, store), tenant(100, store)];
    const sandbox = createSandbox({ prices: 15, limits: 'off', clock: 'manual' });
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_failed' });
    const { job } = await sandbox.client({ budget: all() }).videos.create(VIDEO, { budget: own() });
    expect(await own().usage()).toMatchObject({ spentTokens: 15 });
    await sandbox.advance(120_000);
    await sandbox.client({ budget: all() }).jobs.get(job.id);
    expect(await all().usage()).toMatchObject({ spentTokens: 0 });
    expect(await own().usage()).toMatchObject({ spentTokens: 0 });
  });
});

/** A store of its own to look at, so that nothing in this process is shared but what is in the store. */
function viewOf(store: Store): Store {
  return { read: (...args) => store.read(...args), write: (...args) => store.write(...args) };
}
