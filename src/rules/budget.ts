// Calculates a budget's remaining tokens from the creates that count in it. Pure.
import { DAY_MS } from './limits.js';

const HOUR_MS = 3_600_000;

/** A UTC day or month, `'total'` for no period, or milliseconds from the first create. */
export type BudgetPeriod = 'day' | 'month' | 'total' | number;

/** A spending limit. Scope and period identify it, so one scope may have a daily and a monthly limit. */
export interface BudgetTerms {
  readonly scope: string;
  readonly per: BudgetPeriod;
  /** Tokens that may be spent in each period. */
  readonly maxTokens: number;
}

/** The cost of a create before the service has accepted it. */
export interface ExpectedPrice {
  /** Null while the price is unknown. The create then reserves all tokens that are left. */
  readonly tokens: number | null;
  /** If false, the price is an estimate, which may be wrong by any amount. */
  readonly isLearned: boolean;
}

interface Reserved {
  readonly creates: number;
  readonly tokens: number;
  /** Number of creates without a price. */
  readonly unknown: number;
  /** Number of creates whose price is only an estimate. */
  readonly estimated: number;
  /** IDs of entries that receive a price once one is learned. */
  readonly unpriced?: readonly string[];
}

export interface BudgetState {
  /** 0 for `total`, and until the first create if the period is a number of milliseconds. */
  readonly startMs: number;
  /** Charges, and the quotes of running jobs. */
  readonly spentTokens: number;
  /** Reservations, by {@link reservationName}. */
  readonly reservations: Readonly<Record<string, Reserved>>;
}

export interface Reservation {
  /** `accepted`: the quote of a running job. It counts as spent, and is refunded if the job fails. */
  readonly phase: 'open' | 'sent' | 'accepted';
  /** The process that owns the create, or '' for none. */
  readonly owner: string;
  readonly sinceMs: number;
  /** The ID of an entry whose price may be learned later. */
  readonly unpricedId?: string | undefined;
}

/**
 * Creates run concurrently while the budget covers this many times their price. After that, they are sent one at a
 * time, so that only one job can exceed the limit after a price increase.
 */
const PRICE_MARGIN = 10;

/** Amounts are rounded to millionths of a token, so that three times 0.1 fits into 0.3. */
const PER_TOKEN = 1_000_000;

export const EMPTY_BUDGET: BudgetState = { startMs: 0, spentTokens: 0, reservations: {} };
const NOTHING: Reserved = { creates: 0, tokens: 0, unknown: 0, estimated: 0 };

export function budgetName({ scope, per }: Pick<BudgetTerms, 'scope' | 'per'>): string {
  return JSON.stringify([scope, per]);
}

function roundTokens(tokens: number): number {
  return Math.round(tokens * PER_TOKEN) / PER_TOKEN;
}

/** Returns when the period at `nowMs` starts and ends. `sinceMs` is the start of a custom period, or 0 for none. */
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
 * Returns when a reservation without a live owner expires: a lost create at the end of the next period, a quote at the
 * end of its own period. Without a period, both last a day. Rounded, so that reservations from about the same time are
 * stored as one.
 */
export function expiresMs({ phase, sinceMs }: Reservation, per: BudgetPeriod): number {
  if (typeof per === 'number') return Math.ceil(sinceMs / per + (phase === 'accepted' ? 1 : 2)) * per;
  const { endMs } = periodAt(per, sinceMs, 0);
  if (endMs === null) return Math.ceil((sinceMs + DAY_MS) / HOUR_MS) * HOUR_MS;
  return phase === 'accepted' ? endMs : (periodAt(per, endMs, 0).endMs ?? endMs);
}

function reservationName(reservation: Reservation, per: BudgetPeriod): string {
  return `${reservation.phase} ${reservation.owner} ${expiresMs(reservation, per)}`;
}

