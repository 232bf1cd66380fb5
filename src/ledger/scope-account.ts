import { ConnectionError } from '../errors/index.js';
import type { BudgetReply, BudgetScope, BudgetStep, ReserveStep } from '../rules/budget-state.js';
import { reasonOf } from '../runtime/callbacks.js';
import { type Clock, steady } from '../runtime/clock.js';
import { abortable, onAbort } from '../runtime/deadline.js';
import { type Decision, isSetupError, type StoredValues } from '../store/store.js';
import { keysOf, takeSteps } from './ledger.js';

/** A step of a budget. */
interface ScopeStep<S extends BudgetStep = BudgetStep> {
  readonly scope: BudgetScope;
  readonly step: S;
}

/** How long a create waits. */
interface Patience {
  readonly signal: AbortSignal | undefined;
  /** The most milliseconds in which nothing moves: no create gets its turn or is answered, and none waits to be sent. */
  readonly timeoutMs: number;
  /** Whether the create has left its rate limit and its uploads behind. */
  readonly isSent: () => boolean;
}

/** A group of the store. */
export interface BudgetGroup {
  /** Changes the keys by a rule, which may run several times. */
  update<T>(keys: readonly string[], rule: (seen: StoredValues) => Decision<T>, signal: AbortSignal): Promise<T>;
}

/** What an account is made with. */
interface AccountOptions {
  /** Where the budget is kept. */
  readonly group: BudgetGroup;
  readonly clock: Clock;
  /** Called when nothing is under way. */
  onIdle(): void;
}

/** A step that is made with the next update of the store. */
interface Pending<S extends BudgetStep = BudgetStep> extends ScopeStep<S> {
  resolve(reply: BudgetReply): void;
  reject(error: unknown): void;
}

/** A create in the queue. */
interface Waiting extends Pending<ReserveStep> {
  readonly isSent: () => boolean;
  hasLeft: boolean;
}

/** How often a process asks the store whether the first create of the queue may go. */
const POLL_MS = 600;
/** How often calls in flight are renewed. */
const RENEW_MS = 10_000;
/** How long an update may take. */
const UPDATE_MS = 5_000;
/** The wait after the first failure of an update; each further one waits twice as long. */
const UPDATE_RETRY_MS = 250;
/** How often a failed update is repeated by itself. After that it goes with the next step. */
const RETRIES = 8;
/** Creates that are asked for in one update. */
const MOST_AT_ONCE = 32;
/** Changes that wait for the store. Further ones are dropped: their creates count as lost. */
const MOST_CHANGES = 10_000;

/**
 * One budget in this process. Creates queue here, and only the first of them asks the store. One update is under way at a
 * time, and it takes along all that has happened since the one before.
 */
export class ScopeAccount {
  readonly #options: AccountOptions;
  readonly #clock: Clock;
  /** Changes that the store does not have yet, the oldest first. */
  #changes: Pending[] = [];
  #looks: Pending[] = [];
  #queue: Waiting[] = [];
  /** The calls in flight, by holder. */
  readonly #calls = new Map<string, Pick<Waiting, 'scope' | 'step' | 'isSent'>>();
  #isUpdating = false;
  /** Whether the first of the queue was told to wait. */
  #isWaiting = false;
  /** When a create got its turn, or the store showed that another process has moved on. */
  #movedMs = Number.NEGATIVE_INFINITY;
  #standing = '';
  #failures = 0;
  #stopPoll: (() => void) | undefined;
  #stopRetry: (() => void) | undefined;
  #stopRenewal: (() => void) | undefined;

  constructor(options: AccountOptions) {
    this.#options = options;
    this.#clock = steady(options.clock);
  }

