// Budgets in the storage of a Durable Object: a step reads the rows that it needs, follows the rules of src/budget, and
// writes the rows that it has changed.
import { applyBudgetStep, type BudgetState, emptyBudget, REMEMBERED_MS } from '../budget/budget-state.js';
import type { BudgetReply, BudgetScope, BudgetStep } from '../budget/budget-store.js';
import type { SqlRow, SqlStorageLike } from './sql.js';

/** All budgets of an account. */
export interface BudgetTable {
  /** Makes a step. The same step twice is the same as once. */
  apply(scope: BudgetScope, step: BudgetStep): BudgetReply;
}

/** What is read for a step. */
interface Reading {
  readonly name: string;
  readonly step: BudgetStep;
  readonly nowMs: number;
}

/** The columns of a create after its scope and key: status, tokens, at, class, holder, job. */
type CreateValues = readonly (string | number | null)[];

/** A budget that nobody has used for so long after the end of its period is forgotten, with the prices it has learned. */
const FORGOTTEN_MS = 40 * 24 * 60 * 60 * 1000;

// `at`: of an open create the end of its lease; of a settled one when it was settled. `forget`: null for a budget without end.
const SCHEMA = `
CREATE TABLE IF NOT EXISTS budgets (scope TEXT PRIMARY KEY, start INTEGER NOT NULL, spent REAL NOT NULL, forget INTEGER)
WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS budgets_by_end ON budgets (forget);
CREATE TABLE IF NOT EXISTS budget_creates (scope TEXT NOT NULL, key TEXT NOT NULL, status TEXT NOT NULL, tokens REAL,
  at INTEGER NOT NULL, class TEXT, holder TEXT, job TEXT, PRIMARY KEY (scope, key)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS budget_creates_by_status ON budget_creates (scope, status, at);
CREATE INDEX IF NOT EXISTS budget_creates_by_job ON budget_creates (scope, job);
CREATE TABLE IF NOT EXISTS budget_prices (scope TEXT NOT NULL, class TEXT NOT NULL, tokens REAL NOT NULL,
  PRIMARY KEY (scope, class)) WITHOUT ROWID;`;

/** The creates that a step can change: those to forget, those that are not settled, and its own. */
function createsFor(sql: SqlStorageLike, { name, step, nowMs }: Reading): SqlRow[] {
  // Without a named index SQLite reads every create of the scope.
  const select = (where: string, value: string | number) =>
    sql.exec(`SELECT * FROM budget_creates ${where}`, name, value).toArray();
  const byStatus = 'INDEXED BY budget_creates_by_status WHERE scope = ? AND status =';
  return [
    // First, because the oldest is looked for first.
    ...select(`${byStatus} 'settled' AND at <= ? ORDER BY at`, nowMs - REMEMBERED_MS),
    ...select(`${byStatus} ?`, 'open'),
    ...select(`${byStatus} ?`, 'lost'),
    ...('key' in step ? select('WHERE scope = ? AND key = ?', step.key) : []),
    ...('jobId' in step ? select('INDEXED BY budget_creates_by_job WHERE scope = ? AND job = ?', step.jobId) : []),
  ];
}

/** Opens the tables. `now` gives milliseconds. */
export function openBudgetTable(sql: SqlStorageLike, now: () => number): BudgetTable {
  sql.exec(SCHEMA);
  return {
    apply(scope, step) {
      const nowMs = now();
      forgetOld(sql, nowMs);
      const state = readBudget(sql, { name: scope.name, step, nowMs });
      const { startMs } = state;
      const stored = { creates: createsIn(state), prices: new Map(state.prices) };
      // Begins the period where a new one is due, which the step does not tell.
      applyBudgetStep(state, { scope, step: { op: 'look' }, nowMs });
      if (state.startMs !== startMs) {
        sql.exec('DELETE FROM budget_creates WHERE scope = ?', scope.name);
        stored.creates.clear();
      }
      const reply = applyBudgetStep(state, { scope, step, nowMs });
      const forget = scope.per === 'total' ? null : Math.ceil(Math.max(nowMs, reply.endMs ?? 0)) + FORGOTTEN_MS;
      putBudget(sql, scope.name, [state.startMs, state.spentTokens, forget]);
      putCreates(sql, scope.name, { before: stored.creates, after: createsIn(state) });
      for (const [priceClass, tokens] of state.prices)
        if (stored.prices.get(priceClass) !== tokens)
          sql.exec('INSERT OR REPLACE INTO budget_prices VALUES (?, ?, ?)', scope.name, priceClass, tokens);
      return reply;
    },
  };
}