function partsOf(name: string): { phase: string; owner: string; untilMs: number } {
  const [phase = '', owner = '', untilMs] = name.split(' ');
  return { phase, owner, untilMs: Number(untilMs) };
}

/** Returns true if the create may have been charged: it was sent, has no live owner, and hasn't expired. */
export function isUnresolved(
  reservation: Reservation,
  per: BudgetPeriod,
  { nowMs, isAlive }: { readonly nowMs: number; readonly isAlive: (owner: string) => boolean },
): boolean {
  return reservation.phase === 'sent' && !isAlive(reservation.owner) && expiresMs(reservation, per) > nowMs;
}

/** How long a store retains a budget after its last change. `total` is retained for ten years. */
export function budgetTtlMs(per: BudgetPeriod): number {
  if (per === 'total') return 3_650 * DAY_MS;
  return 2 * (typeof per === 'number' ? per : 31 * DAY_MS) + DAY_MS;
}

/** Returns the budget at a time, without expired reservations. A clock that is set back doesn't refund tokens. */
export function budgetAt(
  state: BudgetState,
  per: BudgetPeriod,
  { nowMs, isAlive }: { readonly nowMs: number; readonly isAlive: (owner: string) => boolean },
): BudgetState {
  const reservations = Object.entries(state.reservations).filter(([name, { creates }]) => {
    const { owner, untilMs } = partsOf(name);
    return creates > 0 && (untilMs > nowMs || isAlive(owner));
  });
  const current = { ...state, reservations: Object.fromEntries(reservations) };
  const { startMs } = periodAt(per, nowMs, state.startMs);
  const isOver = startMs === 0 && state.startMs > 0 && typeof per === 'number';
  return startMs > state.startMs || isOver ? { ...current, startMs, spentTokens: 0 } : current;
}

/** Adds a reservation (`sign` 1) or removes it (`sign` -1). */
export function withReservation(
  state: BudgetState,
  reservation: Reservation & Pick<BudgetTerms, 'per'>,
  { tokens, isLearned }: ExpectedPrice,
  sign: 1 | -1,
): BudgetState {
  const name = reservationName(reservation, reservation.per);
  const reserved = state.reservations[name] ?? NOTHING;
  // An expired reservation has already been removed.
  if (sign < 0 && reserved.creates === 0) return state;
  const { unpricedId } = reservation;
  const others = (reserved.unpriced ?? []).filter((other) => other !== unpricedId);
  const unpriced = sign > 0 && unpricedId !== undefined ? [...others, unpricedId] : others;
  const newReserved: Reserved = {
    creates: reserved.creates + sign,
    tokens: Math.max(0, roundTokens(reserved.tokens + sign * (tokens ?? 0))),
    unknown: Math.max(0, reserved.unknown + (tokens === null ? sign : 0)),
    estimated: Math.max(0, reserved.estimated + (isLearned ? 0 : sign)),
    ...(unpriced.length > 0 && { unpriced }),
  };
  return { ...state, reservations: { ...state.reservations, [name]: newReserved } };
}

/** Returns the IDs of entries that have no price and no live owner. */
export function unpricedIn({ reservations }: BudgetState, isAlive: (owner: string) => boolean): readonly string[] {
  const ownerless = Object.entries(reservations).filter(([name]) => !isAlive(partsOf(name).owner));
  return ownerless.flatMap(([, { unpriced }]) => unpriced ?? []);
}

/** Adds tokens to the current period. A period in milliseconds starts with its first tokens. */
export function withSpent(state: BudgetState, per: BudgetPeriod, tokens: number, nowMs: number): BudgetState {
  const startMs = state.startMs === 0 && typeof per === 'number' ? nowMs : state.startMs;
  return { ...state, startMs, spentTokens: Math.max(0, roundTokens(state.spentTokens + tokens)) };
}

