import type { Clock } from './clock.js';

/** Who is to be called when a signal aborts. */
interface Listeners {
  readonly fires: Set<() => void>;
  readonly listener: () => void;
}

/**
 * Each signal has one listener, whoever waits for its abort. Thousands of calls under one signal are ordinary here, and a
 * runtime removes a listener by a search through all of them.
 */
const LISTENERS = new WeakMap<AbortSignal, Listeners>();

/** Calls `fire` once when `signal` aborts, at once if it has. Gives the function that calls it off. */
export function onAbort(signal: AbortSignal | undefined, fire: () => void): () => void {
  if (signal === undefined) return () => {};
  if (signal.aborted) {
    fire();
    return () => {};
  }
  const known = LISTENERS.get(signal) ?? startListening(signal);
  // A function of its own, so that the same `fire` may be given twice.
  const entry = () => fire();
  known.fires.add(entry);
  return () => {
    known.fires.delete(entry);
    if (known.fires.size > 0 || LISTENERS.get(signal) !== known) return;
    LISTENERS.delete(signal);
    signal.removeEventListener('abort', known.listener);
  };
}

function startListening(signal: AbortSignal): Listeners {
  const fires = new Set<() => void>();
  const listener = () => {
    LISTENERS.delete(signal);
    for (const fire of [...fires]) fire();
  };
  const made = { fires, listener };
  LISTENERS.set(signal, made);
  signal.addEventListener('abort', listener, { once: true });
  return made;
}

/**
 * The outcome of `work`, or at once the abort's own reason, even when the work never ends. A value that comes after the
 * abort goes to `drop`.
 */
export function abortable<T>(
  work: PromiseLike<T>,
  signal: AbortSignal | undefined,
  drop?: (late: T) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const forget = onAbort(signal, () => reject(signal?.reason));
    work.then(
      (value) => {
        forget();
        if (signal?.aborted) drop?.(value);
        resolve(value);
      },
      (error) => {
        forget();
        reject(error);
      },
    );
  });
}

/** Resolves after `ms` milliseconds. An abort rejects at once with the signal's own reason, and takes the timer away. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const cancel = clock.after(ms, () => {
      forget();
      resolve();
    });
    const forget = onAbort(signal, () => {
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
  /** Makes the error with which the time ends; `ms` is how long it was when it was last started. */
  readonly late: (ms: number) => Error;
}

/** A time limit joined with the caller's abort: whichever comes first ends the work. */
export interface Deadline {
  /** Aborted when the time is over, with the error of that, or by the caller, with the caller's reason. */
  readonly signal: AbortSignal;
  /**
   * The outcome of `work`, or at once the reason of the end, even when the work never ends. A value that comes after the
   * end goes to `drop`.
   */
  race<T>(work: PromiseLike<T>, drop?: (late: T) => void): Promise<T>;
  /** Starts the time again, with `ms` from now. */
  restart(ms: number): void;
  /** Stops the time and still listens to the caller's signal. */
  pause(): void;
  /** Takes timer and listener away. Call it when the work is done. */
  end(): void;
}

/** Starts a deadline. It costs one timer and one listener, however many things are raced against it. */
export function startDeadline({ clock, ms, signal: caller, late }: DeadlineOptions): Deadline {
  const controller = new AbortController();
  const { signal } = controller;
  /** Of whatever is raced now. */
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
  const forgetAbort = caller && onAbort(caller, () => fail(caller.reason));
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
      forgetAbort?.();
    },
  };
}
