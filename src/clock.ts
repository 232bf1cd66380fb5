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
    let timer: ReturnType<typeof setTimeout>;
    const arm = (left: number) => {
      timer =
        left < LONGEST_TIMER_MS
          ? // A timer may fire up to 0.8 ms early, so round up and add one.
            setTimeout(fire, Math.ceil(left) + 1)
          : setTimeout(() => arm(left - LONGEST_TIMER_MS), LONGEST_TIMER_MS);
    };
    arm(ms);
    return () => clearTimeout(timer);
  },
};

/**
 * The same clock, made safe against a machine whose time is set back: `now` never runs backwards, and when a timer fires
 * its time has passed. Good for differences only; a step back leaves it ahead of the wall clock.
 */
export function steady(clock: Clock): Clock {
  let last = Number.NEGATIVE_INFINITY;
  let shift = 0;
  const reach = (floor: number) => {
    const now = clock.now() + shift;
    if (now < floor) shift += floor - now;
    last = Math.max(now, floor);
    return last;
  };
  const now = () => reach(last);
  return {
    now,
    after(ms, fire) {
      const due = now() + ms;
      return clock.after(ms, () => {
        reach(Math.max(due, last));
        fire();
      });
    },
  };
}

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
