import type { Clock } from '../../src/runtime/clock.js';
import { Heap, type Ranked } from './heap.js';

interface Timer extends Ranked {
  readonly fire: () => void;
}

/** A stopped clock that jumps from timer to timer when it runs. */
export interface VirtualClock extends Clock {
  /** Timers that are set. */
  readonly timers: number;
  /** Runs all that is due up to `ms` from now, and leaves the clock there. */
  advance(ms: number): Promise<void>;
  /** Runs until `promise` settles. Throws if nothing is left that could settle it. */
  until<T>(promise: Promise<T>): Promise<T>;
  /** Steps the wall clock without any timer noticing, as an operator or a time server does. */
  step(ms: number): void;
}

/** Lets everything run that is ready to run. */
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
        if (!(await next(Number.POSITIVE_INFINITY)) && open) throw new Error('nothing is left that could happen');
        await settle();
      }
      return promise;
    },
    step(ms) {
      shift += ms;
    },
  };
}
