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
  /** Moves the wall clock forward or backward without affecting timers. */
  shiftWallClock(ms: number): void;
}

/** Lets all pending callbacks and promises run. */
export const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

export function virtualClock(startMs = Date.UTC(2026, 0, 1)): VirtualClock {
  const timers = new Heap<Timer>();
  let now = startMs;
  let offsetMs = 0;
  const fireNext = async (latest: number) => {
    await settle();
    const timer = timers.first;
    if (!timer || timer.rank > latest) return false;
    timers.remove(timer);
    now = timer.rank;
    timer.fire();
    return true;
  };
  return {
    now: () => now + offsetMs,
    elapsed: () => now,
    after(ms, fire) {
      const timer: Timer = { rank: now + Math.ceil(Math.max(0, ms)), index: -1, fire };
      timers.add(timer);
      return () => {
        if (timer.index >= 0) timers.remove(timer);
      };
    },
    get timers() {
      return timers.size;
    },
    async advance(ms) {
      const end = now + ms;
      while (await fireNext(end));
      now = end;
      await settle();
    },
    async until(promise) {
      let isPending = true;
      const close = () => {
        isPending = false;
      };
      promise.then(close, close);
      await settle();
      while (isPending) {
        if (!(await fireNext(Number.POSITIVE_INFINITY)) && isPending) throw new Error('no timer is left');
        await settle();
      }
      return promise;
    },
    shiftWallClock(ms) {
      offsetMs += ms;
    },
  };
}
