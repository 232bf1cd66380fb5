// The only reader of time and maker of timers in the client: everything else takes a Clock that a test can hold.

/** Where the client gets its time from. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Runs `fire` once after `ms` milliseconds, never early; gives the function that calls it off. */
  after(ms: number, fire: () => void): () => void;
}

/** Longest delay a runtime's timer holds; a longer one would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The runtime's own clock. Timers are looked up at each call, so a test's fake timers are seen. */
export const systemClock: Clock = {
  now: () => Date.now(),
  after(ms, fire) {
    // A timer may fire up to 0.8 ms early, so round up and add one.
    const timer = setTimeout(fire, Math.min(Math.ceil(ms) + 1, LONGEST_TIMER_MS));
    return () => clearTimeout(timer);
  },
};

/**
 * Resolves after `ms` milliseconds. An abort rejects at once with the signal's own reason; timer and listener are gone
 * either way.
 */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const cancel = clock.after(ms, () => {
      signal?.removeEventListener('abort', abort);
      resolve();
    });
    const abort = () => {
      cancel();
      reject(signal?.reason);
    };
    signal?.addEventListener('abort', abort, { once: true });
  });
}
