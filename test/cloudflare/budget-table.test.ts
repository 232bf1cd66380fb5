// The budgets that the Durable Object keeps, on real SQLite and with the time held.
import { describe, expect, test } from 'vitest';
import { applyBudgetStep, emptyBudget, REMEMBERED_MS } from '../../src/budget/budget-state.js';
import type { BudgetScope, BudgetStep } from '../../src/budget/budget-store.js';
import { openBudgetTable } from '../../src/cloudflare/budget-table.js';
import { randomSteps } from '../budget/random-steps.js';
import { openSql } from './sqlite.js';

const START_MS = Date.parse('2026-02-27T21:00:00Z');
const DAY_MS = 86_400_000;

/** Budgets in one database that counts its writes and tells how it finds what it reads. The time is `at.ms`. */
function openBudgets() {
  const sql = openSql();
  const at = { ms: START_MS };
  let writes = 0;
  const plans = new Set<string>();
  const counting: typeof sql = {
    exec(query, ...values) {
      if (query.startsWith('SELECT'))
        for (const { detail } of sql.exec(`EXPLAIN QUERY PLAN ${query}`, ...values).toArray())
          plans.add(String(detail));
      if (/^(INSERT|DELETE)/.test(query)) writes++;
      return sql.exec(query, ...values);
    },
  };
  const rows = (table: string) => sql.exec(`SELECT * FROM ${table}`).toArray().length;
  const open = () => openBudgetTable(counting, () => at.ms);
  return { at, open, rows, plans, writes: () => writes };
}

const reserve = (key: string, holder = 'a'): BudgetStep => ({
  op: 'reserve',
  key,
  holder,
  priceClass: 'video',
  guessedTokens: null,
  refusesUnknown: false,
  leaseMs: 30_000,
});
const settle = (key: string): BudgetStep => ({
  op: 'settle',
  key,
  jobId: `job-${key}`,
  priceClass: 'video',
  tokens: 10,
  quotedTokens: 10,
  isEarlier: false,
});

describe('budgets in the object', () => {
  test.each([1, 2, 3, 4, 5, 6])(
    'follow the same rules as those in memory, each step asked twice and the object restarted (seed %i)',
    (seed) => {
      const { scope, steps } = randomSteps(seed);
      const state = emptyBudget();
      const { at, open } = openBudgets();
      // A neighbour of the same keys and jobs, which nothing of this may touch.
      const other: BudgetScope = { name: 'other', maxTokens: 50, per: 'total' };
      at.ms = steps[0]?.nowMs ?? 0;
      for (const key of ['key-1', 'key-2']) for (const step of [reserve(key), settle(key)]) open().apply(other, step);
      for (const [count, { step, nowMs }] of steps.entries()) {
        at.ms = nowMs;
        const expected = applyBudgetStep(state, { scope, step, nowMs });
        expect({ count, step, ...open().apply(scope, step) }).toEqual({ count, step, ...expected });
        const { outcome } = open().apply(scope, step);
        expect(outcome).toBe(expected.outcome === 'reserved' ? 'held' : expected.outcome);
        const look = applyBudgetStep(state, { scope, step: { op: 'look' }, nowMs });
        expect({ count, step, ...open().apply(scope, { op: 'look' }) }).toEqual({ count, step, ...look });
      }
      expect(open().apply(other, { op: 'look' })).toMatchObject({ spentTokens: 20, reservedTokens: 0 });
    },
  );

  test('forget a settled create after a week, so that a budget without end does not grow for ever', () => {
    const { at, open, rows } = openBudgets();
    const scope: BudgetScope = { name: 'a', maxTokens: 1_000, per: 'total' };
    for (let count = 0; count < 30; count++) {
      for (const step of [reserve(`key-${count}`), settle(`key-${count}`)]) open().apply(scope, step);
      at.ms += DAY_MS;
    }
    expect(rows('budget_creates')).toBe(REMEMBERED_MS / DAY_MS);
    expect(open().apply(scope, { op: 'look' })).toMatchObject({ spentTokens: 300 });
  });

  test('are forgotten 40 days after the end of their last period, and those without end never', () => {
    const { at, open, rows } = openBudgets();
    const used = (name: string, per: BudgetScope['per']) => {
      for (const step of [reserve('key'), settle('key')]) open().apply({ name, maxTokens: 100, per }, step);
    };
    for (const per of ['day', 'total', 3_600_000] as const) used(`by ${per}`, per);
    at.ms = Date.parse('2026-02-28T00:00:00Z') + 40 * DAY_MS - 1;
    open().apply({ name: 'another', maxTokens: 1, per: 'total' }, { op: 'look' });
    expect([rows('budgets'), rows('budget_prices'), rows('budget_creates')]).toEqual([3, 2, 2]);
    at.ms += 1;
    open().apply({ name: 'another', maxTokens: 1, per: 'total' }, { op: 'look' });
    expect([rows('budgets'), rows('budget_prices'), rows('budget_creates')]).toEqual([2, 1, 1]);
  });

  test('look no row up by its scope alone, so that a step costs the same however many creates are settled', () => {
    const { open, plans } = openBudgets();
    const scope: BudgetScope = { name: 'a', maxTokens: 1_000, per: 'total' };
    const steps: BudgetStep[] = [reserve('key'), settle('key'), { op: 'refund', jobId: 'job-key' }, { op: 'look' }];
    for (const step of steps) open().apply(scope, step);
    const ofCreates = [...plans].filter((plan) => plan.includes('budget_creates'));
    expect(ofCreates).toHaveLength(4);
    for (const plan of ofCreates) expect(plan).toMatch(/^SEARCH .*\(scope=\? AND /);
  });

  test('write only the rows that a step changes', () => {
    const { open, writes } = openBudgets();
    const scope: BudgetScope = { name: 'a', maxTokens: 1_000, per: 'day' };
    for (let count = 0; count < 20; count++)
      for (const step of [reserve(`key-${count}`), settle(`key-${count}`)]) open().apply(scope, step);
    for (let count = 20; count < 30; count++) open().apply(scope, reserve(`key-${count}`));
    const before = writes();
    open().apply(scope, { op: 'look' });
    expect(writes() - before).toBe(0);
    open().apply(scope, reserve('key-31'));
    expect(writes() - before).toBe(1);
    open().apply(scope, settle('key-31'));
    // The create and the sum.
    expect(writes() - before).toBe(3);
  });
});
