import { afterEach, beforeEach, vi } from 'vitest';

/** Uses vitest's fake timers in each test of the current file or `describe`. */
export function fakeTimers(now?: number): void {
  beforeEach(() => void vi.useFakeTimers(now === undefined ? {} : { now }));
  afterEach(() => void vi.useRealTimers());
}
