import type { Clock } from './clock.js';

/** Who is to be called when a signal aborts. */
interface Listeners {
  readonly fires: Set<() => void>;
  readonly listener: () => void;
}

/**
 * One listener stands on each signal, for all who wait for its abort. Thousands of calls under one signal are ordinary
 * here, and a runtime takes each listener of its own out by a search through all of them.
 */
const LISTENERS = new WeakMap<AbortSignal, Listeners>();

/** Calls `fire` once when `signal` aborts, at once if it has. Gives the function that calls it off. */
export function onAbort(signal: AbortSignal | undefined, fire: () => void): () => void {
  if (signal === undefined) return () => {};
  if (signal.aborted) {
    fire();
    return () => {};
  }
  const known = LISTENERS.get(signal) ?? listenTo(signal);
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

function listenTo(signal: AbortSignal): Listeners {
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

/** What a deadline is made with. */
export interface DeadlineOptions {
  readonly clock: Clock;
  /** Milliseconds from now; `Infinity` for no limit. */
  readonly ms: number;
  readonly signal: AbortSignal | undefined;
  /** Makes the error with which the time ends; `ms` is how long it was when it was last started. */
  readonly late: (ms: number) => Error;
}

/**
 * A time limit joined with the caller's abort: whichever comes first ends the work. It costs one timer and one listener,
 * however many things are raced against it.
 */
export class Deadline {
  readonly #options: DeadlineOptions;
  /** Of whatever is raced now. */
  readonly #rejections = new Set<(reason: unknown) => void>();
  #forgetAbort: (() => void) | undefined;
  #stopTimer: (() => void) | undefined;
  #ended: { readonly reason: unknown } | undefined;
  /** Made when it is asked for: thousands of waits sleep without one. */
  #controller: AbortController | undefined;

  constructor(options: DeadlineOptions) {
    this.#options = options;
    const { ms, signal } = options;
    this.restart(ms);
    if (signal) this.#forgetAbort = onAbort(signal, () => this.#fail(signal.reason));
  }

  /** Aborted when the time is over, with the error of that, or by the caller, with the caller's reason. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#ended) this.#controller.abort(this.#ended.reason);
    }
    return this.#controller.signal;
  }

  /**
   * The outcome of `work`, or at once the reason of the end, even when the work never ends. A value that comes after the
   * end goes to `drop`.
   */
  race<T>(work: PromiseLike<T>, drop?: (late: T) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#ended) reject(this.#ended.reason);
      this.#rejections.add(reject);
      work.then(
        (value) => {
          this.#rejections.delete(reject);
          if (this.#ended) drop?.(value);
          resolve(value);
        },
        (error) => {
          this.#rejections.delete(reject);
          reject(error);
        },
      );
    });
  }

  /** Starts the time again, with `ms` from now. */
  restart(ms: number): void {
    if (this.#stopTimer) this.pause();
    const { clock, late } = this.#options;
    if (this.#ended || ms === Number.POSITIVE_INFINITY) return;
    this.#stopTimer = clock.after(ms, () => this.#fail(late(ms)));
  }

  /** Stops the time and still listens to the caller's signal. */
  pause(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
  }

  /** Takes timer and listener away. Call it when the work is done. */
  end(): void {
    this.pause();
    this.#forgetAbort?.();
  }

  #fail(reason: unknown): void {
    if (this.#ended) return;
    this.#ended = { reason };
    this.pause();
    for (const reject of this.#rejections) reject(reason);
    this.#controller?.abort(reason);
  }
}
