// A budget whose store hangs, fails, or is slow, and its number of store requests.
import { describe, expect, test } from 'vitest';
import { ConnectionError, createBudget, GenError } from '../../src/index.js';
import { createStore, memoryStore } from '../../src/ledger/stores.js';
import { errorOf } from '../support/rejection.js';
import { never } from '../transport/support.js';
import { clientWithBudget, openService, type ServiceOptions, VIDEO } from './service.js';

/** Creates a store that can hang, and counts its requests. */
function openHeldStore() {
  const memory = memoryStore();
  const hang = () => new Promise<never>(() => {});
  const held = { hangs: 'nothing' as 'nothing' | 'reads' | 'writes', calls: 0 };
  const store = createStore({
    read(...args) {
      held.calls += 1;
      return held.hangs === 'reads' ? hang() : memory.read(...args);
    },
    write(...args) {
      held.calls += 1;
      return held.hangs === 'writes' ? hang() : memory.write(...args);
    },
  });
  return { held, store };
}

function openClient(options: ServiceOptions = {}, maxTokens = 100) {
  const { held, store } = openHeldStore();
  const service = openService(options);
  return { held, service, ...clientWithBudget(service, { maxTokens, store }) };
}

/** Generous for busy machines. Other tests measure the two seconds on a manual clock. */
const SOON_MS = 10_000;

async function timed(call: Promise<unknown>): Promise<{ readonly ms: number; readonly error: unknown }> {
  const startMs = performance.now();
  const error = await errorOf(call);
  return { ms: performance.now() - startMs, error };
}

describe.each(['reads', 'writes'] as const)('a store whose %s hang', (hangs) => {
  test("doesn't delay an abort, and sends nothing", async () => {
    const { held, service, client } = openClient();
    held.hangs = hangs;
    const { ms, error } = await timed(client.videos.create(VIDEO, { signal: AbortSignal.timeout(200) }));
    expect(error).toMatchObject({ name: 'TimeoutError' });
    expect(ms).toBeLessThan(SOON_MS);
    expect(service.jobs.size).toBe(0);
  });

  test("doesn't delay a timeout, and the error states that nothing was sent", async () => {
    const { held, client } = openClient();
    held.hangs = hangs;
    const { ms, error } = await timed(client.videos.create(VIDEO, { timeoutMs: 200 }));
    expect(ConnectionError.isInstance(error)).toBe(true);
    expect(error).toMatchObject({
      attempts: 0,
      message: expect.stringContaining('was not sent: the store could not record it (The store did not respond within'),
    });
    expect(ms).toBeLessThan(SOON_MS);
  });

  test("delays a paid create's response only briefly, and records it later", async () => {
    const { held, service, client, budget } = openClient();
    const hanging = client.withOptions({
      fetch(input, init) {
        held.hangs = hangs;
        return service.fetch(input, init);
      },
    });
    const { ms, error } = await timed(hanging.videos.create(VIDEO));
    expect(error).toBeUndefined();
    expect(ms).toBeLessThan(SOON_MS);
    held.hangs = 'nothing';
    expect(await budget.usage()).toMatchObject({ spentTokens: 12, reservedTokens: 0 });
  });

  test("delays a failed job's poll only briefly", async () => {
    const { held, client, budget } = openClient({ polledFields: () => ({ status: 'failed' }) });
    const { job } = await client.videos.create(VIDEO);
    held.hangs = hangs;
    const { ms, error } = await timed(client.jobs.get(job.id));
    expect(error).toBeUndefined();
    expect(ms).toBeLessThan(SOON_MS);
    held.hangs = 'nothing';
    await expect.poll(() => budget.usage(), { timeout: 15_000 }).toMatchObject({ spentTokens: 0 });
  });
});

test("a create rejects with the store's configuration error", async () => {
  const misconfigured = () => Promise.reject(new GenError('The user of Redis may not use EVAL. Allow +eval.'));
  const { client } = clientWithBudget(openService(), {
    maxTokens: 100,
    store: createStore({ read: misconfigured, write: misconfigured }),
  });
  await expect(client.videos.create(VIDEO)).rejects.toThrow('The user of Redis may not use EVAL. Allow +eval.');
});

describe('creates that wait for a budget', () => {
  test('are served in order, poll the store at most twice a second together, and leave immediately when aborted', async () => {
    const responses: (() => void)[] = [];
    const { held, service, client, budget } = openClient({}, 10_000);
    const slow = client.withOptions({
      fetch: async (input, init) => {
        await new Promise<void>((resolve) => responses.push(resolve));
        return service.fetch(input, init);
      },
    });
    const first = slow.videos.create(VIDEO);
    await expect.poll(() => responses.length).toBe(1);
    const controller = new AbortController();
    const order: number[] = [];
    const waiting = Array.from({ length: 500 }, async (_, number) => {
      const signal = number % 10 === 0 ? controller.signal : undefined;
      await client.videos.create(VIDEO, signal && { signal }).then(
        () => order.push(number),
        () => {},
      );
    });
    await new Promise((resolve) => setTimeout(resolve, 50));
    const before = held.calls;
    await new Promise((resolve) => setTimeout(resolve, 4_000));
    expect(held.calls - before).toBeLessThanOrEqual(8);
    controller.abort();
    const { ms } = await timed(Promise.all(waiting.filter((_, number) => number % 10 === 0)));
    expect(ms).toBeLessThan(SOON_MS);
    for (const respond of responses) respond();
    await first;
    await Promise.all(waiting);
    expect(order).toHaveLength(450);
    expect(order).toEqual([...order].sort((one, two) => one - two));
    expect(await budget.usage()).toMatchObject({ spentTokens: 451 * 12, reservedTokens: 0 });
  });

  test('share one queue even if their budgets are created for each request', async () => {
    const { held, store } = openHeldStore();
    const { client } = clientWithBudget(openService(), { maxTokens: 1_000 });
    const slow = client.withOptions({ budget: undefined, fetch: never });
    const create = () => {
      const budget = createBudget({ maxTokens: 1_000, scope: 'tenant-7', store });
      slow.videos.create(VIDEO, { budget }).catch(() => {});
    };
    create();
    await expect.poll(() => held.calls).toBe(4);
    for (let count = 0; count < 100; count++) create();
    await new Promise((resolve) => setTimeout(resolve, 50));
    const before = held.calls;
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    expect(held.calls - before).toBeLessThanOrEqual(4);
  });
});
