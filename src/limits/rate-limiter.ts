/** The documented per-minute limits, by the name the SDK gives each (spec: Limits). */
export type Lane = 'uploads.create' | 'uploads.put' | 'uploads.delete' | 'videos.create' | 'jobs.get' | 'jobs.output';

/** Keeps calls under the service's limits. Bring your own to share one budget between processes. */
export interface RateLimiter {
  /**
   * Resolves when a call on `lane` may go out, first come first served, with the function to be called once the answer's
   * head has come (or the attempt has failed): only from then on is the slot's window known to have begun.
   * An abort rejects at once with the signal's own reason.
   */
  acquire(lane: string, signal?: AbortSignal): Promise<() => void>;
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
