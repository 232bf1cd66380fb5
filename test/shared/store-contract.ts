// Tests of every store: its contract, and the rate limits and budgets that processes share.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BudgetExceededError, createBudget, createStore, GenClient } from '../../src/index.js';
import { checkStore, createSandbox } from '../../src/sandbox/index.js';
import type { Store } from '../../src/store/store.js';
import { clientWithBudget, openService, quoted, runInSequence, VIDEO } from '../budget/service.js';

/** Generous for a busy machine. Other tests cover outages. */
export const PATIENT = { timeoutMs: 60_000 };

export interface StoreCase {
  readonly name: string;
  readonly skip?: string | undefined;
  /** Starts the store. */
  open(): Promise<OpenStore>;
}

export interface OpenStore {
  /** Opens the store again, as another process would. */
  reopen(): Store;
  /** If true, messages reach other processes. */
  readonly notifies: boolean;
  close(): Promise<void>;
}

/** Tests the contract on each store. */
export function testStores(stores: readonly StoreCase[]): void {
  describe.concurrent.each(stores.map((store) => [store.name, store] as const))('%s', (_, { skip, open }) => {
    if (skip) return it.skip(skip, () => {});
    let openStore: OpenStore;
    beforeAll(async () => {
      openStore = await open();
    });
    afterAll(() => openStore.close());
    testStore(() => openStore);
  });
}

let scopes = 0;

/** Returns a function that creates a budget as a process would. Its scope is unique to the test. */
function budgetOpener(store: Store, maxTokens: number) {
  scopes += 1;
  const scope = `tenant {"${scopes}"} %`;
  return () => createBudget({ maxTokens, per: 'day', scope, store });
}

/** Creates a separate store object, so that processes share only the stored data. */
function viewOf({ read, write }: Store): Store {
  return createStore({ ...PATIENT, read: (...args) => read(...args), write: (...args) => write(...args) });
}

function testStore(openStore: () => OpenStore): void {
  const openView = () => viewOf(openStore().reopen());

  it('meets the store contract (real time)', async () => {
    const { publish, subscribe } = openStore().reopen();
    expect(publish !== undefined && subscribe !== undefined).toBe(openStore().notifies);
    await checkStore(() => openStore().reopen());
  }, 300_000);

  it('shares a rate limit among processes, which get no 429', async () => {
    const limits = { 'videos.create': { limit: 5, windowMs: 400 } };
    const sandbox = createSandbox({ limits });
    const { apiKey, baseUrl, fetch } = sandbox;
    const clients = Array.from(
      { length: 4 },
      () => new GenClient({ apiKey, baseUrl, fetch, store: openView(), limits }),
    );
    await Promise.all(
      Array.from({ length: 20 }, (_, at) => clients[at % 4]?.videos.create({ prompt: `a fox, ${at}` })),
    );
    expect(sandbox.requests.filter(({ status }) => status === 429)).toEqual([]);
    expect(sandbox.jobs).toHaveLength(20);
  });

  it('enforces a budget across processes that spend concurrently', async () => {
    const budgetOf = budgetOpener(openView(), 35);
    const sandbox = createSandbox({ prices: 10.5, limits: 'off' });
    const clients = [1, 2, 3].map(() => sandbox.client({ budget: budgetOf() }));
    const calls = Array.from({ length: 12 }, (_, at) => clients[at % 3]?.videos.create(VIDEO));
    const rejected = (await Promise.allSettled(calls)).filter((call) => call.status === 'rejected');
    expect(rejected.filter(({ reason }) => !BudgetExceededError.isInstance(reason))).toEqual([]);
    const resetsAt = new Date(Math.floor(Date.now() / 86_400_000 + 1) * 86_400_000).toISOString();
    const spent = { spentTokens: 31.5, reservedTokens: 0, leftTokens: 3.5, unresolved: [], resetsAt };
    expect(await budgetOf().usage()).toEqual(spent);
  });

  it("reserves a lost create's price until a process retries or releases its key", async () => {
    const budgetOf = budgetOpener(openView(), 100);
    const isLost = (number: number) => number === 2 || number === 3;
    const service = openService({ respond: (job) => (isLost(job.number) ? new TypeError('terminated') : quoted(job)) });
    const failingClient = clientWithBudget(service, { maxTokens: 1 }).client.withOptions({ budget: budgetOf() });
    await failingClient.videos.create(VIDEO);
    await runInSequence(2, (number) => failingClient.videos.create(VIDEO, { idempotencyKey: `lost-${number}` }));
    const lost = { spentTokens: 12, reservedTokens: 24, unresolved: ['lost-0', 'lost-1'] };
    expect(await budgetOf().usage()).toMatchObject(lost);
    await budgetOf().release('lost-0');
    const recoveredClient = failingClient.withOptions({ budget: budgetOf(), fetch: openService().fetch });
    await recoveredClient.videos.create(VIDEO, { idempotencyKey: 'lost-1' });
    expect(await budgetOf().usage()).toMatchObject({ spentTokens: 24, reservedTokens: 0, unresolved: [] });
  });

  it('refunds an uncharged job to every budget, whichever process polls it', async () => {
    const store = openView();
    const [openClientBudget, openCallBudget] = [budgetOpener(store, 100), budgetOpener(store, 100)];
    const sandbox = createSandbox({ prices: 15, limits: 'off', clock: 'manual' });
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_failed' });
    const { job } = await sandbox
      .client({ budget: openClientBudget() })
      .videos.create(VIDEO, { budget: openCallBudget() });
    expect(await openCallBudget().usage()).toMatchObject({ spentTokens: 15 });
    await sandbox.advance(120_000);
    await sandbox.client({ budget: openClientBudget() }).jobs.get(job.id);
    for (const budget of [openClientBudget(), openCallBudget()])
      expect(await budget.usage()).toMatchObject({ spentTokens: 0 });
  });
}
