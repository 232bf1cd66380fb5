// The only reader of time and maker of timers in the client: everything else takes a Clock that a test can hold.
import { onAbort } from './abort.js';

/** Where the client gets its time from. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Runs `fire` once after `ms` milliseconds, never early; gives the function that calls it off. */
  after(ms: number, fire: () => void): () => void;
  /**
   * Whether timers and promises belong to the request that made them and end with it, as on Cloudflare Workers. A call
   * must then not wait for anything that another call does.
   */
  readonly perRequest?: boolean;
}

/** Longest wait in one timer: one whose delay does not fit into 31 bits would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 2;

/** The runtime's own clock. Timers are looked up at each call, so a test's fake timers are seen. */
export const systemClock: Clock = {
  now: () => Date.now(),
  get perRequest() {
    return globalThis.navigator?.userAgent === 'Cloudflare-Workers';
  },
  after(ms, fire) {
    if (ms <= LONGEST_TIMER_MS) {
      // A timer may fire up to 0.8 ms early, so round up and add one.
      const timer = setTimeout(fire, Math.ceil(ms) + 1);
      return () => clearTimeout(timer);
    }
    const goOn = () => {
      cancel = systemClock.after(ms - LONGEST_TIMER_MS, fire);
    };
    let cancel = systemClock.after(LONGEST_TIMER_MS, goOn);
    return () => cancel();
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
    get perRequest() {
      return clock.perRequest ?? false;
    },
    after(ms, fire) {
      const due = now() + ms;
      return clock.after(ms, () => {
        reach(Math.max(due, last));
        fire();
      });
    },
  };
}

/** Resolves after `ms` milliseconds. An abort rejects at once with the signal's own reason, and takes the timer away. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const cancel = clock.after(ms, () => {
      forget();
      resolve();
    });
    const forget = onAbort(signal, () => {
      cancel();
      reject(signal?.reason);
    });
  });
}
