// The rules of one rate limit. Its state is in memory, or in a store that several processes share.
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
  /**
   * End times of calls that the service may still count, earliest first. Each client applies its own window to them.
   */
  readonly endTimes: number[];
  /** The longest cool-down among the clients that use the limit. */
  maxCoolDownMs: number;
  /** Processes and runs with queued calls, in order. */
  queue: QueueEntry[];
  pausedUntilMs: number;
  /** Ramps up calls after a 429 of a limit without a number. Undefined if calls aren't restricted. */
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

/** Rounds of 1, 2, 4, … calls. The next round begins once the service has accepted all calls of the current round. */
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
  /** Queued calls, oldest first. If the response to an earlier turn was lost, its grants are repeated. */
  readonly queued: readonly string[];
  /** Calls that don't queue: each receives a slot in this turn or none. */
  readonly immediate: readonly string[];
  /** Must be at least a window plus the longest silence of a live process. */
  readonly leaseMs: number;
  /** How long the position in the queue is retained. `untilRetry`: until some time after the reply's `waitMs`. */
  readonly positionMs: number | 'untilRetry';
  readonly isUrgent?: boolean;
}

export interface RateLimitReply {
  readonly granted: readonly string[];
  /** Queue entries ahead of the first call without a slot. */
  readonly ahead: number;
  /**
   * Milliseconds until that call may be sent, or 0 if another turn may grant more immediately. A lower bound if it
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
/** Interval for checking a slow start whose round is full. */
const SLOW_START_POLL_MS = 1_000;
/** A slow start ends this long after the last pause, or after a round of the maximum size. */
export const SLOW_START_MS = 60_000;
const MAX_SLOW_START = 512;
const FIRST_ROUND: SlowStart = { size: 1, accepted: 0, calls: new Set() };

/** Takes a turn at `nowMs`, by the clock that all users of the limit share. Mutates the state. */
export function updateSlots(state: RateLimitState, turn: RateLimitTurn, limit: Rate, nowMs: number): RateLimitReply {
  const { owner, queued, immediate } = turn;
  state.maxCoolDownMs = Math.max(state.maxCoolDownMs, coolDownMsOf(limit));
  const isDetached = turn.positionMs === 'untilRetry';
  const changes = [expireSlots(state, nowMs), applyUpdates(state, turn, limit, nowMs), renewLeases(state, turn, nowMs)];
  const free = freeSlots(state, limit, nowMs);
  const position = state.queue.findIndex((entry) => entry.owner === owner);
  const entriesAhead = position < 0 ? newPosition(state, turn) : position;
  const otherEntries = state.queue.length - (position < 0 ? 0 : 1);
  const repeatedGrants = queued.filter((id) => state.inFlight.has(id));
  const waitingCalls = queued.filter((id) => !state.inFlight.has(id));
  // The first in the queue may use any free slot. Further slots are divided among all in the queue.
  const maxGrants = entriesAhead < free ? Math.max(1, Math.floor(free / (otherEntries + 1))) : 0;
  const queueGrants = waitingCalls.slice(0, maxGrants);
  const isServed = queueGrants.length === waitingCalls.length;
  const immediateGrants = isServed ? immediate.slice(0, Math.max(0, free - queueGrants.length - otherEntries)) : [];
  const grants = [...queueGrants, ...immediateGrants];
  for (const id of grants) occupySlot(state, id, limit, nowMs + turn.leaseMs);
  const isMoved = queueGrants.length > 0;
  const ahead = isMoved || isServed ? otherEntries : entriesAhead;
  const waitMs = waitOf(state, { limit, nowMs, ahead, isDetached });
  const retention =
    turn.positionMs === 'untilRetry'
      ? { minUntilMs: nowMs + waitMs, extraMs: DETACHED_RETAIN_MS }
      : { minUntilMs: nowMs, extraMs: turn.positionMs };
  // A limit without a number has no queue: only a pause or a slow start delays its calls.
  const isQueued = !isServed && limit.limit < Number.POSITIVE_INFINITY;
  const hasMoved = updateQueue(state, turn, { position, isMoved, isQueued, ...retention });
  const isChanged = [...changes, hasMoved, grants.length > 0 && isCounted(state)].includes(true);
  if (isChanged) state.changedMs = nowMs;
  const isDone = isServed && immediateGrants.length === immediate.length;
  return { granted: [...repeatedGrants, ...grants], ahead, waitMs: isDone ? 0 : waitMs, isChanged };
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
  const expired = endTimes.findIndex((endedMs) => endedMs + maxCoolDownMs > nowMs);
  endTimes.splice(0, expired < 0 ? endTimes.length : expired);
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

/** Marks a slot as cooling down from `endedMs`. Searches the sorted times from the end, where most belong. */
function coolDown({ endTimes }: RateLimitState, endedMs: number): void {
  let at = endTimes.length;
  while (at > 0 && (endTimes[at - 1] ?? 0) > endedMs) at--;
  endTimes.splice(at, 0, endedMs);
}

/** Returns the index of the first ended call that still cools down for a client. */
function firstCooling({ endTimes }: RateLimitState, limit: Rate, nowMs: number): number {
  const sinceMs = nowMs - coolDownMsOf(limit);
  const at = endTimes.findIndex((endedMs) => endedMs > sinceMs);
  return at < 0 ? endTimes.length : at;
}

/** Returns the slow start after a call has ended, or undefined if that was its last round. */
function afterCall(slowStart: SlowStart, id: string, outcome: SlotOutcome): SlowStart | undefined {
  if (!slowStart.calls.has(id)) return slowStart;
  const round = withoutCall(slowStart, id);
  // A failure doesn't reveal anything about the limit, so another call replaces it in the round.
  if (outcome !== 'accepted') return round;
  if (round.accepted + 1 < round.size) return { ...round, accepted: round.accepted + 1 };
  return round.size < MAX_SLOW_START ? { ...FIRST_ROUND, size: 2 * round.size } : undefined;
}

function withoutCall(slowStart: SlowStart, id: string): SlowStart {
  if (!slowStart.calls.has(id)) return slowStart;
  return { ...slowStart, calls: new Set([...slowStart.calls].filter((other) => other !== id)) };
}

/** Renews the leases of a live process. Returns true if one was due. */
function renewLeases(
  { inFlight }: RateLimitState,
  { inFlight: ownCalls, leaseMs }: RateLimitTurn,
  nowMs: number,
): boolean {
  let isChanged = false;
  for (const id of ownCalls) {
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

/** Returns true if calls are counted: a client's limit has a window, or a slow start is in progress. */
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

/** Returns the index for a new entry: last or, if it is urgent, after the last urgent entry. */
function newPosition({ queue }: RateLimitState, { isUrgent = false }: RateLimitTurn): number {
  const at = isUrgent ? queue.findIndex((entry) => !entry.isUrgent) : -1;
  return at < 0 ? queue.length : at;
}

interface Placement {
  /** The current position, or -1 for none. */
  readonly position: number;
  /** If true, the owner got a slot, so its entry moves to the end. */
  readonly isMoved: boolean;
  /** If false, no call of the owner waits, so its entry is removed. */
  readonly isQueued: boolean;
  /** The position expires `extraMs` after this. It is renewed when half of `extraMs` is left. */
  readonly minUntilMs: number;
  readonly extraMs: number;
}

/** Adds, moves, or removes the owner's queue entry. Returns true if the queue changed. */
function updateQueue(state: RateLimitState, turn: RateLimitTurn, placement: Placement): boolean {
  const { position, isMoved, isQueued, minUntilMs, extraMs } = placement;
  const { queue } = state;
  const { untilMs = 0 } = queue[position] ?? {};
  if (!isQueued && position < 0) return false;
  if (isQueued && !isMoved && untilMs >= minUntilMs + extraMs / 2) return false;
  if (position >= 0) queue.splice(position, 1);
  const at = isMoved || position < 0 ? newPosition(state, turn) : position;
  const { owner, isUrgent = false } = turn;
  if (isQueued) queue.splice(at, 0, { owner, untilMs: Math.ceil(minUntilMs + extraMs), isUrgent });
  return true;
}

interface WaitingCall {
  readonly limit: Rate;
  readonly nowMs: number;
  readonly ahead: number;
  /** If true, the call waits outside any process, so it retries only once its slot is certainly free. */
  readonly isDetached: boolean;
}

/** Returns the wait of a call with `ahead` others before it. A lower bound if it depends on calls in flight. */
function waitOf(state: RateLimitState, { limit, nowMs, ahead, isDetached }: WaitingCall): number {
  const pauseMs = Math.max(0, state.pausedUntilMs - nowMs);
  if (limit.limit === Number.POSITIVE_INFINITY) {
    return pauseMs === 0 && freeSlots(state, limit, nowMs) === 0 ? SLOW_START_POLL_MS : pauseMs;
  }
  const used = usedSlots(state, limit, nowMs);
  const missing = ahead - (limit.limit - used);
  if (missing < 0) return pauseMs;
  const coolDownMs = coolDownMsOf(limit);
  // Clients with a higher limit may use more slots than this client's limit allows.
  const excess = Math.max(0, used - limit.limit);
  const windows = Math.floor((missing - excess) / limit.limit);
  const lateMs = isDetached ? (windows + 1) * (limit.windowMs * DETACHED_SHARE + DETACHED_DELAY_MS) : 0;
  const at = firstCooling(state, limit, nowMs) + excess + ((missing - excess) % limit.limit);
  const slotMs = (state.endTimes[at] ?? nowMs) - nowMs + (windows + 1) * coolDownMs + lateMs;
  return Math.max(pauseMs, slotMs);
}
