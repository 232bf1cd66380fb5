// One rate limit as a rule. A process keeps its state in memory, processes that share an account keep it in a store.
import type { Rate } from './limits.js';

/**
 * A rate limit has `limit` slots. A slot is in use from its grant to the answer, and rests for one window after it.
 *
 * The service counts a call at an unknown moment between its sending and its answer. Two calls that use one slot in turn
 * are therefore counted more than a window apart, whatever the network does, so no window, fixed or sliding, contains more
 * calls than there are slots. Measured from the sending, a slow call and its successor could meet in one window.
 */
export interface RateLimitState {
  /** The calls under way, and until when each keeps its slot although its process says nothing. */
  readonly open: Map<string, number>;
  /** When each resting slot is free again, earliest first. */
  readonly resting: number[];
  /** Who has calls that wait, in order, and until when each place is kept. */
  line: (readonly [who: string, untilMs: number])[];
  pausedUntilMs: number;
  /**
   * Of a limit without a number, after a pause: the one call that is under way, '' while there is none. Undefined while calls
   * go as they come.
   */
  trial: string | undefined;
  /** The time of the last change, to notice a clock that was set back. */
  seenMs: number;
}

/** What has happened to a call that was under way, or to the limit. */
export type RateLimitNews =
  | { readonly answered: string; readonly agoMs: number; readonly isAccepted: boolean }
  /** The call was not sent, or the service did not count it. */
  | { readonly unused: string }
  | { readonly pauseMs: number };

export interface RateLimitTurn {
  /** Who takes the turn: a process, or a run that waits outside of any. */
  readonly who: string;
  readonly news: readonly RateLimitNews[];
  /** Its calls under way: their slots are kept for another `leaseMs`. */
  readonly open: Iterable<string>;
  /** The calls that wait, oldest first. One that was granted before, in a turn whose outcome was lost, is granted again. */
  readonly asks: readonly string[];
  /** The calls that are sent now or not at all: they do not queue. */
  readonly tries: readonly string[];
  /** How long a slot is kept without a word from its process: longer than a window by the time that a process may be silent. */
  readonly leaseMs: number;
  /** How long the place in the line is kept; `told`: for as long as the reply says to wait. */
  readonly placeMs: number | 'told';
}

export interface RateLimitReply {
  readonly granted: readonly string[];
  /** How many others are before the first call that still waits. */
  readonly ahead: number;
  /**
   * Milliseconds until that call may go; 0 when the next turn may bring more at once. Where that depends on calls under way,
   * at least so long.
   */
  readonly waitMs: number;
  readonly isChanged: boolean;
}

export function newRateLimit(): RateLimitState {
  return { open: new Map(), resting: [], line: [], pausedUntilMs: 0, trial: undefined, seenMs: 0 };
}

/** How long a slot rests. Two clocks drift by half a per mille at most, and times are cut to whole milliseconds. */
export function restMsOf({ windowMs }: Rate): number {
  return windowMs * 1.0005 + 1;
}

/** A slot that is kept is kept anew when so much of its lease has passed. */
export const RENEW_MS = 5_000;
/** Somebody who waits outside of any process comes so much later than the told time in each window, and at most so late. */
const LATE = { share: 0.03, ms: 200, keptMs: 30_000 } as const;
/** When to look again for the one call that is under way after a pause. */
const TRIAL_MS = 1_000;

/** Takes a turn, at the time of the one clock that all who share the limit have. Changes the state. */
export function takeTurn(state: RateLimitState, turn: RateLimitTurn, limit: Rate, nowMs: number): RateLimitReply {
  const { who, asks, tries } = turn;
  const before = [tidy(state, nowMs), learn(state, turn, limit, nowMs), renew(state, turn, nowMs)];
  const free = freeSlots(state, limit, nowMs);
  const place = state.line.findIndex(([it]) => it === who);
  const ahead = place < 0 ? state.line.length : place;
  const others = state.line.length - (place < 0 ? 0 : 1);
  const again = asks.filter((id) => state.open.has(id));
  const wanted = asks.filter((id) => !state.open.has(id));
  // Whoever is in front has a slot to himself. What is free beyond that is shared with the others.
  const share = ahead < free ? Math.max(1, Math.floor(free / (others + 1))) : 0;
  const waiting = wanted.slice(0, share);
  const isServed = waiting.length === wanted.length;
  const tried = isServed ? tries.slice(0, Math.max(0, free - waiting.length - others)) : [];
  const taken = [...waiting, ...tried];
  for (const id of taken) hold(state, id, limit, nowMs + turn.leaseMs);
  const isMoved = waiting.length > 0;
  const left = isMoved || isServed ? others : ahead;
  const waitMs = waitOf(state, { limit, nowMs, ahead: left, isTold: turn.placeMs === 'told' });
  const [sureMs, spareMs] = turn.placeMs === 'told' ? [waitMs, LATE.keptMs] : [0, turn.placeMs];
  // Nobody queues for a limit without a number: only a pause holds its calls up.
  const stays = !isServed && limit.limit < Number.POSITIVE_INFINITY;
  const isQueued = queue(state, { who, place, isMoved, stays, sureMs: nowMs + sureMs, spareMs });
  const isChanged = [...before, isQueued, taken.length > 0 && isHeld(state, limit)].includes(true);
  if (isChanged) state.seenMs = nowMs;
  const isDone = isServed && tried.length === tries.length;
  return { granted: [...again, ...taken], ahead: left, waitMs: isDone ? 0 : waitMs, isChanged };
}

