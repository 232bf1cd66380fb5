import { GenError } from './gen-error.js';

/**
 * Begins the stack of an error of this package at the caller of `inner`. V8 keeps ten frames, and the line of the user's own
 * program should be the first of them. Called in an async function after an `await`, it follows the `await`s of the callers.
 * Where V8 finds no caller, because nobody awaits the promise itself, the stack stays as it is.
 */
export function seenFromCallerOf<T>(error: T, inner: (...args: never[]) => unknown): T {
  return seenFrom(error, callSite(inner));
}

/** Awaits `work`, and lets the stack of its error begin at the line that awaits this promise. */
export async function atCaller<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw seenFromCallerOf(error, atCaller);
  }
}

/** Where a call was made. */
export interface CallSite {
  readonly stack?: string;
}

/** Notes the caller of `inner`, also for a promise that V8 does not follow: one that others have asked for its outcome. */
export function callSite(inner: (...args: never[]) => unknown): CallSite {
  const site: CallSite = {};
  Error.captureStackTrace?.(site, inner);
  return site;
}

/** Lets the stack of an error of this package begin where the call was made. */
export function seenFrom<T>(error: T, { stack }: CallSite): T {
  if (GenError.isInstance(error)) {
    const frames = stack?.slice(stack.indexOf('\n')) ?? '';
    if (/\n {4}at /.test(frames)) error.stack = `${error.name}: ${error.message}${frames}`;
  }
  return error;
}
