import { vi } from 'vitest';

/** Advances vitest's fake timers until `promise` settles. */
export async function advanceUntil<T>(promise: Promise<T>, stepMs = 1000): Promise<T> {
  let open = true;
  const close = () => {
    open = false;
  };
  promise.then(close, close);
  while (open) await vi.advanceTimersByTimeAsync(stepMs);
  return promise;
}
