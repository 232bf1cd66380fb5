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
}

/** The calls of this process that wait on one lane, first come first served; an abort leaves it at once. */
export class WaitingLine {
  readonly #line = new Fifo<Waiter>();
  readonly #untold = new Set<Waiter>();
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
          signal?.removeEventListener('abort', leave);
          resolve(release);
        },
        reject: (reason) => {
          signal?.removeEventListener('abort', leave);
          reject(reason);
        },
      };
      const link = this.#line.push(waiter);
      this.#untold.add(waiter);
      const leave = () => {
        this.#line.remove(link);
        this.#untold.delete(waiter);
        waiter.reject(signal?.reason);
        this.#left();
      };
      signal?.addEventListener('abort', leave, { once: true });
    });
  }

  /** Takes the first out. */
  next(): Waiter | undefined {
    const waiter = this.#line.shift();
    if (waiter) this.#untold.delete(waiter);
    return waiter;
  }

  /** Tells those who wait and were not told yet. */
  tell(wait: LaneWait): void {
    const untold = [...this.#untold];
    this.#untold.clear();
    for (const { onWait } of untold) onWait?.(wait);
  }
}
