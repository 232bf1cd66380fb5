import { callerContext } from '../runtime/callbacks.js';
import type { Clock } from '../runtime/clock.js';
import { onAbort } from '../runtime/deadline.js';

export interface TurnOutcome<Ask, Grant> {
  readonly grants: ReadonlyMap<Ask, Grant>;
  /** Milliseconds until a call without a grant may get one. */
  readonly waitMsOf: (ask: Ask) => number;
  /** Milliseconds until the next turn for queued calls: 0 for immediately, `Infinity` for when `serve` is called. */
  readonly restMs: number;
}

export interface CallQueueOptions<Ask, Grant> {
  readonly clock: Clock;
  /** If true, the state is in a store, so calls made in the same tick share a turn. */
  readonly isShared: boolean;
  /** Takes a turn for the queued calls, oldest first, and for the calls that don't queue. */
  readonly turn: (
    asks: Iterable<Ask>,
    tries: readonly Ask[],
  ) => TurnOutcome<Ask, Grant> | Promise<TurnOutcome<Ask, Grant>>;
  /** Returns a grant whose call was aborted. */
  readonly onOrphanedGrant: (grant: Grant) => void;
  /** Called when an abort empties the queue. */
  readonly onEmpty: () => void;
}

export interface QueuedCall {
  readonly signal?: AbortSignal | undefined;
  /** Called once if the call must queue, in its async context, with the number of calls of this process ahead of it. */
  readonly onWait?: ((position: number) => void) | undefined;
}

interface Deferred<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * This process's queue for grants, first come, first served. One turn runs at a time, for all queued calls. An abort
 * rejects immediately, and a grant that arrives later is returned.
 */
export class CallQueue<Ask, Grant> {
  readonly #options: CallQueueOptions<Ask, Grant>;
  readonly #waiting = new Map<Ask, Deferred<Grant>>();
  readonly #trying = new Map<Ask, Deferred<Grant | number>>();
  /** The `onWait` callbacks not yet called, of the last calls in the queue. */
  readonly #unreported = new Map<Ask, (position: number) => void>();
  #isPlanned = false;
  #isTurning = false;
  #isDue = false;
  #stopRest: (() => void) | undefined;

  constructor(options: CallQueueOptions<Ask, Grant>) {
    this.#options = options;
  }

  get size(): number {
    return this.#waiting.size;
  }

  acquire(ask: Ask, { signal, onWait }: QueuedCall = {}): Promise<Grant> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const removeListener = onAbort(signal, () => {
        if (this.#remove(ask, this.#waiting)) reject(signal?.reason);
        if (this.#waiting.size === 0) this.#options.onEmpty();
      });
      const settled = <T>(settle: (value: T) => void) => {
        return (value: T) => {
          removeListener();
          settle(value);
        };
      };
      this.#waiting.set(ask, { resolve: settled(resolve), reject: settled(reject) });
      if (onWait) {
        const inContext = callerContext();
        this.#unreported.set(ask, (position) => inContext(() => onWait(position)));
      }
      if (this.#waiting.size === 1) this.serveSoon();
      else if (!this.#isPlanned && !this.#isTurning) this.#report();
    });
  }

  /**
   * Resolves with a grant if one is free, otherwise with the milliseconds until one may be. Never overtakes queued
   * calls.
   */
  tryAcquire(ask: Ask): Promise<Grant | number> {
    return new Promise((resolve, reject) => {
      this.#trying.set(ask, { resolve, reject });
      this.serveSoon();
    });
  }

  /** Takes a turn now, or after the current one. */
  serve(): void {
    this.#isDue = true;
    if (this.#isTurning) return;
    this.#stopRest?.();
    this.#stopRest = undefined;
    this.#isTurning = true;
    this.#isDue = false;
    const tries = [...this.#trying.keys()];
    try {
      const outcome = this.#options.turn(this.#waiting.keys(), tries);
      if (outcome instanceof Promise) {
        outcome.then(
          (later) => this.#settle(tries, later),
          (error) => this.#fail(error),
        );
      } else this.#settle(tries, outcome);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Takes a turn shared with the other calls of this tick. */
  serveSoon(): void {
    if (!this.#options.isShared) this.serve();
    if (!this.#options.isShared || this.#isPlanned) return;
    this.#isPlanned = true;
    Promise.resolve().then(() => {
      this.#isPlanned = false;
      this.serve();
    });
  }

  #settle(tries: readonly Ask[], { grants, waitMsOf, restMs }: TurnOutcome<Ask, Grant>): void {
    for (const [ask, grant] of grants) {
      const call = this.#remove(ask, this.#waiting) ?? this.#remove(ask, this.#trying);
      if (call) call.resolve(grant);
      else this.#options.onOrphanedGrant(grant);
    }
    for (const ask of tries) this.#remove(ask, this.#trying)?.resolve(Math.max(1, waitMsOf(ask)));
    this.#report();
    this.#isTurning = false;
    if (this.#isDue || this.#trying.size > 0 || (this.#waiting.size > 0 && restMs <= 0)) this.serve();
    else if (this.#waiting.size > 0 && restMs < Number.POSITIVE_INFINITY) {
      this.#stopRest = this.#options.clock.after(restMs, () => this.serve());
    }
  }

  #fail(error: unknown): void {
    for (const calls of [this.#waiting, this.#trying]) {
      for (const ask of [...calls.keys()]) this.#remove(ask, calls)?.reject(error);
    }
    this.#isTurning = false;
  }

  #remove<T>(ask: Ask, calls: Map<Ask, T>): T | undefined {
    const call = calls.get(ask);
    calls.delete(ask);
    this.#unreported.delete(ask);
    if (this.#waiting.size > 0) return call;
    this.#stopRest?.();
    this.#stopRest = undefined;
    return call;
  }

  #report(): void {
    let position = this.#waiting.size - this.#unreported.size;
    const unreported = [...this.#unreported.values()];
    this.#unreported.clear();
    for (const report of unreported) report(position++);
  }
}
