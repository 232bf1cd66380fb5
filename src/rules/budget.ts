// The rules of a budget: state and step give state. A shared store keeps the state, and src/budget/ drives the rules.
import {
  type BudgetReply,
  type BudgetScope,
  type BudgetState,
  type BudgetStep,
  type BudgetTurn,
  lostUntilMs,
  type PendingCreate,
  periodAt,
  type ReserveStep,
  type SettledCreate,
} from './budget-state.js';

/**
 * Creates go side by side while the budget would hold even if each cost this many times its learned price. After that they
 * go one by one, so that the first job after a price has risen is the only one that can pass the limit.
 */
const PRICE_MARGIN = 10;
/** A call that has not been renewed for so long counts as lost: its process died. */
const LEASE_MS = 30_000;
/** Price classes that a budget remembers. */
const MOST_PRICES = 250;

/** A state that is being changed. Its entries are replaced, never changed. */
interface Draft {
  startMs: number;
  spentTokens: number;
  readonly pending: Map<string, PendingCreate>;
  readonly unpriced: Map<string, SettledCreate>;
  readonly prices: Map<string, number>;
  readonly settled: Map<string, SettledCreate>;
}

/** Makes a step. */
export function takeBudgetStep(
  state: BudgetState,
  turn: BudgetTurn,
): { readonly state: BudgetState; readonly reply: BudgetReply } {
  const draft: Draft = {
    ...state,
    pending: new Map(state.pending),
    unpriced: new Map(state.unpriced),
    prices: new Map(state.prices),
    settled: new Map(state.settled),
  };
  passTime(draft, turn);
  const result = change(draft, turn);
  return { state: draft, reply: { ...result, ...standing(draft, turn) } };
}

type Result = Pick<BudgetReply, 'outcome' | 'tokens' | 'heldKey'>;

function change(draft: Draft, turn: BudgetTurn): Result {
  const { step } = turn;
  switch (step.op) {
    case 'reserve':
      return reserveShare(draft, turn, step);
    case 'settle':
      return settleCreate(draft, turn, step);
    case 'charge':
      charge(draft, turn, step);
      break;
    case 'fail':
      failCreate(draft, turn, step);
      break;
    case 'renew':
      for (const [key, holder] of step.calls) renew(draft, key, holder, turn.nowMs);
      break;
    case 'release':
      release(draft, step.key);
      break;
  }
  return { outcome: 'done', tokens: null };
}

/** Begins a new period, takes calls of dead processes for lost, and forgets lost creates after their time. */
function passTime(draft: Draft, { scope, nowMs }: BudgetTurn): void {
  for (const [key, create] of draft.pending) {
    const holders = new Map([...create.holders].filter(([, untilMs]) => untilMs > nowMs));
    if (holders.size === create.holders.size) continue;
    const lostMs = Math.max(...create.holders.values());
    // The time to be renewed in: its process may live, and the clock have jumped.
    const untilMs = Math.max(lostUntilMs(scope.per, Math.min(lostMs, nowMs), draft.startMs), nowMs + LEASE_MS);
    draft.pending.set(key, { ...create, holders, lostUntilMs: untilMs });
  }
  for (const [key, { holders, lostUntilMs: untilMs }] of draft.pending) {
    if (holders.size === 0 && untilMs !== null && untilMs <= nowMs) draft.pending.delete(key);
  }
  const { startMs } = periodAt(scope.per, nowMs, draft.startMs);
  const isOver = startMs === 0 && draft.startMs > 0 && typeof scope.per === 'number';
  // A clock that is set back does not give the tokens of the present period again.
  if (startMs <= draft.startMs && !isOver) return;
  draft.startMs = startMs;
  draft.spentTokens = 0;
  draft.unpriced.clear();
}

