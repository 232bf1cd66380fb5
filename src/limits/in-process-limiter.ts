import { noEarlier } from '../rules/backoff.js';
import { DOCUMENTED_LIMITS, type LaneLimit } from '../rules/limits.js';
import { type Clock, type Random, randomOf, steady, systemClock } from '../runtime/clock.js';
import { InProcessLane } from './in-process-lane.js';
import { checkLimiterOptions } from './limiter-options.js';
import type { LaneLimiter, LaneSnapshot, LaneWait, Release } from './rate-limiter.js';

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
    checkLimiterOptions(options);
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
