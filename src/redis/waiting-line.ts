import { onAbort } from '../abort.js';
import { callerContext } from '../callbacks.js';
import type { LaneWait, Release } from '../limits/rate-limiter.js';

/** A call that waits for its slot. */
export interface Waiter {
  readonly signal: AbortSignal | undefined;
  /** Told once that the call has to wait, in the async context of the call: a turn is taken in that of another. */
  readonly onWait: ((wait: LaneWait) => void) | undefined;
  readonly resolve: (release: Release | PromiseLike<Release>) => void;
  readonly reject: (reason: unknown) => void;
  /** Takes it out of the queue, and rejects it. */
  readonly leave: (reason: unknown) => void;
}

/** The calls of this process that wait on one lane, first come first served. An abort leaves at once. */
export class WaitingLine {
  readonly #queue = new Set<Waiter>();
  readonly #untold = new Set<Waiter>();
  readonly #left: () => void;

  /** `left` is told each time that a call gave up. */
  constructor(left: () => void) {
    this.#left = left;
  }

  get size(): number {
    return this.#queue.size;
  }

  join(signal: AbortSignal | undefined, onWait: Waiter['onWait']): Promise<Release> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    const inContext = onWait && callerContext();
    return new Promise((resolve, reject) => {
      let forget = () => {};
      const waiter: Waiter = {
        signal,
        onWait: inContext && ((wait) => inContext(() => onWait(wait))),
        resolve: (release) => {
          forget();
          resolve(release);
        },
        reject: (reason) => {
          forget();
          reject(reason);
        },
        leave: (reason) => {
          this.#queue.delete(waiter);
          this.#untold.delete(waiter);
          waiter.reject(reason);
          this.#left();
        },
      };
      this.#queue.add(waiter);
      this.#untold.add(waiter);
      forget = onAbort(signal, () => waiter.leave(signal?.reason));
    });
  }

  /** Takes the first out. */
  next(): Waiter | undefined {
    const [first] = this.#queue;
    if (first) {
      this.#queue.delete(first);
      this.#untold.delete(first);
    }
    return first;
  }

  /** Tells those who wait and were not told yet. A listener that throws rejects its own call. */
  tell(wait: LaneWait): void {
    const untold = [...this.#untold];
    this.#untold.clear();
    for (const { onWait, leave } of untold) {
      try {
        onWait?.(wait);
      } catch (error) {
        leave(error);
      }
    }
  }
}