  /**
   * Waits until the store decides about the create. An abort and a time limit end the wait at once. A call that may go is
   * renewed until {@link ended}.
   */
  reserve({ scope, step }: ScopeStep<ReserveStep>, { signal, timeoutMs, isSent }: Patience): Promise<BudgetReply> {
    let stopTimer = () => {};
    let forgetAbort = () => {};
    const decided = new Promise<BudgetReply>((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const sinceMs = this.#clock.now();
      const waiting: Waiting = { scope, step, isSent, hasLeft: false, resolve, reject };
      const leave = (reason: unknown) => {
        waiting.hasLeft = true;
        this.#queue = this.#queue.filter((it) => it !== waiting);
        if (this.#queue.length === 0) this.#isWaiting = false;
        this.#poll();
        reject(reason);
      };
      const look = () => {
        const queuesInLane = [...this.#calls.values()].some((call) => !call.isSent());
        const fromMs = queuesInLane ? this.#clock.now() : Math.max(sinceMs, this.#movedMs);
        const restMs = fromMs + timeoutMs - this.#clock.now();
        if (restMs > 0) stopTimer = this.#clock.after(restMs, look);
        else leave(late(timeoutMs, step.key));
      };
      if (timeoutMs !== Number.POSITIVE_INFINITY) stopTimer = this.#clock.after(timeoutMs, look);
      forgetAbort = onAbort(signal, () => leave(signal?.reason));
      this.#queue.push(waiting);
      // Behind a create that waits there is nothing to ask for.
      if (!this.#isWaiting) void this.#update();
    });
    return decided.finally(() => {
      stopTimer();
      forgetAbort();
    });
  }

  /** The call is over. */
  ended(holder: string): void {
    this.#calls.delete(holder);
    if (this.#calls.size > 0) return;
    this.#stopRenewal?.();
    this.#stopRenewal = undefined;
  }

  /** Makes a change. It resolves when the store has it, and is repeated until then. */
  change(change: ScopeStep): Promise<BudgetReply | undefined> {
    return new Promise((resolve) => {
      if (this.#changes.length >= MOST_CHANGES) return resolve(undefined);
      this.#changes.push({ ...change, resolve, reject: () => {} });
      void this.#update();
    });
  }

  /** Shows the budget. Rejects where the store does not answer. */
  look(scope: BudgetScope): Promise<BudgetReply> {
    return new Promise((resolve, reject) => {
      this.#looks.push({ scope, step: { op: 'look' }, resolve, reject });
      void this.#update();
    });
  }

  async #update(): Promise<void> {
    if (this.#isUpdating) return;
    this.#isUpdating = true;
    this.#stopRetry?.();
    this.#stopRetry = undefined;
    try {
      for (let hasMore = true; hasMore; ) {
        const isStored = await this.#updateOnce();
        // Asked in the turn in which the loop ends: a step that comes after it begins an update of its own.
        hasMore = this.#hasMore(isStored);
      }
    } finally {
      this.#isUpdating = false;
      const under = this.#changes.length + this.#looks.length + this.#queue.length + this.#calls.size;
      if (under === 0) this.#options.onIdle();
    }
  }

  /** Whether there is more to do at once. After an update that failed, its changes have a timer. */
  #hasMore(isStored: boolean): boolean {
    const changes = isStored ? this.#changes.length : 0;
    return changes + this.#looks.length > 0 || (this.#queue.length > 0 && !this.#isWaiting);
  }

  /** One update of the store. Gives whether the store has it. */
  async #updateOnce(): Promise<boolean> {
    const changes = this.#changes.slice(0, MOST_AT_ONCE);
    const looks = this.#looks.splice(0);
    const waiting = changes.length < this.#changes.length ? [] : this.#queue.slice(0, MOST_AT_ONCE);
    const steps: readonly Pending[] = [...changes, ...looks, ...waiting];
    if (steps.length === 0) return true;
    let mayHaveReserved = false;
    try {
      const replies = await this.#apply(steps, () => {
        mayHaveReserved = true;
      });
      this.#failures = 0;
      this.#changes = this.#changes.filter((it) => !changes.includes(it));
      this.#answer(steps, replies);
      const last = replies.at(-1);
      this.#isWaiting = last?.outcome === 'wait' && this.#queue.length > 0;
      this.#poll();
      return true;
    } catch (error) {
      for (const look of looks) look.reject(error);
      if (mayHaveReserved) for (const { scope, step } of waiting) this.#giveBack(scope, step);
      this.#failed(error);
      return false;
    }
  }

  #answer(steps: readonly Pending[], replies: readonly BudgetReply[]): void {
    const last = replies.at(-1);
    const standing = `${last?.spentTokens} ${last?.reservedTokens} ${last?.unresolved}`;
    if (standing !== this.#standing) this.#movedMs = this.#clock.now();
    this.#standing = standing;
    for (const [at, reply] of replies.entries()) {
      const pending = steps[at];
      if (!pending || reply.outcome === 'wait') continue;
      if (isWaiting(pending)) {
        this.#queue = this.#queue.filter((it) => it !== pending);
        this.#movedMs = this.#clock.now();
        if (pending.hasLeft) this.#giveBack(pending.scope, pending.step);
        else if (reply.outcome === 'reserved' || reply.outcome === 'held') this.#began(pending);
      }
      pending.resolve(reply);
    }
  }

  /** Makes the steps in the store. Once `taken` is called, the store may have them even where no answer comes. */
  #apply(steps: readonly Pending[], taken: () => void): Promise<readonly BudgetReply[]> {
    const turns = steps.map(({ scope, step }) => ({ scope, step }));
    const rule = (seen: StoredValues) => {
      taken();
      return takeSteps(turns, seen);
    };
    const limit = new AbortController();
    const stop = this.#clock.after(UPDATE_MS, () => limit.abort(new Error(`no answer within ${UPDATE_MS} ms`)));
    return abortable(this.#options.group.update(keysOf(turns), rule, limit.signal), limit.signal).finally(stop);
  }

  /** Creates are refused in an outage. Changes are repeated. */
  #failed(error: unknown): void {
    const queue = this.#queue.splice(0);
    for (const waiting of queue) waiting.reject(budgetUnavailable(error, waiting.step.key));
    this.#isWaiting = false;
    this.#poll();
    const delayMs = UPDATE_RETRY_MS * 2 ** this.#failures;
    this.#failures += 1;
    if (this.#changes.length === 0 || this.#failures > RETRIES) return;
    this.#stopRetry = this.#clock.after(delayMs, () => void this.#update());
  }

  #giveBack(scope: BudgetScope, { key, holder }: ReserveStep): void {
    this.change({ scope, step: { op: 'fail', key, holder, fate: 'unsent' } });
  }

