import type { Clock } from '../../src/runtime/clock.js';
import { Heap, type Ranked } from './heap.js';

interface Timer extends Ranked {
  readonly fire: () => void;
}

/** A manual clock that jumps from timer to timer. */
export interface VirtualClock extends Clock {
  /** Number of pending timers. */
  readonly timers: number;
  /** Runs everything due within `ms`, and advances the clock by `ms`. */
  advance(ms: number): Promise<void>;
  /** Runs until `promise` settles. Throws if it can't settle anymore. */
  until<T>(promise: Promise<T>): Promise<T>;
  /** Moves the wall clock without affecting timers, like an operator or a time server. */
  step(ms: number): void;
}

/** Runs everything that is ready. */
export const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

export function virtualClock(startMs = Date.UTC(2026, 0, 1)): VirtualClock {
  const timers = new Heap<Timer>();
  let now = startMs;
  let shift = 0;
  const next = async (latest: number) => {
    await settle();
    const timer = timers.first;
    if (!timer || timer.rank > latest) return false;
    timers.remove(timer);
    now = timer.rank;
    timer.fire();
    return true;
  };
  return {
    now: () => now + shift,
    elapsed: () => now,
    after(ms, fire) {
      const timer: Timer = { rank: now + Math.ceil(Math.max(0, ms)), place: -1, fire };
      timers.add(timer);
      return () => {
        if (timer.place >= 0) timers.remove(timer);
      };
    },
    get timers() {
      return timers.size;
    },
    async advance(ms) {
      const end = now + ms;
      while (await next(end));
      now = end;
      await settle();
    },
    async until(promise) {
      let open = true;
      const close = () => {
        open = false;
      };
      promise.then(close, close);
      await settle();
      while (open) {
        if (!(await next(Number.POSITIVE_INFINITY)) && open) throw new Error('no timer is left');
        await settle();
      }
      return promise;
    },
    step(ms) {
      shift += ms;
    },
  };
}
