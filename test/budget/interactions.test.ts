// Interactions: two budgets, two processes, a budget with resume, and a store that hangs.
import { GenClient } from 'gen-client';
import { describe, expect, it, vi } from 'vitest';
import { createStore } from '../../src/ledger/stores.js';
import type { Store } from '../../src/store/store.js';
import { PRICE, resumeAll, simulate, unfinishedKeys, VIDEO } from '../store/simulation.js';
import { deferred } from '../support/deferred.js';
import { scopedBudget } from '../support/scoped-budget.js';
import { BASE_URL, freshKey } from '../transport/support.js';
import { settle } from '../waiting/virtual-clock.js';

const failure = { status: 'failed', errorCode: 'generation_rejected' };
/** Creates a budget in a store. */
const budgetIn = (store: Store, scope: string, maxTokens = 1_000) => scopedBudget({ scope, maxTokens, store });

describe('two budgets of one call', () => {
  it('are checked in one transaction, in either order, so no create waits for another', async () => {
    const { clock, open, jobs } = simulate();
    const { client, store } = open();
    const [day, tenant] = [budgetIn(store, 'day'), budgetIn(store, 'tenant')];
    const web = client.withOptions({ budget: day });
    const cron = client.withOptions({ budget: tenant });
    await clock.until(
      Promise.all([web.videos.create(VIDEO, { budget: tenant }), cron.videos.create(VIDEO, { budget: day })]),
    );
    expect(jobs.size).toBe(2);
    expect(await day.usage()).toMatchObject({ spentTokens: 2 * PRICE, reservedTokens: 0 });
  });

  it("let one tenant's create proceed while another tenant waits for a price", async () => {
    const responses: (() => void)[] = [];
    const { clock, open } = simulate();
    const { client: withBudget, fetch, store } = open();
    const client = withBudget.withOptions({ budget: undefined });
    const slow = client.withOptions({
      fetch: (url, init) => new Promise((resolve) => responses.push(() => resolve(fetch(url, init)))),
    });
    const [full, other] = [budgetIn(store, 'full'), budgetIn(store, 'other')];
    const first = slow.videos.create(VIDEO, { budget: full });
    await clock.advance(10);
    const waiting = client.videos.create(VIDEO, { budget: full });
    await clock.advance(10);
    await clock.until(client.videos.create(VIDEO, { budget: other }));
    for (const respond of responses) respond();
    await clock.until(Promise.all([first, waiting]));
  });
});

it('resume() affects no creates in flight, whether of its process or of another', async () => {
  const { promise: responded, resolve: respond } = deferred();
  const { clock, open, posted } = simulate();
  const first = open();
  const slow = first.client.withOptions({ fetch: (url, init) => responded.then(() => first.fetch(url, init)) });
  const call = slow.videos.createAndWait(VIDEO, { idempotencyKey: 'order-1' });
  await clock.advance(10);
  for (const { client } of [open(), first])
    expect(await clock.until(resumeAll(client))).toEqual({ keys: [], errors: [] });
  respond();
  await clock.until(call);
  expect(posted).toEqual(['order-1']);
});

it("a crashed process's create can be retried with its key while another create waits for its price", async () => {
  const { clock, open, state } = simulate();
  const first = open();
  state.respond = () => 'never';
  first.client.videos.create(VIDEO, { idempotencyKey: 'order-1' }).catch(() => {});
  await clock.advance(10);
  first.life.isDead = true;
  state.respond = () => 'created';
  const { client, budget } = open();
  const startMs = clock.now();
  const waiting = client.videos.create(VIDEO);
  const retried = client.videos.create(VIDEO, { idempotencyKey: 'order-1' });
  // The clock jumps to its next timer, so first finish all work that needs no timer.
  for (let turn = 0; turn < 20; turn++) await settle();
  await clock.until(Promise.all([waiting, retried]));
  expect(clock.now() - startMs).toBeLessThan(2_000);
  expect(await budget.usage()).toMatchObject({ spentTokens: 2 * PRICE, reservedTokens: 0 });
});

