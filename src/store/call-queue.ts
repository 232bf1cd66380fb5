import { callerContext } from '../runtime/callbacks.js';
import type { Clock } from '../runtime/clock.js';
import { onAbort } from '../runtime/deadline.js';

export interface TurnOutcome<Ask, Grant> {
  readonly grants: ReadonlyMap<Ask, Grant>;
  /** Milliseconds until an ask without a grant may have one. */
  readonly waitMsOf: (ask: Ask) => number;
  /** Milliseconds until the next turn of the calls that wait; 0 for now, `Infinity` for when `serve` is called. */
  readonly restMs: number;
}

export interface CallQueueOptions<Ask, Grant> {
  readonly clock: Clock;
  /** If true, a turn takes time, so calls of one moment share it. */
  readonly isShared: boolean;
  /** Takes a turn at the state: for the calls that wait, oldest first, and for those that do not queue. */
  readonly turn: (
    asks: Iterable<Ask>,
    tries: readonly Ask[],
  ) => TurnOutcome<Ask, Grant> | Promise<TurnOutcome<Ask, Grant>>;
  /** Returns a grant whose call was aborted. */
  readonly onOrphanedGrant: (grant: Grant) => void;
  /** Called when the last call that waited was aborted. */
  readonly onEmpty: () => void;
}

export interface QueuedCall {
  readonly signal?: AbortSignal | undefined;
  /** Called once if the call has to queue, in its async context, with the number of calls of this process ahead of it. */
  readonly onWait?: ((position: number) => void) | undefined;
}

interface Deferred<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * The calls of this process that wait for a grant, first come, first served. One turn runs at a time and carries all of them.
 * An abort rejects at once; a grant that arrives later is returned.
 */
export class CallQueue<Ask, Grant> {
  readonly #options: CallQueueOptions<Ask, Grant>;
  readonly #waiting = new Map<Ask, Deferred<Grant>>();
  readonly #trying = new Map<Ask, Deferred<Grant | number>>();
  /** The `onWait` of the last calls in the queue, which were not called yet. */
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
      const forget = onAbort(signal, () => {
        if (this.#remove(ask, this.#waiting)) reject(signal?.reason);
        if (this.#waiting.size === 0) this.#options.onEmpty();
      });
      const settled = <T>(settle: (value: T) => void) => {
        return (value: T) => {
          forget();
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

  /** A grant that is free now, or the milliseconds until one may be. It overtakes nobody. */
  tryAcquire(ask: Ask): Promise<Grant | number> {
    return new Promise((resolve, reject) => {
      this.#trying.set(ask, { resolve, reject });
      this.serveSoon();
    });
  }

  /** Takes a turn now, or after the turn that is running. */
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

  /** Takes a turn together with the other calls of this moment. */
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
