// How the functions that a caller hands over are called: in the caller's own async context, and never to the harm of others.

import { builtIn } from './platform.js';
import { withoutQueries } from './scrub.js';

/** Runs a function in the async context in which {@link callerContext} was called. */
export type RunInContext = <T>(run: () => T) => T;

/**
 * Captures the caller's async context (AsyncLocalStorage), so that a callback which is called later still sees the
 * caller's request, tenant or trace. Where the runtime has no async context, functions simply run.
 */
export function callerContext(): RunInContext {
  const hooks = builtIn<{ readonly AsyncLocalStorage: { snapshot(): RunInContext } }>('async_hooks');
  return hooks ? hooks.AsyncLocalStorage.snapshot() : (run) => run();
}

/**
 * Calls something of the caller's that only observes: whatever it throws, or rejects with later, changes nothing. It goes
 * to `failed`, in words.
 */
export function callObserver(act: () => unknown, failed: (reason: string) => void = () => {}): void {
  const report = (error: unknown) => failed(reasonOf(error));
  try {
    const outcome = act();
    if (isThenable(outcome)) outcome.then(undefined, report);
  } catch (error) {
    report(error);
  }
}

/** What was thrown, in words. Anything can be thrown, also what has no text form. */
export function reasonOf(thrown: unknown): string {
  try {
    return withoutQueries(thrown instanceof Error ? thrown.message || thrown.name : String(thrown));
  } catch {
    return 'something without a text form';
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