/** How a limit stands for a call with `ahead` others before it. */
export interface RateLimitLook {
  readonly free: number;
  readonly pausedMs: number;
  /** Milliseconds until the call may go. */
  readonly waitMs: number;
}

export function lookAt(state: RateLimitState, limit: Rate, nowMs: number, ahead = 0): RateLimitLook {
  tidy(state, nowMs);
  const free = freeSlots(state, limit, nowMs);
  const pausedMs = Math.max(0, state.pausedUntilMs - nowMs);
  return { free, pausedMs, waitMs: waitOf(state, { limit, nowMs, ahead, isTold: false }) };
}

/** Forgets what is over. Returns whether the clock was set back: what was so far away is then still as far away. */
function tidy(state: RateLimitState, nowMs: number): boolean {
  const backMs = Math.max(0, state.seenMs - nowMs);
  if (backMs > 0) {
    for (const [at, freeMs] of state.resting.entries()) state.resting[at] = freeMs - backMs;
    for (const [id, untilMs] of state.open) state.open.set(id, untilMs - backMs);
    state.line = state.line.map(([who, untilMs]) => [who, untilMs - backMs]);
    state.pausedUntilMs -= backMs;
    state.seenMs = nowMs;
  }
  const { resting, open } = state;
  let over = 0;
  while (over < resting.length && (resting[over] ?? 0) <= nowMs) over++;
  if (over > 0) resting.splice(0, over);
  // The one that lapses first comes first.
  for (const [id, untilMs] of open) {
    if (untilMs > nowMs) break;
    open.delete(id);
  }
  if (state.line.some(([, untilMs]) => untilMs <= nowMs))
    state.line = state.line.filter(([, untilMs]) => untilMs > nowMs);
  if (state.trial !== undefined && !open.has(state.trial)) state.trial = '';
  return backMs > 0;
}

/** Takes in what has happened. Returns whether that has changed anything. */
function learn(state: RateLimitState, { news }: RateLimitTurn, limit: Rate, nowMs: number): boolean {
  let isChanged = false;
  for (const it of news) {
    if ('pauseMs' in it) {
      if (nowMs + it.pauseMs <= state.pausedUntilMs || it.pauseMs <= 0) continue;
      state.pausedUntilMs = nowMs + it.pauseMs;
      if (limit.limit === Number.POSITIVE_INFINITY) state.trial = '';
    } else {
      const id = 'unused' in it ? it.unused : it.answered;
      const wasOpen = state.open.delete(id);
      if (state.trial === id) state.trial = 'isAccepted' in it && it.isAccepted ? undefined : '';
      const freeMs = 'answered' in it ? nowMs - it.agoMs + restMsOf(limit) : 0;
      const rests = freeMs > nowMs && limit.limit < Number.POSITIVE_INFINITY;
      if (rests) rest(state, freeMs);
      if (!wasOpen && !rests) continue;
    }
    isChanged = true;
  }
  return isChanged;
}

/** A slot rests until then. The times are in order; most slots go to the end. */
function rest({ resting }: RateLimitState, untilMs: number): void {
  let at = resting.length;
  while (at > 0 && (resting[at - 1] ?? 0) > untilMs) at--;
  resting.splice(at, 0, untilMs);
}

/** Keeps the slots of a process that lives. Returns whether one had to be kept anew. */
function renew({ open }: RateLimitState, { open: own, leaseMs }: RateLimitTurn, nowMs: number): boolean {
  let isChanged = false;
  for (const id of own) {
    const untilMs = open.get(id) ?? 0;
    if (untilMs > nowMs + leaseMs - RENEW_MS) continue;
    open.delete(id);
    open.set(id, nowMs + leaseMs);
    isChanged = true;
  }
  return isChanged;
}

function freeSlots({ open, resting, pausedUntilMs, trial }: RateLimitState, { limit }: Rate, nowMs: number): number {
  if (pausedUntilMs > nowMs) return 0;
  if (limit < Number.POSITIVE_INFINITY) return Math.max(0, limit - open.size - resting.length);
  return trial === undefined ? Number.POSITIVE_INFINITY : trial === '' ? 1 : 0;
}

/** Whether calls that may go have to be known: without a number, only the one that goes alone after a pause has. */
function isHeld({ trial }: RateLimitState, { limit }: Rate): boolean {
  return limit < Number.POSITIVE_INFINITY || trial !== undefined;
}

function hold(state: RateLimitState, id: string, limit: Rate, untilMs: number): void {
  if (!isHeld(state, limit)) return;
  state.open.set(id, untilMs);
  if (state.trial === '') state.trial = id;
}

