// The rules of a budget, pure: a store holds the state and makes each step atomic. src/redis/budget-script.ts says the same
// in Lua, and one table of cases holds both to it.
import type { BudgetPeriod, BudgetReply, BudgetScope, BudgetStep } from './budget-store.js';

/** A create that is not settled. */
export interface PendingCreate {
  /** `open`: not answered yet. `lost`: no answer will come, but the job may exist. */
  status: 'open' | 'lost';
  /** What it costs; null while that is unknown. */
  tokens: number | null;
  readonly priceClass: string;
  readonly holder: string;
  /** Until when an open one is waited for. */
  leaseEndMs: number;
}

/** A create that was answered. */
export interface SettledCreate {
  readonly jobId: string;
  tokens: number;
  readonly atMs: number;
}

/** A budget in its present period. It holds plain data and maps, so that a structured clone of it can be stored. */
export interface BudgetState {
  startMs: number;
  /** The tokens of all settled creates. */
  spentTokens: number;
  /** By idempotency key. */
  readonly pending: Map<string, PendingCreate>;
  /** By idempotency key, the oldest first. */
  readonly settled: Map<string, SettledCreate>;
  /** The keys of jobs, to give back what a job has cost when it ends uncharged. */
  readonly jobs: Map<string, string>;
  /** The last quote of each price class. Kept from period to period. */
  readonly prices: Map<string, number>;
}

/** A step, with what it needs to know. */
export interface BudgetTurn {
  readonly scope: BudgetScope;
  readonly step: BudgetStep;
  readonly nowMs: number;
}

/**
 * Unanswered creates go side by side while the budget would hold even if each cost this many times its learned price.
 * After that they go one by one, so that a price that has risen unseen passes the limit by one job at most.
 */
export const PRICE_MARGIN = 4;
/** How many leases a create of an unknown price has. */
export const UNKNOWN_LEASES = 4;
/** How long a settled create is remembered within its period, so that a rerun under its key is not counted again. */
export const REMEMBERED_MS = 7 * 24 * 60 * 60 * 1000;
const DAY_MS = 24 * 60 * 60 * 1000;

/** A budget of which nothing is spent. */
export function emptyBudget(): BudgetState {
  return {
    startMs: 0,
    spentTokens: 0,
    pending: new Map(),
    settled: new Map(),
    jobs: new Map(),
    prices: new Map(),
  };
}

/** Makes a step: changes `state`, and tells what it has led to. */
export function applyBudgetStep(state: BudgetState, turn: BudgetTurn): BudgetReply {
  const { step, nowMs } = turn;
  beginPeriod(state, turn);
  for (const create of state.pending.values()) {
    if (create.status === 'open' && create.leaseEndMs <= nowMs) lose(state, create);
  }
  if (step.op === 'reserve') return reserve(state, turn, step);
  if (step.op === 'settle') settle(state, step, nowMs);
  else if (step.op === 'refund') refund(state, step.jobId);
  else if (step.op !== 'look') {
    const create = state.pending.get(step.key);
    if (create && step.op === 'release') {
      const isOwn = create.status === 'open' && create.holder === step.holder;
      if (step.holder === null || isOwn) state.pending.delete(step.key);
    } else if (create?.status === 'open') lose(state, create);
  }
  return replyOf(state, turn, { outcome: 'done', tokens: null });
}

function reserve(state: BudgetState, turn: BudgetTurn, step: BudgetStep & { op: 'reserve' }): BudgetReply {
  const { scope, nowMs } = turn;
  const { key, holder, priceClass } = step;
  const reply = (outcome: BudgetReply['outcome'], tokens: number | null) => replyOf(state, turn, { outcome, tokens });
  const settled = state.settled.get(key);
  if (settled) return reply('held', settled.tokens);
  const pending = state.pending.get(key);
  if (pending) {
    Object.assign(pending, { status: 'open', leaseEndMs: leaseEnd(pending.tokens, turn, step.leaseMs) });
    return reply('held', pending.tokens);
  }
  const tokens = state.prices.get(priceClass) ?? step.guessedTokens;
  if (tokens === null && step.refusesUnknown) return reply('unknown', null);
  const left = scope.maxTokens - state.spentTokens - sumOf(state.pending.values());
  if (tokens === null ? left <= 0 : tokens > left) return reply('refused', tokens);
  const open = [...state.pending.values()].filter(({ status }) => status === 'open');
  const unanswered = sumOf(open);
  const mayGo =
    tokens === null
      ? open.every((create) => create.tokens !== null)
      : open.length === 0 || PRICE_MARGIN * (unanswered + tokens) <= left + unanswered;
  if (!mayGo) return reply('wait', tokens);
  if (state.startMs === 0 && typeof scope.per === 'number') state.startMs = nowMs;
  state.pending.set(key, {
    status: 'open',
    tokens,
    priceClass,
    holder,
    leaseEndMs: leaseEnd(tokens, turn, step.leaseMs),
  });
  return reply('reserved', tokens);
}

