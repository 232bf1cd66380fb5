// What a budget has left: a sum over the creates that count in it. Pure.
import { DAY_MS } from './limits.js';

const HOUR_MS = 3_600_000;

/** How long the tokens of a budget last: a UTC day or month, for ever, or a number of milliseconds from the first create. */
export type BudgetPeriod = 'day' | 'month' | 'total' | number;

/** A limit on what may be spent. Its scope and its period are its name: a day and a month of one scope are two sums. */
export interface BudgetTerms {
  readonly scope: string;
  readonly per: BudgetPeriod;
  /** Tokens that may be spent in each period. */
  readonly maxTokens: number;
}

/** What a create costs, as far as that is known before it is answered. */
export interface ExpectedPrice {
  /** Null while the price is unknown: the create then reserves all that is left. */
  readonly tokens: number | null;
  /** Whether the price was learned. A price that was not learned may be any. */
  readonly isSure: boolean;
}

interface Share {
  readonly creates: number;
  readonly tokens: number;
  readonly unknown: number;
  readonly unsure: number;
}

export interface BudgetState {
  /** 0 for `total`, and before the first create of a number of milliseconds. */
  readonly startMs: number;
  readonly spentTokens: number;
  /** What is reserved, by {@link shareName}. */
  readonly shares: Readonly<Record<string, Share>>;
}

export interface Reservation {
  /** Whether a process has only noted the create, or has sent it. */
  readonly phase: 'open' | 'sent';
  /** The process that holds it; '' for a create whose answer was lost. */
  readonly owner: string;
  readonly sinceMs: number;
}

/**
 * Creates go side by side while the budget would hold even if each cost this many times its price. After that they go one
 * by one, so that the first job after a price has risen is the only one that can pass the limit.
 */
const PRICE_MARGIN = 10;

export const EMPTY_BUDGET: BudgetState = { startMs: 0, spentTokens: 0, shares: {} };
const EMPTY_SHARE: Share = { creates: 0, tokens: 0, unknown: 0, unsure: 0 };

export function budgetName({ scope, per }: Pick<BudgetTerms, 'scope' | 'per'>): string {
  return JSON.stringify([scope, per]);
}

/** When the period at a time begins and ends. One that is a number of milliseconds goes on from `sinceMs`, 0 for none. */
export function periodAt(per: BudgetPeriod, nowMs: number, sinceMs: number): { startMs: number; endMs: number | null } {
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
  const isRunning = sinceMs > 0 && nowMs < sinceMs + per;
  return isRunning ? { startMs: sinceMs, endMs: sinceMs + per } : { startMs: 0, endMs: null };
}

/**
 * Until when a create whose answer was lost stays reserved: the end of the next period, or a day where there is none. What
 * ends at about the same time ends together.
 */
export function lostUntilMs(per: BudgetPeriod, sinceMs: number): number {
  if (typeof per === 'number') return Math.ceil(sinceMs / per + 2) * per;
  const { endMs } = periodAt(per, sinceMs, 0);
  if (endMs === null) return Math.ceil((sinceMs + DAY_MS) / HOUR_MS) * HOUR_MS;
  return periodAt(per, endMs, 0).endMs ?? endMs;
}

function shareName({ phase, owner, sinceMs }: Reservation, per: BudgetPeriod): string {
  return `${phase} ${owner} ${lostUntilMs(per, sinceMs)}`;
}

function partsOf(name: string): { phase: string; owner: string; untilMs: number } {
  const [phase = '', owner = '', untilMs] = name.split(' ');
  return { phase, owner, untilMs: Number(untilMs) };
}

/** How long a store keeps a budget after its last change. A total is kept for ten years. */
export function keptMs(per: BudgetPeriod): number {
  if (per === 'total') return 3_650 * DAY_MS;
  return 2 * (typeof per === 'number' ? per : 31 * DAY_MS) + DAY_MS;
}

/** The budget at a time. A clock that is set back does not give the tokens of the present period again. */
export function budgetAt(
  state: BudgetState,
  per: BudgetPeriod,
  { nowMs, isAlive }: { readonly nowMs: number; readonly isAlive: (owner: string) => boolean },
): BudgetState {
  const shares = Object.entries(state.shares).filter(([name, { creates }]) => {
    const { owner, untilMs } = partsOf(name);
    return creates > 0 && (untilMs > nowMs || isAlive(owner));
  });
  const kept = { ...state, shares: Object.fromEntries(shares) };
  const { startMs } = periodAt(per, nowMs, state.startMs);
  const isOver = startMs === 0 && state.startMs > 0 && typeof per === 'number';
  return startMs > state.startMs || isOver ? { ...kept, startMs, spentTokens: 0 } : kept;
}

