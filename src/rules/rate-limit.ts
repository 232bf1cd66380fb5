// The rules of one rate limit. Its state is in memory, or in a store that processes share.
import type { Rate } from './limits.js';

/**
 * A rate limit has `limit` slots. A slot is in use from its grant to the response, and then cools down for one window.
 *
 * The service counts a call at an unknown time between request and response. Because a slot cools down after the response, two
 * consecutive calls on it are counted more than a window apart, so no fixed or sliding window contains more calls than slots.
 * If the window started with the request, a slow call and its successor could be counted in the same window.
 */
export interface RateLimitState {
  /** Calls in flight, with the time when each lease on a slot expires unless renewed. */
  readonly inFlight: Map<string, number>;
  /** When the calls that the service may still count ended, earliest first. Each client waits its own window after. */
  readonly endTimes: number[];
  /** The longest cool-down of a client that uses the limit. */
  maxCoolDownMs: number;
  /** Processes and runs with queued calls, in order. */
  queue: QueueEntry[];
  pausedUntilMs: number;
  /** Set after a 429 of a limit without a number, to ramp up its calls. Undefined if they aren't restricted. */
  slowStart: SlowStart | undefined;
  /** Time of the last change, to detect a clock that was set back. */
  changedMs: number;
}

export interface QueueEntry {
  readonly owner: string;
  /** When the position expires. */
  readonly untilMs: number;
  /** If true, goes before all entries that aren't urgent. */
  readonly isUrgent: boolean;
}

/** Rounds of 1, 2, 4, … calls. The next round begins when the service has accepted all calls of the current one. */
interface SlowStart {
  readonly size: number;
  readonly accepted: number;
  /** Calls of this round that are in flight. */
  readonly calls: ReadonlySet<string>;
}

/**
 * How a call with a slot ended. `accepted`: the service accepted it. `counted`: the service counted it. `unknown`:
 * the service may count it later. `unused`: it was not sent, or not counted.
 */
export type SlotOutcome = 'accepted' | 'counted' | 'unknown' | 'unused';

/** A change to a call in flight, or a pause of the limit. */
export type RateLimitUpdate =
  | { readonly call: string; readonly outcome: SlotOutcome; readonly agoMs: number }
  | { readonly pauseMs: number };

export interface RateLimitTurn {
  /** A process, or a run that waits outside any process. */
  readonly owner: string;
  readonly updates: readonly RateLimitUpdate[];
  /** Its calls in flight. Their leases are renewed for `leaseMs`. */
  readonly inFlight: Iterable<string>;
  /** Queued calls, oldest first. A call whose earlier grant was lost is granted again. */
  readonly queued: readonly string[];
  /** Calls that are granted now or not at all. They don't queue. */
  readonly immediate: readonly string[];
  /** Must exceed a window by the longest silence of a live process. */
  readonly leaseMs: number;
  /** How long the position in the queue is retained. `untilRetry`: until after the wait that the reply requests. */
  readonly positionMs: number | 'untilRetry';
  readonly isUrgent?: boolean;
}

export interface RateLimitReply {
  readonly granted: readonly string[];
  /** Entries ahead of the first call that still waits. */
  readonly ahead: number;
  /**
   * Milliseconds until that call may be sent, or 0 if the next turn may grant more immediately. A lower bound if it
   * depends on calls in flight.
   */
  readonly waitMs: number;
  readonly isChanged: boolean;
}

/** Creates the state of an unused limit. Calls are retained for at least the documented window. */
export function newRateLimit(documented?: Rate): RateLimitState {
  const maxCoolDownMs = documented ? coolDownMsOf(documented) : 0;
  return {
    inFlight: new Map(),
    endTimes: [],
    maxCoolDownMs,
    queue: [],
    pausedUntilMs: 0,
    slowStart: undefined,
    changedMs: 0,
  };
}

/**
 * How long a slot cools down, or 0 without a window. Allows for clock drift of 0.05% and for times truncated to
 * milliseconds.
 */
export function coolDownMsOf({ windowMs }: Rate): number {
  return windowMs === 0 ? 0 : windowMs * 1.0005 + 1;
}

