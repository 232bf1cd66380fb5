import { onAbort } from './abort.js';
import type { Clock } from './clock.js';

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
