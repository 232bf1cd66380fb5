// One rate limit as a rule. The limiter of one process keeps the state in memory, the shared one in a store.
import type { LaneLimit } from './limits.js';

/** A process that uses the lane. Where calls must not depend on each other, each call is a member of its own. */
interface Member {
  /** Its calls under way, as it has told. */
  open: number;
  /** Slots that others have given it since. */
  given: number;
  /** How many slots others have given it in all. */
  total: number;
  /** How many of its answered calls have been counted. */
  answered: number;
  /** When it is taken for dead, unless it takes a turn before. */
  untilMs: number;
}

/** Calls that wait, and came in the same moment. */
export interface Arrival {
  /** When they came. Moments of several members are the same when they are closer than clocks can tell. */
  readonly atMs: number;
  readonly calls: number;
}

/** An arrival of a member. */
interface MemberRun {
  readonly member: string;
  atMs: number;
  calls: number;
  /** How many of them have a slot already. */
  served: number;
}

/**
 * A lane has `limit` slots. A slot is free again one window after the answer of its call came.
 *
 * The service counts a call at an unknown moment between its sending and its answer. Two calls that use one slot in turn
 * are therefore counted more than a window apart, whatever the network does, so no window, fixed or sliding, contains more
 * calls than there are slots. Measured from the sending, a slow call and its successor could meet in one window.
 */
export interface LaneState {
  /** When each resting slot is free again, earliest first. */
  readonly resting: number[];
  /** The calls that wait, by arrival. */
  queue: MemberRun[];
  readonly members: Map<string, Member>;
  /** No call is sent before. */
  pausedUntilMs: number;
  /** The time of the last change, to notice a clock that was set back. */
  seenMs: number;
}

/** What a member tells, and asks for. Every value is absolute, so that a turn whose outcome was lost can be repeated. */
export interface LaneTurn {
  readonly member: string;
  /** Its calls under way. */
  readonly open: number;
  /** How many of its calls were answered, and are known to have been counted. */
  readonly counted: number;
  /** The calls that were answered since: how long ago at least, in milliseconds. */
  readonly answeredAgoMs: readonly number[];
  /** How many slots it knows that others have given it in all. */
  readonly received: number;
  /** Whether it gives the members behind it their slots as well, so that each of them only has to read. */
  readonly helps: boolean;
  /** Its calls that wait, and keep their places in the queue; earliest first. */
  readonly waiting: readonly Arrival[];
  /** Its calls that are sent now or not at all: they do not queue. */
  readonly tries: number;
  /** For how long, in milliseconds, it knows the lane to be paused. */
  readonly pauseMs: number;
  /** For how long, in milliseconds, it keeps its slots and its places without another turn. */
  readonly leaseMs: number;
}

/** What a member gets. */
export interface LaneReply {
  /** How many of its waiting calls have a slot now. */
  readonly granted: number;
  /** How many slots others have given it in all. */
  readonly received: number;
  /** How many of its tries have a slot now. */
  readonly taken: number;
  /** How many calls wait before its first waiting call, or before a try. */
  readonly ahead: number;
  /** How many other members have a call before it. */
  readonly rank: number;
  /** Milliseconds until that call has a slot, as far as is known. */
  readonly waitMs: number;
  /** Whether `waitMs` is the time of a slot or of a pause. Otherwise the answer to a call under way decides. */
  readonly isKnown: boolean;
  readonly isPaused: boolean;
  /** Whether the state has to be written. */
  readonly isChanged: boolean;
}

/** A member whose lease lasts so long has just taken a turn. */
const ALIVE_MS = 5_000;

/** A lane that nobody has used. */
export function emptyLane(): LaneState {
  return { resting: [], queue: [], members: new Map(), pausedUntilMs: 0, seenMs: 0 };
}

/** How long a slot rests. Two clocks drift by half a per mille at most, and times are cut to whole milliseconds. */
export function restMsOf({ windowMs }: LaneLimit): number {
  return windowMs * 1.0005 + 1;
}

