/** The documented per-minute limits, by the name the SDK gives each (spec: Limits). */
export type Lane = 'uploads.create' | 'uploads.put' | 'uploads.delete' | 'videos.create' | 'jobs.get' | 'jobs.output';

/** Told once for each call that has to wait for its lane. */
export interface LaneWait {
  /** The lane that is full or paused. */
  readonly lane: string;
  /** Milliseconds the call will wait, as far as can be said now. */
  readonly waitMs: number;
  /** Calls that wait on the lane, this one included. */
  readonly queued: number;
  /** `limit`: the documented limit is used up. `pause`: the service asked to wait. */
  readonly reason: 'limit' | 'pause';
}

/** Keeps calls under the service's limits. Bring your own to share one budget between processes. */
export interface RateLimiter {
  /**
   * Resolves when a call on `lane` may go out, with the function that lets its slot go. Calls go first come, first served.
   * Call it once the answer's head has come or the attempt has failed: only from then on is the slot's window known to
   * have begun.
   * An abort rejects at once with the signal's own reason. `onWait` may be told when the call has to queue.
   */
  acquire(lane: string, signal?: AbortSignal, onWait?: (wait: LaneWait) => void): Promise<() => void>;
  /** Nothing goes out on `lane` for `ms` milliseconds: the service said so. */
  pause(lane: string, ms: number): void;
}

/** One lane as it stands. */
export interface LaneSnapshot {
  /** Slots taken: calls under way and those whose window has not passed. */
  readonly inUse: number;
  /** Calls that wait for a slot. */
  readonly queued: number;
  /** Milliseconds until the next slot is free; 0 when one is free now. */
  readonly nextFreeMs: number;
}

/** A limiter that can also refuse instead of queueing, and say how it stands. */
export interface LaneLimiter extends RateLimiter {
  /** A slot at once (its release function), or the milliseconds until one may be free. Never passes those who queue. */
  tryAcquire(lane: string): (() => void) | number;
  /** Every limited lane as it stands. */
  snapshot(): Record<string, LaneSnapshot>;
}
