// Periods, leases, and clocks, in virtual time.
import { describe, expect, test } from 'vitest';
import type { BudgetOptions } from '../../src/index.js';
import { clientStore } from '../../src/ledger/client-ledger.js';
import { createStore } from '../../src/ledger/stores.js';
import { DOCUMENTED_LIMITS } from '../../src/rules/limits.js';
import { CLOCK, type Clock } from '../../src/runtime/clock.js';
import { createSandbox, type SandboxOptions } from '../../src/sandbox/index.js';
import { memoryStoreOn, type Store } from '../../src/store/store.js';
import { scopedBudget } from '../support/scoped-budget.js';
import { virtualClock } from '../waiting/virtual-clock.js';
import { createReserver, type Order } from './reserver.js';
import { VIDEO } from './service.js';

const DAY_MS = 86_400_000;

function openClient(options: BudgetOptions, sandboxOptions: Partial<SandboxOptions> = {}) {
  const sandbox = createSandbox({ clock: 'manual', prices: 10, balanceTokens: 1e9, limits: 'off', ...sandboxOptions });
  const budget = scopedBudget(options);
  const client = sandbox.client({ budget });
  const chargedFrom = (since: string) =>
    sandbox.jobs
      .filter(({ createdAt = '' }) => createdAt >= since)
      .reduce((sum, { quotedTokenCost = 0 }) => sum + quotedTokenCost, 0);
  return { sandbox, budget, client, chargedFrom };
}

describe("a budget's clock", () => {
  test("is the client's, and a daily limit counts separately from a total", async () => {
    const daily = scopedBudget({ maxTokens: 50, per: 'day' });
    const total = scopedBudget({ maxTokens: 100, per: 'total' });
    const sandbox = createSandbox({ clock: 'manual', prices: 10, limits: 'off' });
    const client = sandbox.client({ budget: daily, rateLimit: 'off' });
    for (let day = 0; day < 4; day++) {
      const calls = Array.from({ length: 6 }, () => client.videos.create(VIDEO, { budget: total, timeoutMs: 5_000 }));
      const rejected = (await Promise.allSettled(calls)).flatMap((call) =>
        call.status === 'rejected' ? [call.reason.code] : [],
      );
      expect(rejected).toEqual(Array(day < 2 ? 1 : 6).fill('budget_exceeded'));
      await sandbox.advance(25 * 3_600_000);
    }
    expect(sandbox.jobs).toHaveLength(10);
    expect(await total.usage()).toMatchObject({ spentTokens: 100, leftTokens: 0 });
  });

  test("is the shared store's, whatever the processes' clocks", async () => {
    const clock = virtualClock(Date.parse('2026-01-31T12:00:00Z'));
    const { read, write } = memoryStoreOn(clock);
    const { client } = openClient({ maxTokens: 10, per: 'day', store: createStore({ read, write }) });
    await client.videos.create(VIDEO);
    await expect(client.videos.create(VIDEO)).rejects.toMatchObject({ resetsAt: '2026-02-01T00:00:00.000Z' });
    await clock.advance(DAY_MS);
    await client.videos.create(VIDEO);
  });
});

describe('creates', () => {
  test('in flight when a period ends count in the period of their response', async () => {
    const midnight = '2026-03-02T00:00:00.000Z';
    // 400 creates fit before midnight.
    const startTime = Date.parse(midnight) - (400 / DOCUMENTED_LIMITS['videos.create'].limit) * 60_000;
    const options = { limits: 'documented', startTime } as const;
    const { sandbox, budget, client, chargedFrom } = openClient({ maxTokens: 5_000, per: 'day' }, options);
    await client.videos.create(VIDEO);
    const callsBefore = Promise.allSettled(Array.from({ length: 489 }, () => client.videos.create(VIDEO)));
    await sandbox.advance(30 * 60_000);
    await callsBefore;
    const afterMidnight = chargedFrom(midnight);
    expect(afterMidnight).toBeGreaterThan(0);
    expect(await budget.usage()).toMatchObject({ spentTokens: afterMidnight, reservedTokens: 0 });
    const callsAfter = Promise.allSettled(Array.from({ length: 600 }, () => client.videos.create(VIDEO)));
    await sandbox.advance(60 * 60_000);
    await callsAfter;
    expect(chargedFrom(midnight)).toBe(5_000);
  });

  test('reserve tokens while they are queued, so only one job exceeds the limit if the price rises', async () => {
    let price = 10;
    const { sandbox, client, chargedFrom } = openClient(
      { maxTokens: 1_000 },
      { limits: 'documented', prices: () => price },
    );
    await client.videos.create(VIDEO);
    const calls = Promise.allSettled(Array.from({ length: 120 }, () => client.videos.create(VIDEO)));
    await sandbox.advance(58_000);
    price = 30;
    await sandbox.advance(30 * 60_000);
    await calls;
    expect(chargedFrom('')).toBeLessThanOrEqual(1_030);
    expect(chargedFrom('')).toBeGreaterThan(900);
  });
});

