import { callerContext } from '../runtime/callbacks.js';
import type { Clock } from '../runtime/clock.js';
import { onAbort } from '../runtime/deadline.js';

export interface TurnOutcome<Ask, Grant> {
  readonly grants: ReadonlyMap<Ask, Grant>;
  /** Milliseconds until an ask that has no grant may have one. */
  readonly waitMsOf: (ask: Ask) => number;
  /** Milliseconds until the next turn of those that wait; 0 for at once, `Infinity` for when `serve` is called. */
  readonly restMs: number;
}

export interface LineOptions<Ask, Grant> {
  readonly clock: Clock;
  /** Whether a turn takes time: then calls of one moment share it. */
  readonly isShared: boolean;
  /** Takes a turn at the state, for the calls that wait, oldest first, and for those that do not. */
  readonly turn: (
    asks: Iterable<Ask>,
    tries: readonly Ask[],
  ) => TurnOutcome<Ask, Grant> | Promise<TurnOutcome<Ask, Grant>>;
  /** Takes a grant whose call has gone. */
  readonly giveBack: (grant: Grant) => void;
  /** The last call that waited has gone. */
  readonly left: () => void;
}

export interface LineCall {
  readonly signal?: AbortSignal | undefined;
  /** Called once, in the async context of the call, when it has to wait: `place` calls of this process are before it. */
  readonly onWait?: ((place: number) => void) | undefined;
}

interface Waiter<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * The calls of this process that wait for their turn at some state, first come, first served. One turn at a time carries all
 * that is known. An abort takes effect at once; what is granted to the call all the same is given back.
 */
export class Line<Ask, Grant> {
  readonly #options: LineOptions<Ask, Grant>;
  readonly #waiting = new Map<Ask, Waiter<Grant>>();
  readonly #trying = new Map<Ask, Waiter<Grant | number>>();
  /** Those that wait and do not know it yet: the last ones. */
  readonly #untold = new Map<Ask, (place: number) => void>();
  #isPlanned = false;
  #isTurning = false;
  #isDue = false;
  #stopRest: (() => void) | undefined;

  constructor(options: LineOptions<Ask, Grant>) {
    this.#options = options;
  }

  /** How many calls wait. */
  get size(): number {
    return this.#waiting.size;
  }

  wait(ask: Ask, { signal, onWait }: LineCall = {}): Promise<Grant> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const forget = onAbort(signal, () => {
        if (this.#take(ask, this.#waiting)) reject(signal?.reason);
        if (this.#waiting.size === 0) this.#options.left();
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
        this.#untold.set(ask, (place) => inContext(() => onWait(place)));
      }
      if (this.#waiting.size === 1) this.serveSoon();
      else if (!this.#isPlanned && !this.#isTurning) this.#tell();
    });
  }

  /** A grant that is free now, or the milliseconds until one may be. It overtakes nobody. */
  try(ask: Ask): Promise<Grant | number> {
    return new Promise((resolve, reject) => {
      this.#trying.set(ask, { resolve, reject });
      this.serveSoon();
    });
  }

  /** Takes a turn now, or when the one under way has ended. */
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
          (late) => this.#settle(tries, late),
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
      const waiter = this.#take(ask, this.#waiting) ?? this.#take(ask, this.#trying);
      if (waiter) waiter.resolve(grant);
      else this.#options.giveBack(grant);
    }
    for (const ask of tries) this.#take(ask, this.#trying)?.resolve(Math.max(1, waitMsOf(ask)));
    this.#tell();
    this.#isTurning = false;
    if (this.#isDue || this.#trying.size > 0 || (this.#waiting.size > 0 && restMs <= 0)) this.serve();
    else if (this.#waiting.size > 0 && restMs < Number.POSITIVE_INFINITY) {
      this.#stopRest = this.#options.clock.after(restMs, () => this.serve());
    }
  }

  #fail(error: unknown): void {
    for (const calls of [this.#waiting, this.#trying]) {
      for (const ask of [...calls.keys()]) this.#take(ask, calls)?.reject(error);
    }
    this.#isTurning = false;
  }

  #take<T>(ask: Ask, calls: Map<Ask, T>): T | undefined {
    const waiter = calls.get(ask);
    calls.delete(ask);
    this.#untold.delete(ask);
    if (this.#waiting.size > 0) return waiter;
    this.#stopRest?.();
    this.#stopRest = undefined;
    return waiter;
  }

  #tell(): void {
    let place = this.#waiting.size - this.#untold.size;
    const untold = [...this.#untold.values()];
    this.#untold.clear();
    for (const tell of untold) tell(place++);
  }
}
