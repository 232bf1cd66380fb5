import { callerContext } from '../runtime/callbacks.js';
import type { Clock } from '../runtime/clock.js';
import { onAbort } from '../runtime/deadline.js';

export interface TurnOutcome<Request, Grant> {
  readonly grants: ReadonlyMap<Request, Grant>;
  /** Milliseconds until a call without a grant may get one. */
  readonly waitMsOf: (request: Request) => number;
  /** Milliseconds until the next turn for queued calls. 0: immediately. `Infinity`: when `serve` is called. */
  readonly nextTurnMs: number;
}

export interface CallQueueOptions<Request, Grant> {
  readonly clock: Clock;
  /** If true, the state is in a store, so calls made in the same tick share a turn. */
  readonly isShared: boolean;
  /** Takes a turn for the queued calls, oldest first, and for the calls that don't queue. */
  readonly turn: (
    queued: Iterable<Request>,
    immediate: readonly Request[],
  ) => TurnOutcome<Request, Grant> | Promise<TurnOutcome<Request, Grant>>;
  /** Called with a grant whose call was aborted. */
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
 * rejects immediately, and a grant that arrives later is passed to `onOrphanedGrant`.
 */
export class CallQueue<Request, Grant> {
  readonly #options: CallQueueOptions<Request, Grant>;
  readonly #waiting = new Map<Request, Deferred<Grant>>();
  readonly #immediate = new Map<Request, Deferred<Grant | number>>();
  /** Pending `onWait` callbacks. They belong to the last calls in the queue. */
  readonly #unreported = new Map<Request, (position: number) => void>();
  #isPlanned = false;
  #isTurning = false;
  #isDue = false;
  #stopTimer: (() => void) | undefined;

  constructor(options: CallQueueOptions<Request, Grant>) {
    this.#options = options;
  }

  get size(): number {
    return this.#waiting.size;
  }

  acquire(request: Request, { signal, onWait }: QueuedCall = {}): Promise<Grant> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const removeListener = onAbort(signal, () => {
        if (this.#remove(request, this.#waiting)) reject(signal?.reason);
        if (this.#waiting.size === 0) this.#options.onEmpty();
      });
      const withCleanup = <T>(settle: (value: T) => void) => {
        return (value: T) => {
          removeListener();
          settle(value);
        };
      };
      this.#waiting.set(request, { resolve: withCleanup(resolve), reject: withCleanup(reject) });
      if (onWait) {
        const inContext = callerContext();
        this.#unreported.set(request, (position) => inContext(() => onWait(position)));
      }
      if (this.#waiting.size === 1) this.planTurn();
      else if (!this.#isPlanned && !this.#isTurning) this.#report();
    });
  }

  /**
   * Resolves with a grant if one is free, otherwise with the milliseconds until one may be. Never overtakes queued
   * calls.
   */
  tryAcquire(request: Request): Promise<Grant | number> {
    return new Promise((resolve, reject) => {
      this.#immediate.set(request, { resolve, reject });
      this.planTurn();
    });
  }

  /** Takes a turn now, or after the current one. */
  serve(): void {
    this.#isDue = true;
    if (this.#isTurning) return;
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    this.#isTurning = true;
    this.#isDue = false;
    const immediate = [...this.#immediate.keys()];
    try {
      const outcome = this.#options.turn(this.#waiting.keys(), immediate);
      if (outcome instanceof Promise) {
        outcome.then(
          (asyncOutcome) => this.#settle(immediate, asyncOutcome),
          (error) => this.#fail(error),
        );
      } else this.#settle(immediate, outcome);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Takes a turn, which all calls of this tick share if the state is in a store. */
  planTurn(): void {
    if (!this.#options.isShared) this.serve();
    if (!this.#options.isShared || this.#isPlanned) return;
    this.#isPlanned = true;
    Promise.resolve().then(() => {
      this.#isPlanned = false;
      this.serve();
    });
  }

  #settle(immediate: readonly Request[], { grants, waitMsOf, nextTurnMs }: TurnOutcome<Request, Grant>): void {
    for (const [request, grant] of grants) {
      const call = this.#remove(request, this.#waiting) ?? this.#remove(request, this.#immediate);
      if (call) call.resolve(grant);
      else this.#options.onOrphanedGrant(grant);
    }
    for (const request of immediate) this.#remove(request, this.#immediate)?.resolve(Math.max(1, waitMsOf(request)));
    this.#report();
    this.#isTurning = false;
    if (this.#isDue || this.#immediate.size > 0 || (this.#waiting.size > 0 && nextTurnMs <= 0)) this.serve();
    else if (this.#waiting.size > 0 && nextTurnMs < Number.POSITIVE_INFINITY) {
      this.#stopTimer = this.#options.clock.after(nextTurnMs, () => this.serve());
    }
  }

  #fail(error: unknown): void {
    for (const calls of [this.#waiting, this.#immediate]) {
      for (const request of [...calls.keys()]) this.#remove(request, calls)?.reject(error);
    }
    this.#isTurning = false;
  }

  #remove<T>(request: Request, calls: Map<Request, T>): T | undefined {
    const call = calls.get(request);
    calls.delete(request);
    this.#unreported.delete(request);
    if (this.#waiting.size > 0) return call;
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    return call;
  }

  #report(): void {
    let position = this.#waiting.size - this.#unreported.size;
    const unreported = [...this.#unreported.values()];
    this.#unreported.clear();
    for (const report of unreported) report(position++);
  }
}
