import type { Clock } from './clock.js';

/** A signal's callbacks. */
interface Listeners {
  readonly callbacks: Set<() => void>;
  readonly listener: () => void;
}

/**
 * The callbacks by signal. Each signal has a single listener, because thousands of calls can share a signal, and removing
 * one of many listeners is slow.
 */
const LISTENERS = new WeakMap<AbortSignal, Listeners>();

/** Calls `fire` once when `signal` aborts, immediately if it already has. Returns a function that cancels it. */
export function onAbort(signal: AbortSignal | undefined, fire: () => void): () => void {
  if (signal === undefined) return () => {};
  if (signal.aborted) {
    fire();
    return () => {};
  }
  const listeners = LISTENERS.get(signal) ?? startListening(signal);
  const { callbacks, listener } = listeners;
  // Wrap the function, so that the same `fire` can be passed twice.
  const callback = () => fire();
  callbacks.add(callback);
  return () => {
    callbacks.delete(callback);
    if (callbacks.size > 0 || LISTENERS.get(signal) !== listeners) return;
    LISTENERS.delete(signal);
    signal.removeEventListener('abort', listener);
  };
}

function startListening(signal: AbortSignal): Listeners {
  const callbacks = new Set<() => void>();
  const listener = () => {
    LISTENERS.delete(signal);
    for (const fire of [...callbacks]) fire();
  };
  const listeners = { callbacks, listener };
  LISTENERS.set(signal, listeners);
  signal.addEventListener('abort', listener, { once: true });
  return listeners;
}

/**
 * Settles like `work`, or rejects immediately with the abort's reason, even if the work never ends. `drop` receives a
 * value that arrives after the abort.
 */
export function abortable<T>(
  work: PromiseLike<T>,
  signal: AbortSignal | undefined,
  drop?: (late: T) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const removeListener = onAbort(signal, () => reject(signal?.reason));
    work.then(
      (value) => {
        removeListener();
        if (signal?.aborted) drop?.(value);
        resolve(value);
      },
      (error) => {
        removeListener();
        reject(error);
      },
    );
  });
}

/** Resolves when `work` settles, or immediately on an abort. The work continues. */
export function settledOrAborted(work: PromiseLike<unknown>, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const removeListener = onAbort(signal, resolve);
    const onSettled = () => {
      removeListener();
      resolve();
    };
    work.then(onSettled, onSettled);
  });
}

/** Resolves after `ms` milliseconds. An abort rejects immediately with the signal's reason and cancels the timer. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const cancel = clock.after(ms, () => {
      removeListener();
      resolve();
    });
    const removeListener = onAbort(signal, () => {
      cancel();
      reject(signal?.reason);
    });
  });
}

export interface DeadlineOptions {
  readonly clock: Clock;
  /** Milliseconds from now; `Infinity` for no limit. */
  readonly ms: number;
  readonly signal: AbortSignal | undefined;
  /** Creates the error of an expired deadline. `ms` is the duration of its last start. */
  readonly late: (ms: number) => Error;
}

/** A deadline combined with the caller's signal. Whichever comes first ends the work. */
export interface Deadline {
  /** Aborts with the timeout's error or with the caller's reason. */
  readonly signal: AbortSignal;
  /**
   * Settles like `work`, or rejects immediately when the deadline ends, even if the work never does. `drop` receives a
   * value that arrives later.
   */
  race<T>(work: PromiseLike<T>, drop?: (late: T) => void): Promise<T>;
  /** Restarts the deadline at `ms` from now. */
  restart(ms: number): void;
  /** Stops the timer but still follows the caller's signal. */
  pause(): void;
  /** Removes the timer and the listener. Call it when the work is done. */
  end(): void;
}

/** Starts a deadline, with one timer and one listener for any number of races. */
export function startDeadline({ clock, ms, signal: callerSignal, late }: DeadlineOptions): Deadline {
  const controller = new AbortController();
  const { signal } = controller;
  /** Rejections of the current races. */
  const rejections = new Set<(reason: unknown) => void>();
  let stopTimer: (() => void) | undefined;
  const fail = (reason: unknown) => {
    if (signal.aborted) return;
    stopTimer?.();
    for (const reject of rejections) reject(reason);
    controller.abort(reason);
  };
  const restart = (leftMs: number) => {
    stopTimer?.();
    const isLimited = !signal.aborted && leftMs < Number.POSITIVE_INFINITY;
    stopTimer = isLimited ? clock.after(leftMs, () => fail(late(leftMs))) : undefined;
  };
  restart(ms);
  const removeListener = callerSignal && onAbort(callerSignal, () => fail(callerSignal.reason));
  return {
    signal,
    restart,
    race: (work, drop) =>
      new Promise((resolve, reject) => {
        if (signal.aborted) reject(signal.reason);
        rejections.add(reject);
        work.then(
          (value) => {
            rejections.delete(reject);
            if (signal.aborted) drop?.(value);
            resolve(value);
          },
          (error) => {
            rejections.delete(reject);
            reject(error);
          },
        );
      }),
    pause() {
      stopTimer?.();
      stopTimer = undefined;
    },
    end() {
      stopTimer?.();
      stopTimer = undefined;
      removeListener?.();
    },
  };
}