interface Place {
  readonly who: string;
  /** Where it is; -1 for nowhere. */
  readonly place: number;
  /** Whoever was served goes to the end. */
  readonly isMoved: boolean;
  readonly stays: boolean;
  /** Until when it must be kept, and for how long it is kept after that. */
  readonly sureMs: number;
  readonly spareMs: number;
}

/** Puts the process in its place, or takes it out of the line. Returns whether that has changed anything. */
function queue({ line }: RateLimitState, { who, place, isMoved, stays, sureMs, spareMs }: Place): boolean {
  const [, untilMs = 0] = line[place] ?? [];
  if (!stays && place < 0) return false;
  if (stays && !isMoved && untilMs > sureMs + spareMs / 2) return false;
  if (place >= 0) line.splice(place, 1);
  const at = isMoved || place < 0 ? line.length : place;
  if (stays) line.splice(at, 0, [who, Math.ceil(sureMs + spareMs)]);
  return true;
}

interface Waiting {
  readonly limit: Rate;
  readonly nowMs: number;
  readonly ahead: number;
  /** Whether it waits outside of any process, and is asked to come when its time has surely come. */
  readonly isTold: boolean;
}

/** How long a call waits that has `ahead` others before it: where that depends on calls under way, at least so long. */
function waitOf(state: RateLimitState, { limit, nowMs, ahead, isTold }: Waiting): number {
  const pauseMs = Math.max(0, state.pausedUntilMs - nowMs);
  if (limit.limit === Number.POSITIVE_INFINITY) return pauseMs === 0 && state.trial ? TRIAL_MS : pauseMs;
  const { resting, open } = state;
  const short = ahead - (limit.limit - open.size - resting.length);
  if (short < 0) return pauseMs;
  const restMs = restMsOf(limit);
  const windows = Math.floor(short / limit.limit);
  const lateMs = isTold ? (windows + 1) * (limit.windowMs * LATE.share + LATE.ms) : 0;
  const slotMs = (resting[short % limit.limit] ?? nowMs + restMs) - nowMs + windows * restMs + lateMs;
  return Math.max(pauseMs, slotMs);
}

/** What is stored. Times are told from `at`: a full limit of 300 calls is kept in a kilobyte. */
interface StoredRateLimit {
  readonly at: number;
  readonly open: Readonly<Record<string, number>>;
  /** Each from the one before. */
  readonly rest: readonly number[];
  readonly line: readonly (readonly [who: string, afterMs: number])[];
  readonly pause: number;
  readonly trial?: string;
}

/** The first call after a pause is waited for so long. */
const TRIAL_KEPT_MS = 60 * 60_000;
/** A state is kept for longer than it matters, so that a clock that was set back does not lose it. */
const SPARE_MS = 60_000;

/** The state as text, and for how many milliseconds it matters; null for a limit that is as good as new. */
export function encodeRateLimit(state: RateLimitState): { readonly value: string; readonly ttlMs: number } | null {
  const { open, resting, line, pausedUntilMs, trial, seenMs } = state;
  const leases = [...open.values(), ...line.map(([, untilMs]) => untilMs)];
  const trialMs = trial === undefined ? 0 : Math.max(seenMs, pausedUntilMs) + TRIAL_KEPT_MS;
  const overMs = Math.max(resting.at(-1) ?? 0, pausedUntilMs, trialMs, ...leases);
  if (overMs <= seenMs) return null;
  const after = (untilMs: number) => Math.ceil(untilMs - seenMs);
  const stored: StoredRateLimit = {
    at: seenMs,
    open: Object.fromEntries([...open].map(([id, untilMs]) => [id, after(untilMs)])),
    rest: resting.map((freeMs, at) => after(freeMs) - after(resting[at - 1] ?? seenMs)),
    line: line.map(([who, untilMs]) => [who, after(untilMs)]),
    pause: Math.max(0, after(pausedUntilMs)),
    ...(trial !== undefined && { trial }),
  };
  return { value: JSON.stringify(stored), ttlMs: Math.ceil(overMs - seenMs) + SPARE_MS };
}

/** What {@link encodeRateLimit} has written. Undefined for something else. */
export function decodeRateLimit(value: string | undefined): RateLimitState | undefined {
  if (value === undefined) return newRateLimit();
  const stored = parsed(value);
  if (typeof stored?.at !== 'number' || !Array.isArray(stored.rest) || !Array.isArray(stored.line)) return undefined;
  const { at, open, rest, line, pause, trial } = stored;
  let freeMs = at;
  return {
    open: new Map(Object.entries(open).map(([id, afterMs]) => [id, at + afterMs])),
    resting: rest.map((afterMs) => {
      freeMs += afterMs;
      return freeMs;
    }),
    line: line.map(([who, afterMs]) => [who, at + afterMs]),
    pausedUntilMs: at + pause,
    trial,
    seenMs: at,
  };
}

function parsed(text: string): StoredRateLimit | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
