// A budget with a hanging, failing, or slow store, and its number of store requests.
import { describe, expect, test } from 'vitest';
import { ConnectionError, createBudget, GenError } from '../../src/index.js';
import { createStore, memoryStore } from '../../src/ledger/stores.js';
import { errorOf } from '../support/rejection.js';
import { rejection } from '../transport/support.js';
import { clientWithBudget, openService, VIDEO } from './service.js';

/** Creates a store that can hold its calls, and counts them. */
function openHeldStore() {
  const kept = memoryStore();
  const never = new Promise<never>(() => {});
  const held = { hangs: 'nothing' as 'nothing' | 'reads' | 'writes', calls: 0 };
  const shared = createStore({
    read(...args) {
      held.calls += 1;
      return held.hangs === 'reads' ? never : kept.read(...args);
    },
    write(...args) {
      held.calls += 1;
      return held.hangs === 'writes' ? never : kept.write(...args);
    },
  });
  return { held, store: shared };
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
    const { held, store: shared } = openHeldStore();
    const service = openService();
    const { client } = clientWithBudget(service, { maxTokens: 100, store: shared });
    held.hangs = hangs;
    const { ms, error } = await timed(client.videos.create(VIDEO, { signal: AbortSignal.timeout(200) }));
    expect(error).toMatchObject({ name: 'TimeoutError' });
    expect(ms).toBeLessThan(SOON_MS);
    expect(service.jobs.size).toBe(0);
  });

  test("doesn't delay a timeout, and the error states that nothing was sent", async () => {
    const { held, store: shared } = openHeldStore();
    const { client } = clientWithBudget(openService(), { maxTokens: 100, store: shared });
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
    const { held, store: shared } = openHeldStore();
    const service = openService();
    const { client, budget } = clientWithBudget(service, { maxTokens: 100, store: shared });
    const going = client.withOptions({
      fetch(input, init) {
        held.hangs = hangs;
        return service.fetch(input, init);
      },
    });
    const { ms, error } = await timed(going.videos.create(VIDEO));
    expect(error).toBeUndefined();
    expect(ms).toBeLessThan(SOON_MS);
    held.hangs = 'nothing';
    expect(await budget.usage()).toMatchObject({ spentTokens: 12, reservedTokens: 0 });
  });

  test("delays a failed job's poll only briefly", async () => {
    const { held, store: shared } = openHeldStore();
    const service = openService({ polledFields: () => ({ status: 'failed' }) });
    const { client, budget } = clientWithBudget(service, { maxTokens: 100, store: shared });
    const { job } = await client.videos.create(VIDEO);
    held.hangs = hangs;
    const { ms, error } = await timed(client.jobs.get(job.id));
    expect(error).toBeUndefined();
    expect(ms).toBeLessThan(SOON_MS);
    held.hangs = 'nothing';
    await expect.poll(() => budget.usage(), { timeout: 15_000 }).toMatchObject({ spentTokens: 0 });
  });
});

test("the caller receives the store's configuration errors", async () => {
  const misconfigured = () => Promise.reject(new GenError('The user of Redis may not use EVAL. Allow +eval.'));
  const { client } = clientWithBudget(openService(), {
    maxTokens: 100,
    store: createStore({ read: misconfigured, write: misconfigured }),
  });
  const error = await rejection(client.videos.create(VIDEO));
  expect(error).toMatchObject({ message: 'The user of Redis may not use EVAL. Allow +eval.' });
});

describe('creates that wait for a budget', () => {
  test('are served in order, poll the store at most twice a second together, and leave immediately when aborted', async () => {
    const { held, store: shared } = openHeldStore();
    const responses: (() => void)[] = [];
    const service = openService();
    const { client, budget } = clientWithBudget(service, { maxTokens: 10_000, store: shared });
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
    const { ms } = await timed(
      (async () => {
        controller.abort();
        await Promise.all(waiting.filter((_, number) => number % 10 === 0));
      })(),
    );
    expect(ms).toBeLessThan(SOON_MS);
    for (const response of responses) response();
    await first;
    await Promise.all(waiting);
    expect(order).toHaveLength(450);
    expect(order).toEqual([...order].sort((one, two) => one - two));
    expect(await budget.usage()).toMatchObject({ spentTokens: 451 * 12, reservedTokens: 0 });
  });

  test('share one queue even if their budgets are created for each request', async () => {
    const { held, store: shared } = openHeldStore();
    const service = openService();
    const tenant = () => createBudget({ maxTokens: 1_000, scope: 'tenant-7', store: shared });
    const { client } = clientWithBudget(service, { maxTokens: 1_000 });
    const own = client.withOptions({ budget: undefined, fetch: () => new Promise<Response>(() => {}) });
    own.videos.create(VIDEO, { budget: tenant() }).catch(() => {});
    await expect.poll(() => held.calls).toBe(4);
    for (let count = 0; count < 100; count++) own.videos.create(VIDEO, { budget: tenant() }).catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 50));
    const before = held.calls;
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    expect(held.calls - before).toBeLessThanOrEqual(4);
  });
});