  #poll(): void {
    if (!this.#isWaiting) {
      this.#stopPoll?.();
      this.#stopPoll = undefined;
      return;
    }
    this.#stopPoll ??= this.#clock.after(POLL_MS, () => {
      this.#stopPoll = undefined;
      void this.#update();
    });
  }

  #began(call: Waiting): void {
    this.#calls.set(call.step.holder, call);
    this.#stopRenewal ??= this.#clock.after(RENEW_MS, () => this.#renew());
  }

  #renew(): void {
    const scope = this.#calls.values().next().value?.scope;
    if (!scope) return;
    const calls = [...this.#calls].map(([holder, { step }]): [string, string] => [step.key, holder]);
    this.#stopRenewal = this.#clock.after(RENEW_MS, () => this.#renew());
    // A renewal that the store has missed is worth nothing after the next one.
    this.#changes = this.#changes.filter(({ step }) => step.op !== 'renew');
    this.change({ scope, step: { op: 'renew', calls } });
  }
}

function isWaiting(pending: Pending): pending is Waiting {
  return 'hasLeft' in pending;
}

function late(timeoutMs: number, idempotencyKey: string): ConnectionError {
  const message = `The budget did not admit the create within ${timeoutMs} ms (timeoutMs), so it was not sent`;
  return new ConnectionError(message, { idempotencyKey, attempts: 0 });
}

function budgetUnavailable(cause: unknown, idempotencyKey: string): unknown {
  // What the store says about its configuration is for the user to read.
  if (isSetupError(cause)) return cause;
  const message = `The store of the budget did not answer, so the create was not sent (${reasonOf(cause)})`;
  return new ConnectionError(message, { idempotencyKey, attempts: 0, cause });
}
