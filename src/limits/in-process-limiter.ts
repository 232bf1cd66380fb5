import { type Clock, steady, systemClock } from '../clock.js';
import { GenError } from '../errors/index.js';
import { AbortFan } from './abort-fan.js';
import { type LaneLimit, type LanePorts, LaneState } from './lane-state.js';
import type { Lane, LaneLimiter, LaneSnapshot, LaneWait } from './rate-limiter.js';

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
   * Limits by lane, on top of the documented ones; `limit: Infinity` takes a lane's limit away.
   * @default the documented limits (spec: Limits)
   */
  readonly limits?: Readonly<Record<string, LaneLimit>> | undefined;
}

/**
 * The default limiter, for one process. It keeps the documented limits, first come first served. A lane without a limit
 * lets everything through, unless it is paused. Throws a {@link GenError} for a limit that is none.
 */
export class InProcessLimiter implements LaneLimiter {
  readonly #lanes = new Map<string, LaneState>();
  readonly #ports: LanePorts;

  /** Starts with every lane free. */
  constructor(options?: InProcessLimiterOptions);
  /** @internal `clock` is for tests. */
  constructor(options?: InProcessLimiterOptions, clock?: Clock);
  constructor(options: InProcessLimiterOptions = {}, clock: Clock = systemClock) {
    this.#ports = { clock: steady(clock), aborts: new AbortFan() };
    for (const [lane, limit] of Object.entries({ ...DOCUMENTED_LIMITS, ...options.limits })) {
      this.#lanes.set(lane, new LaneState(lane, checked(lane, limit), this.#ports));
    }
  }

  acquire(lane: string, signal?: AbortSignal, onWait?: (wait: LaneWait) => void): Promise<() => void> {
    return this.#lane(lane).acquire(signal, onWait);
  }

  tryAcquire(lane: string): (() => void) | number {
    return this.#lane(lane).tryAcquire();
  }

  /** Adds up to a tenth (a second at most) to `ms`. Processes that were refused together do not return together then. */
  pause(lane: string, ms: number): void {
    if (!(ms > 0 && ms < Number.POSITIVE_INFINITY)) return;
    const state = this.#lane(lane);
    this.#lanes.set(lane, state);
    state.pause(ms + Math.random() * Math.min(ms / 10, 1000));
  }

  snapshot(): Record<string, LaneSnapshot> {
    return Object.fromEntries([...this.#lanes].map(([lane, state]) => [lane, state.snapshot()]));
  }

  /** A lane without a limit is remembered only once it was paused: names may come from anywhere and must not pile up. */
  #lane(name: string): LaneState {
    return this.#lanes.get(name) ?? new LaneState(name, { limit: Number.POSITIVE_INFINITY, windowMs: 0 }, this.#ports);
  }
}

function checked(lane: string, given: LaneLimit): LaneLimit {
  const { limit, windowMs } = Object(given);
  if (!(limit >= 1 && (Number.isInteger(limit) || limit === Number.POSITIVE_INFINITY)))
    throw new GenError(`limits['${lane}'].limit must be a whole number of at least 1, or Infinity, not ${limit}.`);
  if (!(windowMs > 0 && windowMs < Number.POSITIVE_INFINITY))
    throw new GenError(`limits['${lane}'].windowMs must be a positive number of milliseconds, not ${windowMs}.`);
  return { limit, windowMs };
}
