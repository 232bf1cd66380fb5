import type { Arrival } from '../rules/lane.js';
import { callerContext } from '../runtime/callbacks.js';
import { onAbort } from '../runtime/deadline.js';
import type { LaneWait, Release } from './rate-limiter.js';

/** A call that waits for its slot. */
export interface QueuedCall {
  /** When the call came. */
  readonly atMs: number;
  readonly signal: AbortSignal | undefined;
  /** Called once when the call has to wait, in the async context of the call: another call may take the turn. */
  readonly onWait: ((wait: LaneWait) => void) | undefined;
  /** Writes a warning to the logger of the call's client. */
  readonly warn: ((message: string) => void) | undefined;
  readonly resolve: (release: Release | PromiseLike<Release>) => void;
  readonly reject: (reason: unknown) => void;
}

/** A call that joins. */
export type Joining = Pick<QueuedCall, 'signal' | 'onWait' | 'warn'>;

/** The calls of this process that wait on one lane, first come first served. An abort takes effect at once. */
export class WaitingLine {
  /** The calls in their order. */
  readonly calls: ReadonlySet<QueuedCall>;
  readonly #queue = new Set<QueuedCall>();
  readonly #untold = new Set<QueuedCall>();
  /** How many calls came in each moment. */
  readonly #moments = new Map<number, number>();
  readonly #left: () => void;
  readonly #moment: () => number;

  /** `left` is called each time that a call gave up. `moment` tells when a call comes. */
  constructor(left: () => void, moment: () => number = () => 0) {
    this.calls = this.#queue;
    this.#left = left;
    this.#moment = moment;
  }

  /** The calls by the moment in which they came, earliest first. */
  get arrivals(): Arrival[] {
    return [...this.#moments].map(([atMs, calls]) => ({ atMs, calls }));
  }

  join({ signal, onWait, warn }: Joining): Promise<Release> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    const inContext = onWait && callerContext();
    return new Promise((resolve, reject) => {
      let forget = () => {};
      const waiter: QueuedCall = {
        atMs: this.#moment(),
        signal,
        warn,
        onWait: inContext && ((wait) => inContext(() => onWait(wait))),
        resolve(release) {
          forget();
          resolve(release);
        },
        reject(reason) {
          forget();
          reject(reason);
        },
      };
      this.#queue.add(waiter);
      this.#moments.set(waiter.atMs, (this.#moments.get(waiter.atMs) ?? 0) + 1);
      if (onWait) this.#untold.add(waiter);
      forget = onAbort(signal, () => this.#leave(waiter, signal?.reason));
    });
  }

  /** Takes the first out. */
  next(): QueuedCall | undefined {
    const [first] = this.#queue;
    if (first) this.#remove(first);
    return first;
  }

  /**
   * Tells those that wait and were not told yet; `waitMs` gives the time of a place. A listener that throws rejects its
   * own call.
   */
  tell(wait: Pick<LaneWait, 'lane' | 'reason'>, at: (place: number) => Pick<LaneWait, 'waitMs' | 'queued'>): void {
    if (this.#untold.size === 0) return;
    const untold = [...this.#untold];
    this.#untold.clear();
    let place = this.#queue.size - untold.length;
    for (const waiter of untold) {
      try {
        waiter.onWait?.({ ...wait, ...at(place++) });
      } catch (error) {
        this.#leave(waiter, error);
      }
    }
  }

  #leave(waiter: QueuedCall, reason: unknown): void {
    if (!this.#remove(waiter)) return;
    waiter.reject(reason);
    this.#left();
  }

  #remove(waiter: QueuedCall): boolean {
    if (!this.#queue.delete(waiter)) return false;
    this.#untold.delete(waiter);
    const left = (this.#moments.get(waiter.atMs) ?? 1) - 1;
    if (left > 0) this.#moments.set(waiter.atMs, left);
    else this.#moments.delete(waiter.atMs);
    return true;
  }
}
