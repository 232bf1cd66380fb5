import { type Clock, steady, systemClock } from '../clock.js';
import { type LaneLimit, LaneState } from './lane-state.js';
import { checkLimiterOptions } from './limiter-options.js';
import type { Lane, LaneLimiter, LaneSnapshot, LaneWait, Release } from './rate-limiter.js';

const PER_MINUTE = { windowMs: 60_000 } as const;

/** The documented limits of one account (spec: Limits). */
export const DOCUMENTED_LIMITS: Readonly<Record<Lane, LaneLimit>> = {
  'uploads.create': { limit: 60, ...PER_MINUTE },
  'uploads.put': { limit: 60, ...PER_MINUTE },
  'uploads.delete': { limit: 60, ...PER_MINUTE },
  'videos.create': { limit: 20, ...PER_MINUTE },
  'jobs.get': { limit: 120, ...PER_MINUTE },
  'jobs.output': { limit: 300, ...PER_MINUTE },
};

/** What an {@link InProcessLimiter} is made with. */
export interface InProcessLimiterOptions {
  /**
   * Limits by lane, in place of the documented ones of the same lane. `limit: Infinity` removes a lane's limit.
   * @default the documented limits (spec: Limits)
   */
  readonly limits?: Readonly<Record<string, LaneLimit>> | undefined;
}

/**
 * The default limiter, for one process. It keeps the documented limits, first come first served. A lane without a limit
 * lets everything through unless it is paused. Throws a GenError for a limit that cannot be right.
 */
export class InProcessLimiter implements LaneLimiter {
  readonly #lanes = new Map<string, LaneState>();
  readonly #clock: Clock;

  /** Starts with every lane free. */
  constructor(options?: InProcessLimiterOptions);
  /** @internal `clock` is for tests. */
  constructor(options?: InProcessLimiterOptions, clock?: Clock);
  constructor(options: InProcessLimiterOptions = {}, clock: Clock = systemClock) {
    this.#clock = steady(clock);
    checkLimiterOptions(options);
    for (const [lane, limit] of Object.entries({ ...DOCUMENTED_LIMITS, ...options.limits })) {
      this.#lanes.set(lane, new LaneState(lane, limit, this.#clock));
    }
  }

  /** Waits for a slot. Resolves with the function that releases it. */
  acquire(lane: string, signal?: AbortSignal, onWait?: (wait: LaneWait) => void): Promise<Release> {
    return this.#lane(lane).acquire(signal, onWait);
  }

  /** Takes a slot that is free now, or tells the milliseconds until one may be free. */
  tryAcquire(lane: string): Release | number {
    return this.#lane(lane).tryAcquire();
  }

  /** Adds up to a tenth (a second at most) to `ms`, so that processes which were refused together do not return together. */
  pause(lane: string, ms: number): void {
    if (!(ms > 0 && ms < Number.POSITIVE_INFINITY)) return;
    const state = this.#lane(lane);
    this.#lanes.set(lane, state);
    state.pause(ms + Math.random() * Math.min(ms / 10, 1000));
  }

  /** The state of every lane. */
  snapshot(): Record<string, LaneSnapshot> {
    return Object.fromEntries([...this.#lanes].map(([lane, state]) => [lane, state.snapshot()]));
  }

  /** A lane without a limit is kept only once it was paused: names may come from anywhere and must not pile up. */
  #lane(name: string): LaneState {
    const unlimited = { limit: Number.POSITIVE_INFINITY, windowMs: 0 };
    return this.#lanes.get(name) ?? new LaneState(name, unlimited, this.#clock);
  }
}