export interface BudgetSnapshot {
  readonly spentTokens: number;
  readonly reservedTokens: number;
  readonly leftTokens: number;
  /** When the period ends, or null if it doesn't end. */
  readonly endMs: number | null;
  /** Unsent creates of live processes. */
  readonly waiting: Reserved;
  /** Creates in flight of live processes. */
  readonly sent: Reserved;
  /** Creates whose response was lost, or whose process crashed after sending them. */
  readonly lost: Reserved;
  /** The quotes of running jobs, which are part of `spentTokens`. */
  readonly running: Reserved;
}

/** Returns a budget's usage. An unsent create stops counting when its process crashes. */
export function snapshotOf(
  state: BudgetState,
  { per, maxTokens }: BudgetTerms,
  nowMs: number,
  isAlive: (owner: string) => boolean,
): BudgetSnapshot {
  const { spentTokens, startMs, reservations } = budgetAt(state, per, { nowMs, isAlive });
  let [waiting, sent, lost, running] = [NOTHING, NOTHING, NOTHING, NOTHING];
  for (const [name, reserved] of Object.entries(reservations)) {
    const { phase, owner } = partsOf(name);
    if (phase === 'accepted') running = sumOf(running, reserved);
    else if (phase === 'open') waiting = isAlive(owner) ? sumOf(waiting, reserved) : waiting;
    else if (isAlive(owner)) sent = sumOf(sent, reserved);
    else lost = sumOf(lost, reserved);
  }
  const { tokens, unknown } = sumOf(waiting, sent, lost);
  const leftTokens = Math.max(0, roundTokens(maxTokens - spentTokens - tokens));
  return {
    spentTokens,
    reservedTokens: unknown > 0 ? roundTokens(tokens + leftTokens) : tokens,
    leftTokens: unknown > 0 ? 0 : leftTokens,
    endMs: periodAt(per, Math.max(nowMs, startMs), startMs).endMs,
    waiting,
    sent,
    lost,
    running,
  };
}

function sumOf(...all: readonly Reserved[]): Reserved {
  return all.reduce((a, b) => ({
    creates: a.creates + b.creates,
    tokens: roundTokens(a.tokens + b.tokens),
    unknown: a.unknown + b.unknown,
    estimated: a.estimated + b.estimated,
  }));
}

/**
 * Decision about a create. `room`: it may be reserved or sent. `busy`: other creates in flight may release tokens soon.
 * `unresolved`: creates without a response or a price, or running jobs, may release tokens later. `spent`: it must wait
 * for the next period.
 */
export type Admission = 'room' | 'busy' | 'unresolved' | 'spent';

/**
 * Decides if a create may reserve its price, or be sent. A reservation must fit in addition to all others. A send
 * counts only sent creates, so that creates that together reserve too much (after a price increase, or an expired
 * lease) don't block each other.
 */
export function admissionOf(
  { spentTokens, waiting, sent, lost, running }: BudgetSnapshot,
  maxTokens: number,
  { tokens, isLearned }: ExpectedPrice,
  step: 'reserve' | 'send',
): Admission {
  const unspent = roundTokens(maxTokens - spentTokens);
  const fitsIn = (room: number) => (tokens === null ? room > 0 : tokens <= roundTokens(room));
  if (!fitsIn(unspent)) return fitsIn(unspent + running.tokens) ? 'unresolved' : 'spent';
  const exposed = sumOf(sent, lost);
  const counted = step === 'send' ? exposed : sumOf(waiting, exposed);
  const fits = counted.unknown === 0 && fitsIn(unspent - counted.tokens);
  // Only one estimate at a time, because several wrong estimates would exceed the limit by several jobs.
  const isOnlyEstimate = isLearned || exposed.estimated === 0;
  const hasMargin = PRICE_MARGIN * (exposed.tokens + (isLearned ? (tokens ?? 0) : 0)) <= unspent;
  if (fits && isOnlyEstimate && (sent.creates === 0 || hasMargin)) return 'room';
  const others = step === 'send' ? sent : sumOf(waiting, sent);
  return others.creates > 0 ? 'busy' : 'unresolved';
}
