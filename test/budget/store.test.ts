// A budget whose store hangs or fails, and the number of its store requests.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createBudget, GenError } from '../../src/index.js';
import { createStore, memoryStore } from '../../src/ledger/stores.js';
import { advanceUntil } from '../support/advance-until.js';
import { errorOf } from '../support/rejection.js';
import { never } from '../transport/support.js';
import { clientWithBudget, openService, type ServiceOptions, VIDEO } from './service.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Opens a store that counts its requests and can hang. */
function openHangingStore() {
  const memory = memoryStore();
  const hang = () => new Promise<never>(() => {});
  const state = { hangs: 'nothing' as 'nothing' | 'reads' | 'writes', calls: 0 };
  const store = createStore({
    read(...args) {
      state.calls += 1;
      return state.hangs === 'reads' ? hang() : memory.read(...args);
    },
    write(...args) {
      state.calls += 1;
      return state.hangs === 'writes' ? hang() : memory.write(...args);
    },
  });
  return { state, store };
}

function openClient(options: ServiceOptions = {}, maxTokens = 100) {
  const { state, store } = openHangingStore();
  const service = openService(options);
  return { state, service, ...clientWithBudget(service, { maxTokens, store }) };
}

/** Advances the time until the call settles. Returns its duration and its error. */
async function measure(call: Promise<unknown>): Promise<{ readonly ms: number; readonly error: unknown }> {
  const startMs = Date.now();
  const error = await advanceUntil(errorOf(call), 50);
  return { ms: Date.now() - startMs, error };
}

describe.each(['reads', 'writes'] as const)('a store whose %s hang', (hangs) => {
  test("doesn't delay an abort, and the create isn't sent", async () => {
    const { state, service, client } = openClient();
    state.hangs = hangs;
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 200);
    const { ms, error } = await measure(client.videos.create(VIDEO, { signal: controller.signal }));
    expect(error).toMatchObject({ name: 'AbortError' });
    expect(ms).toBeLessThanOrEqual(250);
    expect(service.jobs.size).toBe(0);
  });

  test("rejects a create after the store's timeout, and the error states that nothing was sent", async () => {
    const { state, client } = openClient();
    state.hangs = hangs;
    const { ms, error } = await measure(client.videos.create(VIDEO, { timeoutMs: 200 }));
    expect(error).toMatchObject({
      name: 'ConnectionError',
      attempts: 0,
      message: expect.stringContaining('was not sent: the store could not record it (The store did not respond within'),
    });
    expect(ms).toBeLessThanOrEqual(2_100);
  });

  test("delays a paid create's response by at most two seconds, and records it later", async () => {
    const { state, service, client, budget } = openClient();
    const hanging = client.withOptions({
      fetch(input, init) {
        state.hangs = hangs;
        return service.fetch(input, init);
      },
    });
    const { ms, error } = await measure(hanging.videos.create(VIDEO));
    expect(error).toBeUndefined();
    expect(ms).toBeLessThanOrEqual(2_100);
    state.hangs = 'nothing';
    expect(await advanceUntil(budget.usage())).toMatchObject({ spentTokens: 12, reservedTokens: 0 });
  });

  test("delays a failed job's poll by at most two seconds, and records it later", async () => {
    const { state, client, budget } = openClient({ polledFields: () => ({ status: 'failed' }) });
    const { job } = await client.videos.create(VIDEO);
    state.hangs = hangs;
    const { ms, error } = await measure(client.jobs.get(job.id));
    expect(error).toBeUndefined();
    expect(ms).toBeLessThanOrEqual(2_100);
    state.hangs = 'nothing';
    await vi.advanceTimersByTimeAsync(15_000);
    expect(await budget.usage()).toMatchObject({ spentTokens: 0 });
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
  test('are sent in order, poll the store at most twice a second in total, and reject immediately on an abort', async () => {
    const responses: (() => void)[] = [];
    const { state, service, client, budget } = openClient({}, 10_000);
    const slow = client.withOptions({
      fetch: async (input, init) => {
        await new Promise<void>((resolve) => responses.push(resolve));
        return service.fetch(input, init);
      },
    });
    const first = slow.videos.create(VIDEO);
    await vi.advanceTimersByTimeAsync(50);
    expect(responses).toHaveLength(1);
    const controller = new AbortController();
    const order: number[] = [];
    const waiting = Array.from({ length: 200 }, async (_, number) => {
      const signal = number % 10 === 0 ? controller.signal : undefined;
      await client.videos.create(VIDEO, signal && { signal }).then(
        () => order.push(number),
        () => {},
      );
    });
    await vi.advanceTimersByTimeAsync(50);
    const callsBefore = state.calls;
    await vi.advanceTimersByTimeAsync(4_000);
    expect(state.calls - callsBefore).toBeLessThanOrEqual(8);
    controller.abort();
    const { ms } = await measure(Promise.all(waiting.filter((_, number) => number % 10 === 0)));
    expect(ms).toBeLessThanOrEqual(50);
    for (const respond of responses) respond();
    await advanceUntil(Promise.all([first, ...waiting]));
    expect(order).toHaveLength(180);
    expect(order).toEqual([...order].sort((one, two) => one - two));
    expect(await budget.usage()).toMatchObject({ spentTokens: 181 * 12, reservedTokens: 0 });
  });

  test('share one queue even if their budgets are created for each request', async () => {
    const { state, store } = openHangingStore();
    const { client } = clientWithBudget(openService(), { maxTokens: 1_000 });
    const slow = client.withOptions({ budget: undefined, fetch: never });
    const create = () => {
      const budget = createBudget({ maxTokens: 1_000, scope: 'tenant-7', store });
      slow.videos.create(VIDEO, { budget }).catch(() => {});
    };
    create();
    await vi.advanceTimersByTimeAsync(50);
    expect(state.calls).toBe(4);
    for (let count = 0; count < 100; count++) create();
    await vi.advanceTimersByTimeAsync(50);
    const callsBefore = state.calls;
    await vi.advanceTimersByTimeAsync(2_000);
    expect(state.calls - callsBefore).toBeLessThanOrEqual(4);
  });
});
