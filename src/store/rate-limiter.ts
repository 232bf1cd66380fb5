/** Told once for each call that has to wait for its lane. */
export interface LaneWait {
  /** The lane that is full or paused. */
  readonly lane: string;
  /** Milliseconds that the call will wait, as far as is known now. */
  readonly waitMs: number;
  /** Calls that wait on the lane, this one included. */
  readonly queued: number;
  /** `limit`: the documented limit is reached. `pause`: the service asked to wait. */
  readonly reason: 'limit' | 'pause';
}

/** Keeps calls under the service's limits. Implement it to replace the account's limits. */
export interface RateLimiter {
  /**
   * Resolves when a call on `lane` may be sent, with the function that releases its slot. Calls are served first come,
   * first served. The client calls that function once the headers of the answer have come or the attempt has failed:
   * only from then on is the slot's window known to have begun. It passes `'unused'` when the call was not sent, or was
   * refused by a 429; the slot may then be given to the next call at once.
   * An abort rejects at once with the signal's own reason. Call `onWait` when the call has to queue.
   */
  acquire(lane: string, signal?: AbortSignal, onWait?: (wait: LaneWait) => void): Promise<() => void>;
  /** Sends nothing on `lane` for `ms` milliseconds, because the service asked for that. */
  pause(lane: string, ms: number): void;
}

/** Releases a slot. `unused`: no call was counted by the service. */
export type Release = (outcome?: 'unused') => void;

/** The state of one lane. */
export interface LaneSnapshot {
  /** Slots in use: calls under way, and those whose window has not passed. */
  readonly inUse: number;
  /** Calls that wait for a slot. */
  readonly queued: number;
  /** Milliseconds until the next slot is free; 0 when one is free now. */
  readonly nextFreeMs: number;
  /** Calls that the lane takes in each window. */
  readonly limit: number;
  /** The window in milliseconds. */
  readonly windowMs: number;
}

/** A limiter that can also refuse a call instead of queueing it, and show its state. */
export interface LaneLimiter extends RateLimiter {
  /** A slot at once (the function that releases it), or the milliseconds until one may be free. Never overtakes the queue. */
  tryAcquire(lane: string): Release | number;
  /** The state of every limited lane. */
  snapshot(): Record<string, LaneSnapshot>;
  /** The state of one lane, for a limiter that can tell it at less cost. */
  lane?(name: string): LaneSnapshot;
}

/** What the client uses of a limiter, beyond the port, where the limiter has it. */
export interface AnyLimiter extends RateLimiter, Partial<Pick<LaneLimiter, 'tryAcquire' | 'snapshot'>> {
  acquire(lane: string, signal?: AbortSignal, onWait?: (wait: LaneWait) => void): Promise<Release>;
  /** As `tryAcquire`, for a limiter that has to ask for its state. */
  readonly tryShared?: (lane: string) => Promise<Release | number>;
}
