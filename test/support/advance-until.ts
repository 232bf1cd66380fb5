import { vi } from 'vitest';

/** Advances vitest's fake timers until `promise` settles. */
export async function advanceUntil<T>(promise: Promise<T>, stepMs = 1000): Promise<T> {
  let isPending = true;
  const settle = () => {
    isPending = false;
  };
  promise.then(settle, settle);
  while (isPending) await vi.advanceTimersByTimeAsync(stepMs);
  return promise;
}