/** Returns a clock, and a function that opens the budget in another process. The processes share a store. */
function simulateProcesses({ maxTokens, per = 'total' }: BudgetOptions) {
  const clock = virtualClock(Date.parse('2026-01-10T12:00:00Z'));
  const store = memoryStoreOn(clock);
  const open = () => {
    const process = { isDead: false };
    const never = new Promise<never>(() => {});
    const view: Store & { readonly [CLOCK]: Clock } = clientStore({
      [CLOCK]: clock,
      read: (...args) => (process.isDead ? never : store.read(...args)),
      write: (...args) => (process.isDead ? never : store.write(...args)),
    });
    const budget = scopedBudget({ scope: 'tenant', maxTokens, per, store: view });
    const reserver = createReserver(view, clock, { scope: 'tenant', per, maxTokens });
    const reserve = async (idempotencyKey: string, { learnedTokens }: Partial<Order> = { learnedTokens: 10 }) => {
      const reservation = await reserver.reserve({ learnedTokens, idempotencyKey });
      await reservation.send();
      return reservation;
    };
    return Object.assign(process, { budget, reserve });
  };
  return { clock, open };
}

describe('a lease', () => {
  test('of a crashed process expires after 30 seconds, but the tokens of its creates stay reserved', async () => {
    const { clock, open } = simulateProcesses({ maxTokens: 25 });
    const [first, second] = [open(), open()];
    await first.reserve('a');
    first.isDead = true;
    expect(await second.budget.usage()).toMatchObject({ reservedTokens: 10, unresolved: [] });
    await clock.advance(31_000);
    expect(await second.budget.usage()).toMatchObject({ reservedTokens: 10, unresolved: ['a'] });
    const next = await second.reserve('b');
    await next.accept({ jobId: 'job_b', quotedTokens: 10 });
    await expect(second.reserve('c')).rejects.toMatchObject({ code: 'budget_exceeded', leftTokens: 5 });
    // The retried key returns the existing job.
    const retry = await second.reserve('a');
    await retry.accept({ jobId: 'job_a', quotedTokens: 10 });
    expect(await second.budget.usage()).toMatchObject({ spentTokens: 20, reservedTokens: 0, unresolved: [] });
  });

  test('of a live process is renewed while its call is queued', async () => {
    const { clock, open } = simulateProcesses({ maxTokens: 100 });
    const [first, second] = [open(), open()];
    const reservation = await first.reserve('a');
    await clock.advance(600_000);
    expect(await second.budget.usage()).toMatchObject({ reservedTokens: 10, unresolved: [] });
    await reservation.fail({ error: new Error('aborted in its queue'), wasSent: false });
    await clock.advance(60_000);
    expect(await second.budget.usage()).toMatchObject({ reservedTokens: 0, unresolved: [] });
  });
});

test.each([
  ['day', '2026-01-12T00:00:00.000Z'],
  ['month', '2026-03-01T00:00:00.000Z'],
  ['total', '2026-01-11T12:00:00.000Z'],
  [3_600_000, '2026-01-10T14:00:00.000Z'],
] as const)(
  'the tokens of a create whose response was lost stay reserved until the end of the next period (%s)',
  async (per, end) => {
    const { clock, open } = simulateProcesses({ maxTokens: 100, per });
    const { budget, reserve } = open();
    await (await reserve('a')).fail({ error: new TypeError('terminated'), wasSent: true });
    await clock.advance(Date.parse(end) - clock.now() - 1);
    expect(await budget.usage()).toMatchObject({ reservedTokens: 10, unresolved: ['a'] });
    await clock.advance(1);
    expect(await budget.usage()).toMatchObject({ reservedTokens: 0, unresolved: [] });
  },
);

describe('a used idempotency key', () => {
  test('counts once within seven days, across periods', async () => {
    const { clock, open } = simulateProcesses({ maxTokens: 100, per: 'day' });
    const { budget, reserve } = open();
    const run = async () => (await reserve('order-1')).accept({ jobId: 'job_1', quotedTokens: 10 });
    await run();
    await run();
    expect(await budget.usage()).toMatchObject({ spentTokens: 10 });
    await clock.advance(6.9 * DAY_MS);
    await run();
    expect(await budget.usage()).toMatchObject({ spentTokens: 0, reservedTokens: 0 });
  });

  test('counts again if the service has deleted the key and creates another job', async () => {
    const { open } = simulateProcesses({ maxTokens: 100 });
    const { budget, reserve } = open();
    await (await reserve('order-1')).accept({ jobId: 'job_1', quotedTokens: 10 });
    await (await reserve('order-1')).accept({ jobId: 'job_2', quotedTokens: 10 });
    expect(await budget.usage()).toMatchObject({ spentTokens: 20 });
  });
});

test('a learned price survives its period', async () => {
  const { clock, open } = simulateProcesses({ maxTokens: 100, per: 'day' });
  const { reserve } = open();
  await (await reserve('a', {})).accept({ jobId: 'job_1', quotedTokens: 60 });
  await clock.advance(30 * DAY_MS);
  await (await reserve('b', {})).accept({ jobId: 'job_2', quotedTokens: undefined });
  await expect(reserve('c', {})).rejects.toMatchObject({ estimateTokens: 60, leftTokens: 40 });
});