/** Age at which a lease is renewed. */
export const RENEW_MS = 5_000;
/** A request without a response may still reach the service within this time. */
const LATE_ARRIVAL_MS = 5_000;
/** How much later than estimated a detached run retries: this share of each window, plus milliseconds per window. */
const DETACHED_SHARE = 0.03;
const DETACHED_DELAY_MS = 200;
/** How long a detached run's position is retained after that. */
const DETACHED_RETAIN_MS = 30_000;
/** Poll interval for calls in flight during a slow start. */
const SLOW_START_POLL_MS = 1_000;
/** A slow start ends this long after the last pause, or after a round of the maximum size. */
export const SLOW_START_MS = 60_000;
const MAX_SLOW_START = 512;
const FIRST_ROUND: SlowStart = { size: 1, accepted: 0, calls: new Set() };

/** Takes a turn at `nowMs`, in the clock that all users of the limit share. Mutates the state. */
export function updateSlots(state: RateLimitState, turn: RateLimitTurn, limit: Rate, nowMs: number): RateLimitReply {
  const { owner, queued, immediate } = turn;
  state.maxCoolDownMs = Math.max(state.maxCoolDownMs, coolDownMsOf(limit));
  const isDetached = turn.positionMs === 'untilRetry';
  const before = [expireSlots(state, nowMs), applyUpdates(state, turn, limit, nowMs), renewLeases(state, turn, nowMs)];
  const free = freeSlots(state, limit, nowMs);
  const position = state.queue.findIndex((entry) => entry.owner === owner);
  const ahead = position < 0 ? newPosition(state, turn) : position;
  const others = state.queue.length - (position < 0 ? 0 : 1);
  const again = queued.filter((id) => state.inFlight.has(id));
  const wanted = queued.filter((id) => !state.inFlight.has(id));
  // The first in the queue may use any free slot. Slots beyond that are divided among all in the queue.
  const most = ahead < free ? Math.max(1, Math.floor(free / (others + 1))) : 0;
  const waiting = wanted.slice(0, most);
  const isServed = waiting.length === wanted.length;
  const tried = isServed ? immediate.slice(0, Math.max(0, free - waiting.length - others)) : [];
  const taken = [...waiting, ...tried];
  for (const id of taken) occupySlot(state, id, limit, nowMs + turn.leaseMs);
  const isMoved = waiting.length > 0;
  const left = isMoved || isServed ? others : ahead;
  const waitMs = waitOf(state, { limit, nowMs, ahead: left, isDetached });
  const [minUntilMs, extraMs] = turn.positionMs === 'untilRetry' ? [waitMs, DETACHED_RETAIN_MS] : [0, turn.positionMs];
  // A limit without a number has no queue: only a pause or a slow start delays its calls.
  const stays = !isServed && limit.limit < Number.POSITIVE_INFINITY;
  const isQueued = enqueue(state, turn, { position, isMoved, stays, sureMs: nowMs + minUntilMs, spareMs: extraMs });
  const isChanged = [...before, isQueued, taken.length > 0 && isCounted(state)].includes(true);
  if (isChanged) state.changedMs = nowMs;
  const isDone = isServed && tried.length === immediate.length;
  return { granted: [...again, ...taken], ahead: left, waitMs: isDone ? 0 : waitMs, isChanged };
}

/** A rate limit as seen by a call with `ahead` others before it. */
export interface RateLimitView {
  readonly free: number;
  readonly pausedMs: number;
  /** Milliseconds until the call may be sent. */
  readonly waitMs: number;
}

export function viewAt(state: RateLimitState, limit: Rate, nowMs: number, ahead = 0): RateLimitView {
  expireSlots(state, nowMs);
  const free = freeSlots(state, limit, nowMs);
  const pausedMs = Math.max(0, state.pausedUntilMs - nowMs);
  return { free, pausedMs, waitMs: waitOf(state, { limit, nowMs, ahead, isDetached: false }) };
}

/**
 * Removes expired entries. If the clock was set back, shifts all times so that remaining waits stay the same, and
 * returns true.
 */