/** A member's turn, at the time of the one clock that all members share. Changes the state. */
export function takeTurn(lane: LaneState, turn: LaneTurn, limit: LaneLimit, nowMs: number): LaneReply {
  const { member, waiting, tries, pauseMs } = turn;
  let isChanged = nowMs < lane.seenMs;
  const inUse = tidyLane(lane, { nowMs, limit, spared: member });
  const me = lane.members.get(member);
  const answered = turn.counted + turn.answeredAgoMs.length;
  const news = turn.answeredAgoMs.slice(Math.max(0, (me?.answered ?? 0) - turn.counted));
  for (const agoMs of limit.limit < Number.POSITIVE_INFINITY ? news : [])
    restSlot(lane, nowMs - agoMs + restMsOf(limit));
  if (pauseMs > 0 && nowMs + pauseMs > lane.pausedUntilMs) {
    lane.pausedUntilMs = nowMs + pauseMs;
    isChanged = true;
  }
  const received = Math.max(me?.total ?? 0, turn.received);
  const { given, left } =
    received > turn.received ? takeGiven(waiting, received - turn.received) : { given: 0, left: waiting };
  const isQueued = (left.length > 0 || lane.queue.length > 0) && enqueue(lane, member, left);
  const isPaused = lane.pausedUntilMs > nowMs;
  const usedBefore = me ? me.open + me.given : 0;
  const free = limit.limit - (inUse - usedBefore) - turn.open - given - lane.resting.length;
  const { granted, ahead, queued } = lane.queue.length > 0 ? grant(lane, member, isPaused ? 0 : free) : NOTHING_GRANTED;
  const isWaiting = queued > 0 && lane.queue.some((run) => run.member === member);
  const taken = isPaused ? 0 : Math.max(0, Math.min(tries, free - granted - queued));
  const open = turn.open + given + granted + taken;
  isChanged ||= news.length > 0 || isQueued || open !== usedBefore;
  const isFresh = me !== undefined && !isChanged && me.untilMs - nowMs > turn.leaseMs / 2;
  if (open === 0 && !isWaiting) isChanged = lane.members.delete(member) || isChanged;
  else if (!isFresh) {
    lane.members.set(member, { open, given: 0, total: received, answered, untilMs: nowMs + turn.leaseMs });
    isChanged = true;
  }
  let unused = free - granted - taken;
  if (turn.helps && granted > 0) unused = giveToOthers(lane, { member, free: unused, nowMs });
  if (isChanged) lane.seenMs = nowMs;
  const place = { ahead: isWaiting ? ahead : queued, free: unused };
  const hasAll = !isWaiting && taken === tries;
  const wait = hasAll ? NO_WAIT : waitOf(lane, place, { limit, nowMs, isPaused });
  const rank = isWaiting ? memberRank(lane, member) : 0;
  return { granted: given + granted, received, taken, ahead: place.ahead, rank, isPaused, isChanged, ...wait };
}

const NOTHING_GRANTED: Granted = { granted: 0, ahead: 0, queued: 0 };
const NO_WAIT = { waitMs: 0, isKnown: true } as const;

/** How many slots are in use, and how long a call waits that has `ahead` calls before it. */
export function lookAtLane(
  lane: LaneState,
  limit: LaneLimit,
  nowMs: number,
  ahead = 0,
): { readonly waitMs: number; readonly inUse: number } {
  const inUse = tidyLane(lane, { nowMs, limit, spared: undefined }) + lane.resting.length;
  const isPaused = lane.pausedUntilMs > nowMs;
  const { waitMs } = waitOf(lane, { ahead, free: limit.limit - inUse }, { limit, nowMs, isPaused });
  return { waitMs, inUse };
}

/** How many calls wait. */
export function queuedCalls({ queue }: LaneState): number {
  return queue.reduce((calls, run) => calls + run.calls, 0);
}

interface Tidy {
  readonly nowMs: number;
  readonly limit: LaneLimit;
  /** Whose turn it is: it is alive. */
  readonly spared: string | undefined;
}

/** Forgets what is over. Returns how many calls are under way. */
function tidyLane(lane: LaneState, { nowMs, limit, spared }: Tidy): number {
  if (nowMs < lane.seenMs) setBack(lane, lane.seenMs - nowMs);
  let isDead = false;
  let underWay = 0;
  for (const [name, { open, given, untilMs }] of lane.members) {
    if (untilMs > nowMs || name === spared) {
      underWay += open + given;
      continue;
    }
    lane.members.delete(name);
    isDead = true;
    // Its calls were answered at the latest when its lease ended.
    for (let call = 0; call < open + given; call++) restSlot(lane, untilMs + restMsOf(limit));
  }
  if (isDead) lane.queue = lane.queue.filter(({ member }) => member === spared || lane.members.has(member));
  const { resting } = lane;
  let over = 0;
  while (over < resting.length && (resting[over] ?? 0) <= nowMs) over++;
  if (over > 0) resting.splice(0, over);
  return underWay;
}

/** The clock was set back: what was so far away is still as far away. */
function setBack(lane: LaneState, byMs: number): void {
  for (const [at, freeMs] of lane.resting.entries()) lane.resting[at] = freeMs - byMs;
  for (const member of lane.members.values()) member.untilMs -= byMs;
  for (const run of lane.queue) run.atMs -= byMs;
  lane.pausedUntilMs -= byMs;
  lane.seenMs -= byMs;
}

/** A slot rests until then. The times are in order; most slots go to the end. */
function restSlot({ resting }: LaneState, untilMs: number): void {
  let at = resting.length;
  while (at > 0 && (resting[at - 1] ?? 0) > untilMs) at--;
  resting.splice(at, 0, untilMs);
}

