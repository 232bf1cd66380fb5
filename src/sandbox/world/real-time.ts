// Real time, for what cannot happen in the sandbox's own: receivers of webhooks, and the end of work that is under way.

// Both are looked up when the module loads, so that a test's fake timers do not hold them.
const immediate: typeof setImmediate | undefined = globalThis.setImmediate;
const monotonic = globalThis.performance?.now.bind(globalThis.performance) ?? Date.now;

/** Longest delay that a timer of a runtime holds. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Real milliseconds since 1970. */
export function realNow(): number {
  return Date.now();
}

/** Real milliseconds for differences only: they never run backwards. */
export function elapsed(): number {
  return monotonic();
}

/** A signal that aborts after `ms` real milliseconds. */
export function deadline(ms: number): AbortSignal {
  return AbortSignal.timeout(ms);
}

/** How a timer is set. */
export interface TimerOptions {
  /** Whether it keeps the process alive. */
  readonly holdsProcess: boolean;
}

/** Runs `fire` after `ms` real milliseconds, or at the runtime's longest delay. Gives the function that cancels it. */
export function afterReal(ms: number, fire: () => void, { holdsProcess }: TimerOptions): () => void {
  const timer = setTimeout(fire, Math.min(Math.max(0, Math.ceil(ms)), LONGEST_TIMER_MS));
  if (!holdsProcess && typeof timer === 'object') timer.unref?.();
  return () => clearTimeout(timer);
}

/** Resolves in a later turn of the event loop, when all that is due now has run. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (immediate !== undefined) return void immediate(resolve);
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}