function expireSlots(state: RateLimitState, nowMs: number): boolean {
  const backMs = Math.max(0, state.changedMs - nowMs);
  if (backMs > 0) {
    for (const [at, endedMs] of state.endTimes.entries()) state.endTimes[at] = endedMs - backMs;
    for (const [id, untilMs] of state.inFlight) state.inFlight.set(id, untilMs - backMs);
    state.queue = state.queue.map((entry) => ({ ...entry, untilMs: entry.untilMs - backMs }));
    state.pausedUntilMs -= backMs;
    state.changedMs = nowMs;
  }
  const { endTimes, inFlight, maxCoolDownMs } = state;
  const over = endTimes.findIndex((endedMs) => endedMs + maxCoolDownMs > nowMs);
  endTimes.splice(0, over < 0 ? endTimes.length : over);
  // Sorted by expiry.
  for (const [id, untilMs] of inFlight) {
    if (untilMs > nowMs) break;
    inFlight.delete(id);
    state.slowStart = state.slowStart && withoutCall(state.slowStart, id);
  }
  if (state.queue.some(({ untilMs }) => untilMs <= nowMs))
    state.queue = state.queue.filter(({ untilMs }) => untilMs > nowMs);
  if (state.slowStart?.calls.size === 0 && state.pausedUntilMs + SLOW_START_MS <= nowMs) state.slowStart = undefined;
  return backMs > 0;
}

/** Applies the updates. Returns true if they changed the state. */
function applyUpdates(state: RateLimitState, { updates }: RateLimitTurn, limit: Rate, nowMs: number): boolean {
  let isChanged = false;
  for (const update of updates) {
    if ('pauseMs' in update) {
      if (nowMs + update.pauseMs <= state.pausedUntilMs || update.pauseMs <= 0) continue;
      state.pausedUntilMs = nowMs + update.pauseMs;
      if (limit.limit === Number.POSITIVE_INFINITY) state.slowStart = FIRST_ROUND;
    } else {
      const { call, outcome, agoMs } = update;
      const wasInFlight = state.inFlight.delete(call);
      state.slowStart = state.slowStart && afterCall(state.slowStart, call, outcome);
      const graceMs = outcome === 'unknown' ? LATE_ARRIVAL_MS : 0;
      const endedMs = nowMs - agoMs + graceMs;
      const coolsDown = outcome !== 'unused' && endedMs + state.maxCoolDownMs > nowMs;
      if (coolsDown) coolDown(state, endedMs);
      if (!wasInFlight && !coolsDown) continue;
    }
    isChanged = true;
  }
  return isChanged;
}

/** Marks a slot as cooling down from `endedMs`. The times are sorted, and most slots go last. */
function coolDown({ endTimes }: RateLimitState, endedMs: number): void {
  let at = endTimes.length;
  while (at > 0 && (endTimes[at - 1] ?? 0) > endedMs) at--;
  endTimes.splice(at, 0, endedMs);
}

/** Returns the index of the first ended call that still cools down for a client. */
function firstCooling({ endTimes }: RateLimitState, limit: Rate, nowMs: number): number {
  const overMs = nowMs - coolDownMsOf(limit);
  const at = endTimes.findIndex((endedMs) => endedMs > overMs);
  return at < 0 ? endTimes.length : at;
}

/** Returns the slow start after a call of its round has ended, or undefined if it's over. */
function afterCall(slowStart: SlowStart, id: string, outcome: SlotOutcome): SlowStart | undefined {
  if (!slowStart.calls.has(id)) return slowStart;
  const rest = withoutCall(slowStart, id);
  // A failure doesn't reveal anything about the limit, so another call replaces it in the round.
  if (outcome !== 'accepted') return rest;
  if (rest.accepted + 1 < rest.size) return { ...rest, accepted: rest.accepted + 1 };
  return rest.size < MAX_SLOW_START ? { ...FIRST_ROUND, size: 2 * rest.size } : undefined;
}

function withoutCall(slowStart: SlowStart, id: string): SlowStart {
  if (!slowStart.calls.has(id)) return slowStart;
  return { ...slowStart, calls: new Set([...slowStart.calls].filter((it) => it !== id)) };
}

/** Renews the leases of a live process. Returns true if one was due. */
function renewLeases({ inFlight }: RateLimitState, { inFlight: own, leaseMs }: RateLimitTurn, nowMs: number): boolean {
  let isChanged = false;
  for (const id of own) {
    const untilMs = inFlight.get(id) ?? 0;
    if (untilMs > nowMs + leaseMs - RENEW_MS) continue;
    inFlight.delete(id);
    inFlight.set(id, nowMs + leaseMs);
    isChanged = true;
  }
  return isChanged;
}

