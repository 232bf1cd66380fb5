/** A documented per-minute limit (by the name that the SDK gives it; spec: Limits). */
export type Lane = 'uploads.create' | 'uploads.put' | 'uploads.delete' | 'videos.create' | 'jobs.get' | 'jobs.output';

/** A call that waits for its lane (told once for each). */
export interface LaneWait {
  /** @remarks The lane that is full or paused. */
  readonly lane: string;
  /** @remarks Milliseconds the call will wait, as far as can be said now. */
  readonly waitMs: number;
  /** @remarks Calls that wait on the lane, this one included. */
  readonly queued: number;
  /** @remarks `limit`: the documented limit is used up. `pause`: the service asked to wait. */
  readonly reason: 'limit' | 'pause';
}

/** Keeps calls under limits. Bring your own to share one budget between processes. */
export interface RateLimiter {
  /**
   * Resolves when a call may go out, with what to call when its answer's head has come (or the attempt has failed).
   * Calls are served first come first served; only from the function's call on is the slot's window known to have
   * begun. An abort rejects at once with the signal's own reason. `onWait` may be told when the call has to queue.
   */
  acquire(lane: string, signal?: AbortSignal, onWait?: (wait: LaneWait) => void): Promise<() => void>;
  /** Nothing goes out on `lane` for `ms` (the service said so). */
  pause(lane: string, ms: number): void;
}

/** One lane as it stands. */
export interface LaneSnapshot {
  /** Calls under way, and in the window. */
  readonly inUse: number;
  readonly queued: number;
  /** @remarks Milliseconds until the next slot is free; 0 when one is free now. */
  readonly nextFreeMs: number;
}

/** A limiter that can refuse, and say how it stands. */
export interface LaneLimiter extends RateLimiter {
  /** A slot's release, or the milliseconds until one may be free. Never passes those who queue. */
  tryAcquire(lane: string): (() => void) | number;
  /** Every limited lane. */
  snapshot(): Record<string, LaneSnapshot>;
}
