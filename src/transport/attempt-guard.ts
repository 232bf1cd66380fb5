import type { Clock } from '../clock.js';

/** One attempt's deadline joined with the caller's abort. */
export interface AttemptGuard {
  /** For fetch: aborted by the deadline, the caller or a failure. */
  readonly signal: AbortSignal;
  /**
   * The work's outcome, or at once the reason of the deadline or abort, even when the work never ends. `drop` gets what
   * comes after all, to be thrown away; `asFailure` makes the work's own failure another error.
   */
  race<T>(work: Promise<T>, drop?: (late: T) => void, asFailure?: (error: unknown) => unknown): Promise<T>;
  /** Starts the deadline again, with `ms` from now. */
  extend(ms: number): void;
  /** Stops the deadline and keeps the abort. */
  suspend(): void;
  /** Takes timer and listener away. */
  end(): void;
}

/** What a guard needs to know. */
export interface GuardOptions {
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
  /** What the attempt fails with when its deadline passes. */
  readonly late: () => Error;
}

/** Starts the deadline and listens to the caller's signal, with one timer and one listener for the whole attempt. */
export function createAttemptGuard({ clock, signal, timeoutMs, late }: GuardOptions): AttemptGuard {
  const controller = new AbortController();
  const own = controller.signal;
  let reject: ((reason: unknown) => void) | undefined;
  let cancelTimer: (() => void) | undefined;

  const fail = (reason: unknown) => {
    if (own.aborted) return;
    end();
    reject?.(reason);
    controller.abort(reason);
  };
  const abort = () => fail(signal?.reason);
  const suspend = () => {
    cancelTimer?.();
    cancelTimer = undefined;
  };
  const end = () => {
    suspend();
    signal?.removeEventListener('abort', abort);
  };
  const extend = (ms: number) => {
    suspend();
    if (!own.aborted && ms !== Number.POSITIVE_INFINITY) cancelTimer = clock.after(ms, () => fail(late()));
  };

  signal?.addEventListener('abort', abort, { once: true });
  extend(timeoutMs);
  if (signal?.aborted) abort();
  return {
    signal: own,
    extend,
    suspend,
    end,
    race: (work, drop, asFailure) =>
      new Promise((resolve, refuse) => {
        if (own.aborted) refuse(own.reason);
        reject = refuse;
        work.then(
          (value) => (own.aborted ? drop?.(value) : resolve(value)),
          asFailure ? (error) => refuse(asFailure(error)) : refuse,
        );
      }),
  };
}
