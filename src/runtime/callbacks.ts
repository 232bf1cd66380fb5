// Runs callbacks in the caller's async context, and isolates their errors.

import { builtIn } from './platform.js';
import { withoutQueries } from './scrub.js';

/** Runs a function in the async context in which {@link callerContext} was called. */
export type RunInContext = <T>(run: () => T) => T;

/**
 * Captures the caller's async context (AsyncLocalStorage), so that a later callback runs with the caller's request,
 * tenant, or trace. If the runtime has no AsyncLocalStorage, callbacks run without a context.
 */
export function callerContext(): RunInContext {
  const hooks = builtIn<{ readonly AsyncLocalStorage: { snapshot(): RunInContext } }>('async_hooks');
  return hooks ? hooks.AsyncLocalStorage.snapshot() : (run) => run();
}

/** Calls an observer, such as a hook. If it throws or rejects, passes the error's message to `onFailure`. */
export function callObserver(act: () => unknown, onFailure: (reason: string) => void = () => {}): void {
  const report = (error: unknown) => onFailure(reasonOf(error));
  try {
    const outcome = act();
    if (isThenable(outcome)) outcome.then(undefined, report);
  } catch (error) {
    report(error);
  }
}

/** Returns the message of any thrown value, without the queries of URLs. */
export function reasonOf(thrown: unknown): string {
  try {
    return withoutQueries(thrown instanceof Error ? thrown.message || thrown.name : String(thrown));
  } catch {
    return 'an unprintable value';
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
