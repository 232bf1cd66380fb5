// A budget in a shared store: the ledger of its scope, each answered create under a key of its own, and the scopes of a job.
import { takeBudgetStep } from '../rules/budget.js';
import {
  type BudgetPeriod,
  type BudgetReply,
  type BudgetState,
  type BudgetTurn,
  EMPTY_BUDGET,
  keptMs,
  type PendingCreate,
  REMEMBERED_MS,
  type SettledCreate,
} from '../rules/budget-state.js';
import type { Decision, StoredValues } from '../store/store.js';

/** The key of a group that contains the state of a budget. */
const LEDGER = 'ledger';
/** The key of a group that contains the creates of a job. */
const CREATES_KEY = 'creates';

/** The group of a budget. */
export function groupOf(scope: string): string {
  return `budget/${scope}`;
}

/** The budget of a group; undefined for a group of something else. */
export function scopeOf(group: string): string | undefined {
  return group.startsWith(groupOf('')) ? group.slice(groupOf('').length) : undefined;
}

/** The group of a job that budgets have counted. */
export function jobGroupOf(jobId: string): string {
  return `budget-job/${jobId}`;
}

/** The keys that the steps depend on. */
export function keysOf(turns: readonly Omit<BudgetTurn, 'nowMs'>[]): readonly string[] {
  const keys = turns.flatMap(({ step }) => ('key' in step ? [step.key] : []));
  return [LEDGER, ...new Set(keys.map(settledKey))];
}

/** Makes the steps in order, up to the first reserve that has to wait. */
export function takeSteps(
  turns: readonly Omit<BudgetTurn, 'nowMs'>[],
  { values, nowMs }: StoredValues,
): Decision<readonly BudgetReply[]> {
  const before = readBudget(values);
  let state = before;
  const replies: BudgetReply[] = [];
  for (const turn of turns) {
    const taken = takeBudgetStep(state, { ...turn, nowMs });
    state = taken.state;
    replies.push(taken.reply);
    if (taken.reply.outcome === 'wait') break;
  }
  // To look at a budget changes nothing: it may be done by another clock than that of its clients.
  if (turns.every(({ step }) => step.op === 'look')) return { changes: {}, result: replies };
  const changes: Record<string, { value: string; ttlMs: number }> = {};
  const ledger = writeLedger(state);
  if (ledger !== (values[LEDGER] ?? writeLedger(EMPTY_BUDGET))) {
    changes[LEDGER] = { value: ledger, ttlMs: keptMs(turns[0]?.scope.per ?? 'total') };
  }
  for (const [key, settled] of state.settled) {
    if (before.settled.get(key) === settled) continue;
    changes[settledKey(key)] = { value: JSON.stringify(settled), ttlMs: REMEMBERED_MS };
  }
  return { changes, result: replies };
}

/** A create of a job: the name and the period of the budget that has counted it, and its idempotency key. */
export type JobCreate = readonly [name: string, key: string, per: BudgetPeriod];

/** The key of {@link jobGroupOf}. */
export const JOB_KEYS: readonly string[] = [CREATES_KEY];

/** The creates of a job. */
export function readCreates({ values }: StoredValues): readonly JobCreate[] {
  return values[CREATES_KEY] === undefined ? [] : JSON.parse(values[CREATES_KEY]);
}

/** Adds creates to those of a job. */
export function addCreates(seen: StoredValues, added: readonly JobCreate[]): Decision<undefined> {
  const known = readCreates(seen);
  const isNew = ([name, key]: JobCreate) => !known.some((it) => it[0] === name && it[1] === key);
  const creates = [...known, ...added.filter(isNew)];
  if (creates.length === known.length) return { changes: {}, result: undefined };
  return { changes: { [CREATES_KEY]: { value: JSON.stringify(creates), ttlMs: REMEMBERED_MS } }, result: undefined };
}

function settledKey(key: string): string {
  return `create/${key}`;
}

type Entries<T> = readonly (readonly [string, T])[];

/** The state as JSON. */
interface Ledger {
  readonly startMs: number;
  readonly spentTokens: number;
  readonly pending: Entries<Omit<PendingCreate, 'holders'> & { readonly holders: Entries<number> }>;
  readonly unpriced: Entries<SettledCreate>;
  readonly prices: Entries<number>;
}

/** A budget, from the values of its group. */
export function readBudget(values: StoredValues['values']): BudgetState {
  const settled = new Map(
    Object.entries(values)
      .filter(([name]) => name !== LEDGER)
      .map(([name, value]): [string, SettledCreate] => [name.slice(settledKey('').length), JSON.parse(value)]),
  );
  if (values[LEDGER] === undefined) return { ...EMPTY_BUDGET, settled };
  const { pending, unpriced, prices, ...ledger }: Ledger = JSON.parse(values[LEDGER]);
  return {
    ...ledger,
    pending: new Map(pending.map(([key, { holders, ...rest }]) => [key, { ...rest, holders: new Map(holders) }])),
    unpriced: new Map(unpriced),
    prices: new Map(prices),
    settled,
  };
}

function writeLedger({ startMs, spentTokens, pending, unpriced, prices }: BudgetState): string {
  const ledger: Ledger = {
    startMs,
    spentTokens,
    pending: [...pending].map(([key, { holders, ...rest }]) => [key, { ...rest, holders: [...holders] }]),
    unpriced: [...unpriced],
    prices: [...prices],
  };
  return JSON.stringify(ledger);
}