/** Gives the first of the waiting calls the slots that others have given the member. */
function takeGiven(waiting: readonly Arrival[], slots: number): { given: number; left: readonly Arrival[] } {
  let given = 0;
  const left: Arrival[] = [];
  for (const { atMs, calls } of waiting) {
    const served = Math.min(calls, slots - given);
    given += served;
    if (calls > served) left.push({ atMs, calls: calls - served });
  }
  return { given, left };
}

interface Gift {
  readonly member: string;
  readonly free: number;
  readonly nowMs: number;
}

/** The members behind get their slots with the same write. One that may have died takes its own. */
function giveToOthers(lane: LaneState, { member, free, nowMs }: Gift): number {
  let left = free;
  for (const name of new Set(lane.queue.map((run) => run.member))) {
    const other = lane.members.get(name);
    if (left <= 0) break;
    if (!other || name === member || other.untilMs - nowMs < ALIVE_MS) continue;
    const { granted } = grant(lane, name, left);
    other.given += granted;
    other.total += granted;
    left -= granted;
  }
  return left;
}

/** The calls of a member take their places by arrival. Returns whether the queue has changed. */
function enqueue(lane: LaneState, member: string, waiting: readonly Arrival[]): boolean {
  const known = lane.queue.filter((run) => run.member === member);
  const isSame = known.every(({ atMs, calls }, at) => waiting[at]?.atMs === atMs && waiting[at].calls === calls);
  if (isSame && known.length === waiting.length) return false;
  for (const { atMs, calls } of waiting) {
    const same = known.find((run) => run.atMs === atMs);
    if (same) same.calls = calls;
    else lane.queue.push({ member, atMs, calls, served: 0 });
  }
  const kept = new Set(waiting.map(({ atMs }) => atMs));
  lane.queue = lane.queue
    .filter((run) => run.member !== member || kept.has(run.atMs))
    .sort((one, other) => one.atMs - other.atMs);
  return true;
}

interface Granted {
  readonly granted: number;
  /** Calls of others before the first call of the member that still waits. */
  readonly ahead: number;
  /** All calls that still wait. */
  readonly queued: number;
}

/**
 * From the head of the queue each call has a free slot to itself. The member takes those of its own calls. Calls that came
 * in the same moment are served in turn: one of each member, then the second of each.
 */
function grant(lane: LaneState, member: string, free: number): Granted {
  const { queue } = lane;
  const all = queuedCalls(lane);
  let before = 0;
  let granted = 0;
  for (let from = 0, to = 0; from < queue.length; from = to) {
    while (to < queue.length && queue[to]?.atMs === queue[from]?.atMs) to++;
    const moment = queue.slice(from, to);
    const at = moment.findIndex((run) => run.member === member);
    const mine = moment[at];
    for (let nth = 0; mine && nth < mine.calls; nth++) {
      const turns = mine.served + nth;
      const ahead = moment.reduce(
        (calls, run, place) => calls + callsWithin(run, turns + (place < at ? 1 : 0)),
        before,
      );
      if (ahead < free) continue;
      take(lane, mine, nth);
      return { granted: granted + nth, ahead: ahead - granted - nth, queued: all - granted - nth };
    }
    before += moment.reduce((calls, run) => calls + run.calls, 0);
    if (mine) {
      granted += mine.calls;
      take(lane, mine, mine.calls);
    }
  }
  return { granted, ahead: all - granted, queued: all - granted };
}

function memberRank({ queue }: LaneState, member: string): number {
  const first = queue.findIndex((run) => run.member === member);
  return new Set(queue.slice(0, first).map((run) => run.member)).size;
}

/** How many calls of a run still wait within its first `turns`. */
function callsWithin({ calls, served }: MemberRun, turns: number): number {
  return Math.max(0, Math.min(calls, turns - served));
}

function take(lane: LaneState, run: MemberRun, calls: number): void {
  run.calls -= calls;
  run.served += calls;
  if (run.calls === 0) lane.queue = lane.queue.filter((other) => other !== run);
}

interface Place {
  readonly ahead: number;
  readonly free: number;
}

interface Moment {
  readonly limit: LaneLimit;
  readonly nowMs: number;
  readonly isPaused: boolean;
}

/** How long a call waits at its place. An estimate where it depends on calls that are under way. */
function waitOf(lane: LaneState, { ahead, free }: Place, { limit, nowMs, isPaused }: Moment) {
  const pauseMs = isPaused ? lane.pausedUntilMs - nowMs : 0;
  const short = ahead - free;
  if (!(short >= 0)) return { waitMs: pauseMs, isKnown: true };
  const restMs = restMsOf(limit);
  const freeMs = lane.resting[short % limit.limit];
  const slotMs = (freeMs ?? nowMs + restMs) - nowMs + Math.floor(short / limit.limit) * restMs;
  return { waitMs: Math.max(pauseMs, slotMs), isKnown: isPaused || freeMs !== undefined };
}
