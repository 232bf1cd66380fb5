import * as z from 'zod/mini';
import { noEarlier } from '../rules/backoff.js';
import {
  type Arrival,
  emptyLane,
  type LaneReply,
  type LaneTurn,
  lookAtLane,
  queuedCalls,
  takeTurn,
} from '../rules/lane.js';
import { DOCUMENTED_LIMITS, type LaneLimit } from '../rules/limits.js';
import * as option from '../rules/options.js';
import { type Clock, type Random, randomOf, steady, systemClock } from '../runtime/clock.js';
import { sleep } from '../runtime/deadline.js';
import { LOOK_AGAIN_MS } from '../runtime/platform.js';
import type { LaneLimiter, LaneSnapshot, LaneWait, Release } from './rate-limiter.js';
import { WaitingLine } from './waiting-line.js';

const LIMIT = z.custom<number>(
  (value) => value === Number.POSITIVE_INFINITY || (typeof value === 'number' && Number.isInteger(value) && value >= 1),
  'a whole number of at least 1, or Infinity',
);
const WINDOW_MS = z.custom<number>(
  (value) => typeof value === 'number' && value > 0 && value < Number.POSITIVE_INFINITY,
  'a positive number of milliseconds',
);

/** Limits by lane, as an option. */
export const LIMITS = z.optional(
  z.record(
    z.string(),
    z.strictObject({ limit: LIMIT, windowMs: WINDOW_MS }, 'an object { limit, windowMs }'),
    'an object',
  ),
);

const LIMITER_OPTIONS = z.strictObject({ limits: LIMITS });

/** What an {@link InProcessLimiter} is made with. */
export interface InProcessLimiterOptions {
  /**
   * Limits by lane, in place of the documented ones of the same lane. `limit: Infinity` removes a lane's limit.
   * @default the documented limits
   */
  readonly limits?: Readonly<Record<string, LaneLimit>> | undefined;
}

/** Lanes in memory, by name and limit: limiters with one pool count together where they agree on a limit. */
export type LanePool = Map<string, InProcessLane>;

/** What accounts and tests add. */
interface Parts {
  readonly random?: Random | undefined;
  readonly pool?: LanePool | undefined;
}

/**
 * The default limiter, for one process. It keeps the documented limits, first come first served. A lane without a limit
 * lets everything through unless it is paused. Throws a GenError for a limit that cannot be right.
 */
export class InProcessLimiter implements LaneLimiter {
  readonly #lanes = new Map<string, InProcessLane>();
  readonly #clock: Clock;
  readonly #random: Random;

