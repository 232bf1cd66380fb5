import { AbortFan } from '../limits/abort-fan.js';
import { Fifo } from '../limits/fifo.js';
import type { LaneWait } from '../limits/rate-limiter.js';

/** Lets a slot go. */
export type Release = () => void;

/** A call that waits for its slot. */
export interface Waiter {
  readonly signal: AbortSignal | undefined;
  /** Told once that the call has to wait. */
  readonly onWait: ((wait: LaneWait) => void) | undefined;
  readonly resolve: (release: Release | PromiseLike<Release>) => void;
  readonly reject: (reason: unknown) => void;
  /** Takes it out of the line, and rejects it. */
  readonly leave: (reason: unknown) => void;
}

/** The calls of this process that wait on one lane, first come first served; an abort leaves it at once. */
export class WaitingLine {
  readonly #line = new Fifo<Waiter>();
  readonly #untold = new Set<Waiter>();
  readonly #aborts = new AbortFan();
  readonly #left: () => void;

  /** `left` is told each time that a call gave up. */
  constructor(left: () => void) {
    this.#left = left;
  }

  get size(): number {
    return this.#line.size;
  }

  join(signal: AbortSignal | undefined, onWait: Waiter['onWait']): Promise<Release> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        signal,
        onWait,
        resolve: (release) => {
          forget();
          resolve(release);
        },
        reject: (reason) => {
          forget();
          reject(reason);
        },
        leave: (reason) => {
          this.#line.remove(link);
          this.#untold.delete(waiter);
          waiter.reject(reason);
          this.#left();
        },
      };
      const link = this.#line.push(waiter);
      this.#untold.add(waiter);
      const forget = this.#aborts.on(signal, () => waiter.leave(signal?.reason));
    });
  }

  /** Takes the first out. */
  next(): Waiter | undefined {
    const waiter = this.#line.shift();
    if (waiter) this.#untold.delete(waiter);
    return waiter;
  }

  /** Tells those who wait and were not told yet; a listener that throws is the caller's own affair and rejects its call. */
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