function freeSlots(state: RateLimitState, limit: Rate, nowMs: number): number {
  const { pausedUntilMs, slowStart } = state;
  if (pausedUntilMs > nowMs) return 0;
  if (limit.limit < Number.POSITIVE_INFINITY) return Math.max(0, limit.limit - usedSlots(state, limit, nowMs));
  return slowStart ? slowStart.size - slowStart.accepted - slowStart.calls.size : Number.POSITIVE_INFINITY;
}

function usedSlots(state: RateLimitState, limit: Rate, nowMs: number): number {
  return state.inFlight.size + state.endTimes.length - firstCooling(state, limit, nowMs);
}

/** Without a window, calls are counted only for clients that have one, and during a slow start. */
function isCounted({ maxCoolDownMs, slowStart }: RateLimitState): boolean {
  return maxCoolDownMs > 0 || slowStart !== undefined;
}

function occupySlot(state: RateLimitState, id: string, limit: Rate, untilMs: number): void {
  if (!isCounted(state)) return;
  state.inFlight.set(id, untilMs);
  const { slowStart } = state;
  if (slowStart && limit.limit === Number.POSITIVE_INFINITY)
    state.slowStart = { ...slowStart, calls: new Set([...slowStart.calls, id]) };
}

/** Index of a new entry: last, or after the last urgent entry. */
function newPosition({ queue }: RateLimitState, { isUrgent = false }: RateLimitTurn): number {
  const at = isUrgent ? queue.findIndex((entry) => !entry.isUrgent) : -1;
  return at < 0 ? queue.length : at;
}

interface Placement {
  /** The current position, or -1 for none. */
  readonly position: number;
  /** If true, it was served, so it moves to the end. */
  readonly isMoved: boolean;
  readonly stays: boolean;
  /** When the minimum retention of the position ends, and how long it's retained after that. */
  readonly sureMs: number;
  readonly spareMs: number;
}

/** Adds, moves, or removes the queue entry of the turn. Returns true if the queue changed. */
function enqueue(state: RateLimitState, turn: RateLimitTurn, placement: Placement): boolean {
  const { position, isMoved, stays, sureMs, spareMs } = placement;
  const { queue } = state;
  const { untilMs = 0 } = queue[position] ?? {};
  if (!stays && position < 0) return false;
  if (stays && !isMoved && untilMs >= sureMs + spareMs / 2) return false;
  if (position >= 0) queue.splice(position, 1);
  const at = isMoved || position < 0 ? newPosition(state, turn) : position;
  const { owner, isUrgent = false } = turn;
  if (stays) queue.splice(at, 0, { owner, untilMs: Math.ceil(sureMs + spareMs), isUrgent });
  return true;
}

interface Waiting {
  readonly limit: Rate;
  readonly nowMs: number;
  readonly ahead: number;
  /** If true, waits outside any process and retries when its slot is certainly free. */
  readonly isDetached: boolean;
}

/** Returns the wait of a call with `ahead` others before it. A lower bound if it depends on calls in flight. */
function waitOf(state: RateLimitState, { limit, nowMs, ahead, isDetached }: Waiting): number {
  const pauseMs = Math.max(0, state.pausedUntilMs - nowMs);
  if (limit.limit === Number.POSITIVE_INFINITY) {
    return pauseMs === 0 && freeSlots(state, limit, nowMs) === 0 ? SLOW_START_POLL_MS : pauseMs;
  }
  const used = usedSlots(state, limit, nowMs);
  const short = ahead - (limit.limit - used);
  if (short < 0) return pauseMs;
  const coolDownMs = coolDownMsOf(limit);
  // Clients with a higher limit may use more slots than this one has.
  const excess = Math.max(0, used - limit.limit);
  const windows = Math.floor((short - excess) / limit.limit);
  const lateMs = isDetached ? (windows + 1) * (limit.windowMs * DETACHED_SHARE + DETACHED_DELAY_MS) : 0;
  const at = firstCooling(state, limit, nowMs) + excess + ((short - excess) % limit.limit);
  const slotMs = (state.endTimes[at] ?? nowMs) - nowMs + (windows + 1) * coolDownMs + lateMs;
  return Math.max(pauseMs, slotMs);
}