  /** Starts with every lane free. */
  constructor(options?: InProcessLimiterOptions);
  /** @internal `clock` and `parts` are for accounts and tests. */
  constructor(options?: InProcessLimiterOptions, clock?: Clock, parts?: Parts);
  constructor(options: InProcessLimiterOptions = {}, clock: Clock = systemClock, parts: Parts = {}) {
    const { random = randomOf(clock), pool = new Map() } = parts;
    this.#clock = steady(clock);
    this.#random = random;
    option.checkOptions('InProcessLimiter', LIMITER_OPTIONS, options);
    for (const [name, limit] of Object.entries({ ...DOCUMENTED_LIMITS, ...options.limits })) {
      const id = `${name} ${limit.limit} ${limit.windowMs}`;
      const lane = pool.get(id) ?? new InProcessLane(name, limit, this.#clock);
      pool.set(id, lane);
      this.#lanes.set(name, lane);
    }
  }

  /** Waits for a slot. Resolves with the function that releases it. */
  acquire(lane: string, signal?: AbortSignal, onWait?: (wait: LaneWait) => void): Promise<Release> {
    return this.#lane(lane).acquire(signal, onWait);
  }

  /** Takes a slot that is free now, or gives the milliseconds until one may be free. */
  tryAcquire(lane: string): Release | number {
    return this.#lane(lane).tryAcquire();
  }

  /** Adds up to a tenth (a second at most) to `ms`, so that processes which were refused together do not return together. */
  pause(lane: string, ms: number): void {
    if (!(ms > 0 && ms < Number.POSITIVE_INFINITY)) return;
    const state = this.#lane(lane);
    this.#lanes.set(lane, state);
    state.pause(noEarlier(ms, this.#random.next()));
  }

  /** The state of every lane. */
  snapshot(): Record<string, LaneSnapshot> {
    return Object.fromEntries([...this.#lanes].map(([lane, state]) => [lane, state.snapshot()]));
  }

  /** The state of one lane. */
  lane(name: string): LaneSnapshot;
  /** @internal The wait is that of a call with `ahead` calls before it. */
  lane(name: string, ahead?: number): LaneSnapshot;
  lane(name: string, ahead = 0): LaneSnapshot {
    return this.#lane(name).snapshot(ahead);
  }

  /** A lane without a limit is kept only once it was paused: names may come from anywhere and must not pile up. */
  #lane(name: string): InProcessLane {
    const unlimited = { limit: Number.POSITIVE_INFINITY, windowMs: 0 };
    return this.#lanes.get(name) ?? new InProcessLane(name, unlimited, this.#clock);
  }
}

/** All calls of a process are one member of its lane. */
const ONLY_MEMBER = '';
/** On Workers a request may end without notice. A queued call that has not looked for so long has ended with it. */
const PLACE_LEASE_MS = 5_000;
/** A call that has been under way for so long has ended with its request, too. */
const SLOT_LEASE_MS = 120_000;

const NONE: readonly number[] = Object.freeze([]);
const NOW: readonly number[] = [0];
/** A turn that tells and asks for nothing. */
const NOTHING = {
  open: 0,
  counted: 0,
  answeredAgoMs: NONE,
  received: 0,
  helps: false,
  waiting: Object.freeze<Arrival[]>([]),
  tries: 0,
  pauseMs: 0,
  leaseMs: 0,
};
/** In one process calls are served in the order in which they came. */
const ONE: readonly Arrival[] = [{ atMs: 0, calls: 1 }];

/** One lane in the memory of this process. On Workers each call is a member of its own, because requests end alone. */
class InProcessLane {
  readonly #name: string;
  readonly #limit: LaneLimit;
  readonly #clock: Clock;
  readonly #lane = emptyLane();
  readonly #line = new WaitingLine(() => this.#serve());
  #open = 0;
  #answered = 0;
  #calls = 0;
  #timer: { readonly dueMs: number; readonly stop: () => void } | undefined;

  constructor(name: string, limit: LaneLimit, clock: Clock) {
    this.#name = name;
    this.#limit = limit;
    this.#clock = clock;
  }

  tryAcquire(): Release | number {
    if (this.#clock.perRequest) return this.#tryAlone();
    const reply = this.#turn({ tries: 1 });
    if (reply.taken === 0) return Math.max(1, reply.waitMs);
    return this.#slot();
  }

  acquire(signal?: AbortSignal, onWait?: (wait: LaneWait) => void): Promise<Release> {
    if (this.#clock.perRequest) return this.#acquireAlone(signal, onWait);
    const slot = this.#line.join({ signal, onWait, warn: undefined });
    this.#serve();
    return slot;
  }

  pause(ms: number): void {
    this.#turn({ pauseMs: ms });
  }

  /** The state, with the wait of a call that has `ahead` calls before it. */
  snapshot(ahead = 0): LaneSnapshot {
    const { limit, windowMs } = this.#limit;
    const { waitMs, inUse } = lookAtLane(this.#lane, this.#limit, this.#clock.now(), ahead);
    return { inUse, queued: queuedCalls(this.#lane), nextFreeMs: waitMs, limit, windowMs };
  }

  #serve(): void {
    this.#turn({});
  }

  /** A turn of the process: its waiting calls get what is free. */
  #turn({ tries = 0, pauseMs = 0 }: Partial<LaneTurn>, answers = 0): LaneReply {
    const nowMs = this.#clock.now();
    const turn: LaneTurn = {
      ...NOTHING,
      member: ONLY_MEMBER,
      open: this.#open,
      counted: this.#answered - answers,
      answeredAgoMs: answers === 0 ? NONE : NOW,
      waiting: this.#line.calls.size === 0 ? NOTHING.waiting : this.#line.arrivals,
      tries,
      pauseMs,
      leaseMs: Number.POSITIVE_INFINITY,
    };
    const reply = takeTurn(this.#lane, turn, this.#limit, nowMs);
    for (let granted = 0; granted < reply.granted; granted++) this.#line.next()?.resolve(this.#slot());
    if (this.#line.calls.size > 0 || this.#timer) this.#wait(reply, nowMs);
    return reply;
  }

  #wait({ ahead, waitMs, isKnown, isPaused }: LaneReply, nowMs: number): void {
    const waits = this.#line.calls.size;
    // Without a known time the release of a call decides, and serves the line.
    const dueMs = waits > 0 && isKnown ? nowMs + waitMs : undefined;
    if (this.#timer?.dueMs !== dueMs) {
      this.#timer?.stop();
      const fire = () => {
        this.#timer = undefined;
        this.#serve();
      };
      this.#timer = dueMs === undefined ? undefined : { dueMs, stop: this.#clock.after(waitMs, fire) };
    }
    this.#line.tell({ lane: this.#name, reason: isPaused ? 'pause' : 'limit' }, (place) => ({
      waitMs: lookAtLane(this.#lane, this.#limit, nowMs, ahead + place).waitMs,
      queued: place + 1,
    }));
  }

  #slot(): Release {
    this.#open++;
    let isOpen = true;
    return (outcome) => {
      if (!isOpen) return;
      isOpen = false;
      this.#open--;
      if (outcome === 'unused') this.#serve();
      else {
        this.#answered++;
        this.#turn({}, 1);
      }
    };
  }

  #tryAlone(): Release | number {
    const member = this.#newMember();
    const reply = this.#turnAlone(member, { tries: 1, leaseMs: SLOT_LEASE_MS });
    return reply.taken > 0 ? this.#slotAlone(member) : Math.max(1, reply.waitMs);
  }

  async #acquireAlone(signal?: AbortSignal, onWait?: (wait: LaneWait) => void): Promise<Release> {
    signal?.throwIfAborted();
    const member = this.#newMember();
    const turn = () => this.#turnAlone(member, { waiting: ONE, leaseMs: PLACE_LEASE_MS });
    let reply = turn();
    try {
      if (reply.granted === 0) {
        const { waitMs, ahead, isPaused } = reply;
        onWait?.({ lane: this.#name, waitMs, queued: ahead + 1, reason: isPaused ? 'pause' : 'limit' });
      }
      for (; reply.granted === 0; reply = turn()) {
        await sleep(this.#clock, Math.min(reply.waitMs, LOOK_AGAIN_MS), signal);
      }
    } catch (error) {
      this.#turnAlone(member, {});
      throw error;
    }
    return this.#slotAlone(member);
  }

  #slotAlone(member: string): Release {
    this.#turnAlone(member, { open: 1, leaseMs: SLOT_LEASE_MS });
    let isOpen = true;
    return (outcome) => {
      if (!isOpen) return;
      isOpen = false;
      this.#turnAlone(member, { answeredAgoMs: outcome === 'unused' ? NONE : NOW });
    };
  }

  #turnAlone(member: string, turn: Partial<LaneTurn>): LaneReply {
    return takeTurn(this.#lane, { ...NOTHING, ...turn, member }, this.#limit, this.#clock.now());
  }

  #newMember(): string {
    this.#calls += 1;
    return String(this.#calls);
  }
}