function reserveShare(draft: Draft, { scope, nowMs }: BudgetTurn, step: ReserveStep): Result {
  const { key, holder, priceClass, teaches } = step;
  const settled = draft.settled.get(key);
  if (settled) return { outcome: 'held', tokens: settled.tokens };
  const learned = teaches ? (draft.prices.get(priceClass) ?? step.knownTokens) : null;
  const heldKey = reservedKey(draft, key);
  const pending = draft.pending.get(heldKey);
  if (pending) {
    const tokens = pending.tokens ?? learned;
    const holders = new Map(pending.holders).set(holder, nowMs + LEASE_MS);
    draft.pending.set(heldKey, { ...pending, tokens, holders });
    return { outcome: 'held', tokens, ...(heldKey !== key && { heldKey }) };
  }
  const create = { tokens: learned ?? step.guessedTokens, isSure: learned !== null };
  const outcome = admission(draft, scope, { ...create, refusesUnknown: step.refusesUnknown });
  if (outcome === 'reserved') {
    if (draft.startMs === 0 && typeof scope.per === 'number') draft.startMs = nowMs;
    const holders = new Map([[holder, nowMs + LEASE_MS]]);
    draft.pending.set(key, { ...create, priceClass, holders, lostUntilMs: null });
  }
  return { outcome, tokens: create.tokens };
}

type Wanted = Pick<PendingCreate, 'tokens' | 'isSure'> & { readonly refusesUnknown: boolean };

/** Whether a create may be sent now. */
function admission({ pending, unpriced, spentTokens }: Draft, scope: BudgetScope, create: Wanted): Result['outcome'] {
  const { tokens, isSure, refusesUnknown } = create;
  if (tokens === null && refusesUnknown) return 'unknown';
  const all = [...pending.values()];
  const open = all.filter(isOpen);
  // What has no price reserves all that is left.
  if (all.some((it) => it.tokens === null)) return open.some((it) => it.tokens === null) ? 'wait' : 'unknown';
  const reserved = sumOf(all);
  const left = scope.maxTokens - spentTokens - reserved;
  if (tokens === null ? left <= 0 : tokens > left) return 'refused';
  if (tokens === null && unpriced.size > 0) return 'unknown';
  // One whose price was not learned may cost anything, also when its answer was lost.
  if (!isSure && all.some((it) => !it.isSure)) return open.some((it) => !it.isSure) ? 'wait' : 'unknown';
  const isAlone = open.length === 0 && unpriced.size === 0;
  const holdsIfPricesRise = PRICE_MARGIN * (reserved + (isSure ? (tokens ?? 0) : 0)) <= left + reserved;
  if (isAlone || holdsIfPricesRise) return 'reserved';
  return open.length > 0 ? 'wait' : 'unknown';
}

function settleCreate(draft: Draft, turn: BudgetTurn, step: BudgetStep & { op: 'settle' }): Result {
  const { key, jobId, priceClass, teaches, quotedTokens } = step;
  const before = draft.settled.get(key);
  const pending = draft.pending.get(key);
  draft.pending.delete(key);
  if (teaches && quotedTokens !== null) learn(draft, priceClass, quotedTokens);
  if (before?.jobId === jobId) {
    if (before.tokens === null && quotedTokens !== null) correctCost(draft, key, { ...before, tokens: quotedTokens });
    return { outcome: 'done', tokens: before.tokens };
  }
  const tokens = step.isUncharged ? 0 : (quotedTokens ?? pending?.tokens ?? draft.prices.get(priceClass) ?? null);
  add(draft, turn, key, { jobId, priceClass, teaches, tokens });
  return { outcome: tokens === null ? 'unpriced' : 'done', tokens };
}

function add(draft: Draft, { scope, nowMs }: BudgetTurn, key: string, answered: Omit<SettledCreate, 'startMs'>): void {
  // The window of a number of ms that ended while the create was in flight has no successor yet.
  if (draft.startMs === 0 && typeof scope.per === 'number') draft.startMs = nowMs;
  const settled = { ...answered, startMs: draft.startMs };
  draft.settled.set(key, settled);
  draft.spentTokens += answered.tokens ?? 0;
  if (answered.tokens === null) draft.unpriced.set(key, settled);
}

/** The price of a class is learned: whatever of it had no price gets this one. A lost create gets a higher one too. */
function learn(draft: Draft, priceClass: string, tokens: number): void {
  draft.prices.delete(priceClass);
  draft.prices.set(priceClass, tokens);
  const [oldest] = draft.prices.keys();
  if (draft.prices.size > MOST_PRICES && oldest !== undefined) draft.prices.delete(oldest);
  for (const [key, create] of draft.pending) {
    if (create.priceClass !== priceClass) continue;
    draft.pending.set(key, { ...create, tokens: Math.max(create.tokens ?? 0, tokens), isSure: true });
  }
  for (const [key, create] of draft.unpriced) {
    if (create.priceClass === priceClass && create.teaches) correctCost(draft, key, { ...create, tokens });
  }
}

