import { vi } from 'vitest';

const REAL = { setInterval, clearInterval };
const TICK_MS = 10;

/** Makes timers and `Date` run this many times as fast as real time. Returns a function that restores them. */
export function startFastTime(factor: number): () => void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'] });
  const ticking = REAL.setInterval(() => vi.advanceTimersByTime(TICK_MS * factor), TICK_MS);
  return () => {
    REAL.clearInterval(ticking);
    vi.useRealTimers();
  };
}