export function withShare(
  state: BudgetState,
  reservation: Reservation & Pick<BudgetTerms, 'per'>,
  { tokens, isSure }: ExpectedPrice,
  sign: 1 | -1,
): BudgetState {
  const name = shareName(reservation, reservation.per);
  const share = state.shares[name] ?? EMPTY_SHARE;
  // A share that was forgotten with its period has nothing left to take away.
  if (sign < 0 && share.creates === 0) return state;
  const after: Share = {
    creates: share.creates + sign,
    tokens: Math.max(0, share.tokens + sign * (tokens ?? 0)),
    unknown: Math.max(0, share.unknown + (tokens === null ? sign : 0)),
    unsure: Math.max(0, share.unsure + (isSure ? 0 : sign)),
  };
  return { ...state, shares: { ...state.shares, [name]: after } };
}

/** The budget with tokens spent in its present period; a number of milliseconds begins with the first of them. */
export function withSpent(state: BudgetState, per: BudgetPeriod, tokens: number, nowMs: number): BudgetState {
  const startMs = state.startMs === 0 && typeof per === 'number' ? nowMs : state.startMs;
  return { ...state, startMs, spentTokens: Math.max(0, state.spentTokens + tokens) };
}

export interface BudgetStanding {
  readonly spentTokens: number;
  readonly reservedTokens: number;
  readonly leftTokens: number;
  /** When the period ends; null where it does not. */
  readonly endMs: number | null;
  /** What living processes are working on. */
  readonly alive: Share;
  /** Creates whose answer was lost, or whose process died after it had sent them. */
  readonly lost: Share;
}

/** How a budget stands. What was never sent does not count once its process is gone. */
export function standingOf(
  state: BudgetState,
  { per, maxTokens }: BudgetTerms,
  nowMs: number,
  isAlive: (holder: string) => boolean,
): BudgetStanding {
  const { spentTokens, startMs, shares } = budgetAt(state, per, { nowMs, isAlive });
  let [alive, lost] = [EMPTY_SHARE, EMPTY_SHARE];
  for (const [name, share] of Object.entries(shares)) {
    const { phase, owner } = partsOf(name);
    if (isAlive(owner)) alive = sumOf(alive, share);
    else if (phase === 'sent') lost = sumOf(lost, share);
  }
  const reserved = alive.tokens + lost.tokens;
  const left = Math.max(0, maxTokens - spentTokens - reserved);
  const holdsAll = alive.unknown + lost.unknown > 0;
  return {
    spentTokens,
    reservedTokens: reserved + (holdsAll ? left : 0),
    leftTokens: holdsAll ? 0 : left,
    endMs: periodAt(per, Math.max(nowMs, startMs), startMs).endMs,
    alive,
    lost,
  };
}

function sumOf(a: Share, b: Share): Share {
  return {
    creates: a.creates + b.creates,
    tokens: a.tokens + b.tokens,
    unknown: a.unknown + b.unknown,
    unsure: a.unsure + b.unsure,
  };
}

/**
 * Whether a create may be sent now. `spent`: there is no room in this period. `busy`: a living process has reserved what is
 * missing, so ask again soon. `unresolved`: only creates without an answer or a price stand in the way.
 */
export type Admission = 'room' | 'spent' | 'busy' | 'unresolved';

export function admissionOf(
  { spentTokens, alive, lost }: BudgetStanding,
  maxTokens: number,
  { tokens, isSure }: ExpectedPrice,
): Admission {
  const unspent = maxTokens - spentTokens;
  if (tokens === null ? unspent <= 0 : tokens > unspent) return 'spent';
  const reserved = alive.tokens + lost.tokens;
  const hasRoom = tokens === null ? reserved < unspent : tokens <= unspent - reserved;
  const fits = alive.unknown + lost.unknown === 0 && hasRoom;
  // Two prices that were not learned could each pass the limit.
  const isOnly = isSure || alive.unsure + lost.unsure === 0;
  const isAlone = alive.creates === 0;
  const holdsIfPricesRise = PRICE_MARGIN * (reserved + (isSure ? (tokens ?? 0) : 0)) <= unspent;
  if (fits && isOnly && (isAlone || holdsIfPricesRise)) return 'room';
  return isAlone ? 'unresolved' : 'busy';
}