/** An answered create costs something else than it was counted with. */
function correctCost(draft: Draft, key: string, create: SettledCreate): void {
  const before = draft.settled.get(key) ?? draft.unpriced.get(key);
  if (create.startMs === draft.startMs) draft.spentTokens += (create.tokens ?? 0) - (before?.tokens ?? 0);
  draft.unpriced.delete(key);
  draft.settled.set(key, create);
}

function charge(draft: Draft, turn: BudgetTurn, { key, jobId, tokens }: BudgetStep & { op: 'charge' }): void {
  const settled = draft.settled.get(key);
  const pending = draft.pending.get(key);
  if (settled?.jobId === jobId) {
    const { priceClass, teaches } = settled;
    correctCost(draft, key, { ...settled, tokens });
    if (teaches && tokens > 0 && settled.tokens === null) learn(draft, priceClass, tokens);
  } else if (pending) {
    // The process that created the job died before it could settle.
    draft.pending.delete(key);
    add(draft, turn, key, { jobId, priceClass: pending.priceClass, teaches: false, tokens });
  }
}

/** The key under which a create has reserved: the one that the given key was derived from, where it was. */
function reservedKey({ pending }: Draft, key: string): string {
  if (pending.has(key)) return key;
  return [...pending].find(([, { derivedKey }]) => derivedKey === key)?.[0] ?? key;
}

function failCreate(draft: Draft, turn: BudgetTurn, step: BudgetStep & { op: 'fail' }): void {
  const { holder, fate } = step;
  const key = reservedKey(draft, step.key);
  const create = draft.pending.get(key);
  if (!create) return;
  const derivedKey = step.derivedKey ?? create.derivedKey;
  const holders = new Map(create.holders);
  holders.delete(holder);
  const { scope, nowMs } = turn;
  const lost = fate === 'lost' ? lostUntilMs(scope.per, nowMs, draft.startMs) : create.lostUntilMs;
  const untilMs = fate === 'refused' ? null : lost;
  if (holders.size === 0 && untilMs === null) draft.pending.delete(key);
  else
    draft.pending.set(key, {
      ...create,
      holders,
      lostUntilMs: untilMs,
      ...(derivedKey !== undefined && { derivedKey }),
    });
}

function renew(draft: Draft, heldBy: string, holder: string, nowMs: number): void {
  const key = reservedKey(draft, heldBy);
  const create = draft.pending.get(key);
  if (!create) return;
  draft.pending.set(key, { ...create, holders: new Map(create.holders).set(holder, nowMs + LEASE_MS) });
}

function release(draft: Draft, named: string): void {
  const key = reservedKey(draft, named);
  const create = draft.pending.get(key);
  if (create && isOpen(create)) draft.pending.set(key, { ...create, lostUntilMs: null });
  else draft.pending.delete(key);
  const unpriced = draft.unpriced.get(key);
  if (unpriced) correctCost(draft, key, { ...unpriced, tokens: 0 });
}

function standing(
  { startMs, spentTokens, pending }: Draft,
  { scope, nowMs }: BudgetTurn,
): Omit<BudgetReply, 'outcome' | 'tokens'> {
  const all = [...pending.values()];
  const left = Math.max(0, scope.maxTokens - spentTokens - sumOf(all));
  const holdsAll = all.some(({ tokens }) => tokens === null);
  return {
    spentTokens,
    reservedTokens: sumOf(all) + (holdsAll ? left : 0),
    leftTokens: holdsAll ? 0 : left,
    endMs: periodAt(scope.per, Math.max(nowMs, startMs), startMs).endMs,
    unresolved: all.filter((create) => !isOpen(create)).length,
  };
}

/** Whether a call is in flight under the key. */
function isOpen({ holders }: PendingCreate): boolean {
  return holders.size > 0;
}

function sumOf(creates: readonly PendingCreate[]): number {
  return creates.reduce((sum, { tokens }) => sum + (tokens ?? 0), 0);
}