/** A create that is to tell a price is waited for longer, because the others depend on it. */
function leaseEnd(tokens: number | null, { nowMs }: BudgetTurn, leaseMs: number): number {
  return nowMs + (tokens === null ? UNKNOWN_LEASES : 1) * leaseMs;
}

function settle(state: BudgetState, step: BudgetStep & { op: 'settle' }, nowMs: number): void {
  const { key, jobId, priceClass, quotedTokens } = step;
  if (quotedTokens !== null) {
    state.prices.set(priceClass, quotedTokens);
    for (const create of state.pending.values()) if (create.priceClass === priceClass) create.tokens ??= quotedTokens;
  }
  const create = state.pending.get(key);
  if (!create) return;
  const tokens = step.isEarlier ? 0 : (step.tokens ?? create.tokens ?? highestPrice(state));
  state.pending.delete(key);
  state.settled.set(key, { jobId, tokens, atMs: nowMs });
  state.jobs.set(jobId, key);
  state.spentTokens += tokens;
  for (const [oldest, { jobId: job, atMs }] of state.settled) {
    if (atMs > nowMs - REMEMBERED_MS) break;
    state.settled.delete(oldest);
    state.jobs.delete(job);
  }
}

function refund(state: BudgetState, jobId: string): void {
  const create = state.settled.get(state.jobs.get(jobId) ?? '');
  if (!create) return;
  state.spentTokens -= create.tokens;
  create.tokens = 0;
}

/** A create whose price was never told is taken to cost as much as the dearest one. */
function lose(state: BudgetState, create: PendingCreate): void {
  create.status = 'lost';
  create.tokens ??= state.prices.get(create.priceClass) ?? highestPrice(state);
}

function highestPrice({ prices }: BudgetState): number {
  return Math.max(0, ...prices.values());
}

/** Forgets the creates of a period that has passed. */
function beginPeriod(state: BudgetState, { scope, nowMs }: BudgetTurn): void {
  const { startMs } = periodAt(scope.per, { nowMs, startMs: state.startMs });
  const isOver = startMs === 0 && state.startMs > 0 && typeof scope.per === 'number';
  // A clock that is set back does not give the tokens of the present period again.
  if (startMs <= state.startMs && !isOver) return;
  state.startMs = startMs;
  state.spentTokens = 0;
  state.pending.clear();
  state.settled.clear();
  state.jobs.clear();
}

function replyOf(
  state: BudgetState,
  { scope, nowMs }: BudgetTurn,
  result: Pick<BudgetReply, 'outcome' | 'tokens'>,
): BudgetReply {
  const { startMs, spentTokens } = state;
  const { endMs } = periodAt(scope.per, { nowMs: Math.max(nowMs, startMs), startMs });
  return { ...result, spentTokens, reservedTokens: sumOf(state.pending.values()), startMs, endMs };
}

/** The period at a time. One that is a number of milliseconds goes on from `startMs`, 0 for one that has not begun. */
function periodAt(
  per: BudgetPeriod,
  { nowMs, startMs }: { readonly nowMs: number; readonly startMs: number },
): { readonly startMs: number; readonly endMs: number | null } {
  if (per === 'total') return { startMs: 0, endMs: null };
  if (per === 'day') {
    const day = Math.floor(nowMs / DAY_MS) * DAY_MS;
    return { startMs: day, endMs: day + DAY_MS };
  }
  if (per === 'month') {
    const now = new Date(nowMs);
    const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()];
    return { startMs: Date.UTC(year, month), endMs: Date.UTC(year, month + 1) };
  }
  return startMs > 0 && nowMs < startMs + per ? { startMs, endMs: startMs + per } : { startMs: 0, endMs: null };
}

function sumOf(creates: Iterable<PendingCreate>): number {
  let sum = 0;
  for (const { tokens } of creates) sum += tokens ?? 0;
  return sum;
}