it('a failure is recorded as delivered only after its call rejects', async () => {
  const { clock, open, state } = simulate();
  state.outcomes = [failure];
  const first = open();
  let isReported = false;
  let writes = 0;
  const store: Store = {
    ...first.store,
    write: (...args) => {
      writes += Number(isReported);
      return first.store.write(...args);
    },
  };
  const client = first.client.withOptions({ store });
  const call = client.videos.createAndWait(VIDEO).catch(() => {
    isReported = true;
  });
  await clock.until(call);
  await clock.advance(100);
  expect([isReported, writes > 0]).toEqual([true, true]);
  expect(await unfinishedKeys(client)).toEqual([]);
});

it.each([1_000, 3_000, 6_000, 12_000, 25_000])(
  "writes that failed for %i ms are replayed in order: a job's price, then its refund",
  async (outageMs) => {
    let isDisconnected = false;
    const { clock, open, state } = simulate();
    state.outcomes = [failure];
    state.respond = () => {
      isDisconnected = true;
      return 'created';
    };
    const { client, store } = open();
    const failing: Store = {
      ...store,
      read: (...args) => (isDisconnected ? Promise.reject(new Error('disconnected')) : store.read(...args)),
    };
    const budget = budgetIn(failing, 'team', 100);
    const affected = client.withOptions({ store: failing, budget });
    const { job } = await clock.until(affected.videos.create(VIDEO));
    await clock.until(affected.jobs.get(job.id));
    await clock.advance(outageMs);
    isDisconnected = false;
    await clock.advance(20_000);
    expect(await clock.until(budget.usage())).toMatchObject({ spentTokens: 0, reservedTokens: 0 });
  },
);

it('concurrent creates share their transactions', async () => {
  const { clock, open, jobs } = simulate();
  const { client, store } = open();
  const read = vi.fn(store.read);
  const counted: Store = { ...store, read };
  const budget = scopedBudget({ maxTokens: 1e6, store: counted, unknownPrice: () => PRICE });
  const counting = client.withOptions({ store: counted, budget });
  await clock.until(counting.videos.create(VIDEO));
  read.mockClear();
  await clock.until(Promise.all(Array.from({ length: 200 }, () => counting.videos.create(VIDEO))));
  expect(jobs.size).toBe(201);
  expect(read.mock.calls.length).toBeLessThan(60);
});

it('a store that hangs after a response delays the call by two seconds in total (real time)', async () => {
  let hangs = false;
  const { open, state } = simulate();
  const { store, fetch } = open();
  const hanging = createStore({
    read: (...args) => (hangs ? new Promise(() => {}) : store.read(...args)),
    write: (...args) => (hangs ? new Promise(() => {}) : store.write(...args)),
  });
  state.respond = () => {
    hangs = true;
    return 'created';
  };
  const options = { apiKey: freshKey(), baseUrl: BASE_URL, fetch, rateLimit: 'off' as const };
  const client = new GenClient({
    ...options,
    store: hanging,
    budget: scopedBudget({ maxTokens: 100, store: hanging }),
  });
  const startMs = performance.now();
  await client.videos.createAndWait(VIDEO, { pollIntervalMs: 50 });
  const tookMs = performance.now() - startMs;
  expect(tookMs).toBeGreaterThan(1_900);
  expect(tookMs).toBeLessThan(3_500);
}, 30_000);

it('a brief store outage rejects none of the creates that wait for a budget', async () => {
  const { clock, open, jobs } = simulate();
  const { client, life } = open({ budget: { maxTokens: 10_000 } });
  await clock.until(client.videos.create(VIDEO));
  const calls = Promise.allSettled(Array.from({ length: 60 }, () => client.videos.create(VIDEO)));
  life.isDisconnected = true;
  clock.after(50, () => {
    life.isDisconnected = false;
  });
  expect((await clock.until(calls)).filter(({ status }) => status === 'rejected')).toEqual([]);
  expect(jobs.size).toBe(61);
});

it("resume() times out even if the store doesn't respond", async () => {
  const { clock, open } = simulate();
  const { client, life } = open();
  life.isDead = true;
  const startMs = clock.now();
  const { errors } = await clock.until(resumeAll(client, { timeoutMs: 500 }));
  expect(errors).toMatchObject([{ name: 'TimeoutError', timeoutMs: 500 }]);
  expect(clock.now() - startMs).toBeLessThanOrEqual(501);
});