function readBudget(sql: SqlStorageLike, reading: Reading): BudgetState {
  const { name } = reading;
  const state = emptyBudget();
  for (const { start, spent } of sql.exec('SELECT start, spent FROM budgets WHERE scope = ?', name).toArray())
    Object.assign(state, { startMs: Number(start), spentTokens: Number(spent) });
  for (const row of createsFor(sql, reading)) {
    const [id, jobOf, tokens] = [String(row.key), String(row.job), row.tokens === null ? null : Number(row.tokens)];
    if (row.status === 'settled') {
      state.settled.set(id, { jobId: jobOf, tokens: tokens ?? 0, atMs: Number(row.at) });
      state.jobs.set(jobOf, id);
    } else {
      const [status, priceClass, holder] = [row.status === 'open' ? 'open' : 'lost', row.class, row.holder] as const;
      const leaseEndMs = Number(row.at);
      state.pending.set(id, { status, tokens, priceClass: String(priceClass), holder: String(holder), leaseEndMs });
    }
  }
  for (const row of sql.exec('SELECT class, tokens FROM budget_prices WHERE scope = ?', name).toArray())
    state.prices.set(String(row.class), Number(row.tokens));
  return state;
}

function createsIn({ pending, settled }: BudgetState): Map<string, CreateValues> {
  const rows = new Map<string, CreateValues>();
  for (const [key, { status, tokens, priceClass, holder, leaseEndMs }] of pending)
    rows.set(key, [status, tokens, leaseEndMs, priceClass, holder, null]);
  for (const [key, { jobId, tokens, atMs }] of settled) rows.set(key, ['settled', tokens, atMs, null, null, jobId]);
  return rows;
}

/** A write costs more than a read, so that rows that stay as they are stay unwritten. */
function putBudget(sql: SqlStorageLike, name: string, values: readonly (number | null)[]): void {
  const same = 'SELECT 1 FROM budgets WHERE scope = ? AND start = ? AND spent = ? AND forget IS ?';
  if (sql.exec(same, name, ...values).toArray().length > 0) return;
  sql.exec('INSERT OR REPLACE INTO budgets VALUES (?, ?, ?, ?)', name, ...values);
}

function putCreates(
  sql: SqlStorageLike,
  name: string,
  { before, after }: Readonly<Record<'before' | 'after', ReadonlyMap<string, CreateValues>>>,
): void {
  for (const key of before.keys())
    if (!after.has(key)) sql.exec('DELETE FROM budget_creates WHERE scope = ? AND key = ?', name, key);
  for (const [key, values] of after)
    if (values.some((value, at) => value !== before.get(key)?.[at]))
      sql.exec('INSERT OR REPLACE INTO budget_creates VALUES (?, ?, ?, ?, ?, ?, ?, ?)', name, key, ...values);
}

function forgetOld(sql: SqlStorageLike, nowMs: number): void {
  for (const { scope } of sql.exec('SELECT scope FROM budgets WHERE forget <= ?', nowMs).toArray())
    for (const table of ['budgets', 'budget_creates', 'budget_prices'])
      sql.exec(`DELETE FROM ${table} WHERE scope = ?`, String(scope));
}
