/**
 * Leaves `inner`, and what it called, out of an error's stack. V8 keeps ten frames, and the line of the user's own program
 * should be among them.
 */
export function seenFromCallerOf<T>(error: T, inner: (...args: never[]) => unknown): T {
  if (error instanceof Error) Error.captureStackTrace?.(error, inner);
  return error;
}
