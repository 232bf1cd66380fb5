import { vi } from 'vitest';

const REAL = { setInterval, clearInterval };
const TICK_MS = 10;

/** Speeds up timers and `Date` by `factor`. Returns a function that restores them. */
export function startFastTime(factor: number): () => void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'] });
  const interval = REAL.setInterval(() => vi.advanceTimersByTime(TICK_MS * factor), TICK_MS);
  return () => {
    REAL.clearInterval(interval);
    vi.useRealTimers();
  };
}
