// Runs this process's transactions on a store's ledger in steps, one at a time. Each step batches the calls that arrived
// during the previous step.
import { backoff } from '../rules/backoff.js';
import { type LedgerProcess, LedgerTransaction, MissingKeys, STEP_KEYS } from '../rules/ledger-transaction.js';
import { type Clock, nextTurn, randomOf, systemClock } from '../runtime/clock.js';
import { abortable, settledOrAborted } from '../runtime/deadline.js';
import { setAndEvict } from '../runtime/set-and-evict.js';
import { boundedStore, isSetupError, type Store, type StoredValues, updateGroup } from '../store/store.js';

const GROUP = 'ledger';
/** Maximum calls per step. More would block the event loop for too long. */
const MAX_PER_STEP = 64;
const TIMEOUT_MS = 2_000;
/** Pause after a failed read or swap. It doubles with each consecutive failure. */
const RETRY_MS = 50;
/** How long a call waits for the writes that follow a response. The writes continue afterward. */
const BRIEF_WAIT_MS = 2_000;
/** How long a caller waits for a failed write. The write is retried, after these pauses, until it succeeds. */
const RECORD_MS = 60_000;
const RECORD_PAUSE = { firstMs: 250, maxMs: 8_000 } as const;
/** Maximum pending writes with a name. If there are more, the oldest fail. */
const MAX_NAMED = 10_000;

/** Reads and changes the ledger. May run several times. */
export type Rule<T> = (tx: LedgerTransaction) => T;

interface Pending {
  /** Keys that the rule probably reads. */
  readonly keys: readonly string[];
  readonly run: (tx: LedgerTransaction) => void;
  readonly settle: () => void;
  readonly fail: (error: unknown) => void;
  /** When the caller of a write that must not be lost stops waiting. Undefined for other rules. */
  readonly untilMs: number | undefined;
  /** Pending writes with the same name record the same fact, so only one of them is retained. */
  readonly name: string | undefined;
}

export interface StepOptions {
  readonly signal?: AbortSignal | undefined;
  readonly keys?: readonly string[];
}

export class LedgerSteps {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #process: () => LedgerProcess;
  readonly #recorded: () => void;
  readonly #queue: Pending[] = [];
  /** Failed writes, which the next step repeats first. */
  #failedWrites: Pending[] = [];
  /** Pending writes with a name, oldest first. */
  readonly #named = new Map<string | undefined, Promise<unknown>>();
  #failures = 0;
  /** When the oldest pending rule was added. Real time, because a response waits for it. */
  #pendingSince: number | undefined;
  #retry: (() => void) | undefined;
  #isRunning = false;

  /** `recorded` is called after each write. */
  constructor(store: Store, clock: Clock, process: () => LedgerProcess, recorded: () => void) {
    this.#store = store;
    this.#clock = clock;
    this.#process = process;
    this.#recorded = recorded;
  }

  /** Runs a rule in a transaction. Rejects if the store doesn't respond. */
  transact<T>(rule: Rule<T>, { signal, keys = [] }: StepOptions = {}): Promise<T> {
    const result = this.#add(rule, keys, undefined);
    return signal ? abortable(result, signal) : result;
  }

  /**
   * Runs a rule whose write must not be lost. Rejects after a minute, but continues to retry while the process runs.
   * Pass a `name` for a fact that may be reported repeatedly and can be learned again later. Beyond 10,000 pending
   * writes with a name, the oldest are dropped.
   */
  async record<T>(rule: Rule<T>, keys: readonly string[] = [], name?: string): Promise<T> {
    const added = this.#named.get(name) ?? this.#add(rule, keys, this.#clock.now() + RECORD_MS, name);
    // On Workers, a call can't wait for another request's promise, so it replaces that request's write.
    if (name !== undefined && !this.#clock.perRequest) setAndEvict(this.#named, name, added, MAX_NAMED);
    const result = (await added) as T;
    this.#recorded();
    return result;
  }

  /** Waits at most two seconds in total for the writes that follow a response, or until an abort. */
  async awaitBriefly(work: Promise<unknown>, signal?: AbortSignal): Promise<void> {
    const sinceMs = this.#pendingSince ?? systemClock.now();
    let stopTimer = () => {};
    const timeout = new Promise<void>((resolve) => {
      stopTimer = systemClock.after(Math.max(0, sinceMs + BRIEF_WAIT_MS - systemClock.now()), resolve);
    });
    await settledOrAborted(Promise.race([work, timeout]), signal);
    stopTimer();
  }

  async read(keys: readonly string[]): Promise<StoredValues> {
    return this.#persistently(() => boundedStore(this.#store, this.#clock).read(GROUP, keys));
  }

  #add<T>(rule: Rule<T>, keys: readonly string[], untilMs: number | undefined, name?: string): Promise<T> {
    let result: { readonly value: T } | undefined;
    return new Promise<T>((resolve, reject) => {
      const run = (tx: LedgerTransaction) => {
        result = { value: rule(tx) };
      };
      const settle = () => (result ? resolve(result.value) : reject(new Error('a later call records it')));
      const pending = { keys, run, settle, fail: reject, untilMs, name };
      this.#pendingSince ??= systemClock.now();
      if (this.#clock.perRequest) {
        // On Workers, a call can't wait for another request's promise.
        if (untilMs !== undefined) this.#failedWrites = [...this.#failedWrites.filter(hasOtherName(pending)), pending];
        void this.#step([pending]);
        return;
      }
      this.#queue.push(pending);
      void this.#run();
    });
  }

  /** Runs steps until the queue is empty. */
  async #run(): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    // Calls made in the same tick share a step.
    await Promise.resolve();
    while (this.#queue.length > 0) {
      await this.#step([...this.#failedWrites.splice(0), ...this.#queue.splice(0, MAX_PER_STEP)]);
      if (this.#queue.length > 0) await nextTurn();
    }
    this.#isRunning = false;
  }

  async #step(pending: readonly Pending[]): Promise<void> {
    // On Workers, a request can end before its writes complete. Later requests repeat them.
    const others = this.#clock.perRequest ? this.#failedWrites.filter((it) => !pending.includes(it)) : [];
    const all = [...others, ...pending];
    try {
      // A finished program exits even if the store is unavailable. It loses the writes that no call waits for.
      const isIdle = all.every(({ untilMs }) => untilMs !== undefined);
      await this.#persistently(() => this.#write(all), isIdle);
      this.#failures = 0;
      this.#failedWrites = this.#failedWrites.filter((it) => !all.includes(it));
      const isBehind = this.#queue.length > 0 || this.#failedWrites.length > 0;
      this.#pendingSince = isBehind ? systemClock.now() : undefined;
      for (const { name } of all) this.#named.delete(name);
      for (const it of pending) it.settle();
    } catch (error) {
      this.#onFailure(pending, error);
    }
  }

  /** Rejects reads. Retries writes with the next step, or after a pause. */
  #onFailure(pending: readonly Pending[], error: unknown): void {
    const nowMs = this.#clock.now();
    const isRetried = (it: Pending) => it.untilMs !== undefined && this.#failedWrites.every(hasOtherName(it));
    const writes = new Set(isSetupError(error) ? [] : pending.filter(isRetried));
    for (const it of pending) {
      if (!writes.has(it) || (it.untilMs ?? 0) <= nowMs) it.fail(error);
      if (!writes.has(it)) this.#named.delete(it.name);
    }
    this.#failedWrites = [...new Set([...this.#failedWrites, ...writes])];
    this.#failExcess(error);
    if (this.#failedWrites.length === 0) {
      this.#pendingSince = undefined;
      return;
    }
    this.#failures += 1;
    const pauseMs = backoff(RECORD_PAUSE, this.#failures);
    const idle = { isIdle: true };
    if (this.#clock.perRequest) return void this.#clock.after(pauseMs, () => this.#writeAgain([...writes]), idle);
    const retry = () => {
      this.#retry = undefined;
      // Keep the order, because a job's end has no effect before its create is recorded.
      this.#queue.unshift(...this.#failedWrites.splice(0));
      void this.#run();
    };
    this.#retry ??= this.#clock.after(pauseMs, retry, idle);
  }

  #failExcess(error: unknown): void {
    const named = this.#failedWrites.filter(({ name }) => name !== undefined);
    const excess = new Set(named.slice(0, -MAX_NAMED));
    if (excess.size === 0) return;
    for (const it of excess) {
      it.fail(error);
      this.#named.delete(it.name);
    }
    this.#failedWrites = this.#failedWrites.filter((it) => !excess.has(it));
  }

  /** On Workers, a request retries its own writes, unless another request has completed them. */
  #writeAgain(writes: readonly Pending[]): void {
    const unwritten = writes.filter((it) => this.#failedWrites.includes(it));
    for (const it of writes) if (!unwritten.includes(it)) it.settle();
    if (unwritten.length > 0) void this.#step(unwritten);
  }

  /** Retries a failed read or swap until the store's timeout, because every step is idempotent by key. */
  async #persistently<T>(work: () => Promise<T>, isIdle = false): Promise<T> {
    const { timeoutMs = TIMEOUT_MS } = this.#store;
    const startMs = this.#clock.now();
    for (let attempt = 0; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        const pauseMs = RETRY_MS * 2 ** attempt;
        if (isSetupError(error) || this.#clock.now() + pauseMs - startMs >= timeoutMs) throw error;
        await new Promise<void>((resolve) => this.#clock.after(pauseMs, resolve, { isIdle }));
      }
    }
  }

  async #write(pending: readonly Pending[]): Promise<void> {
    const keys = new Set([...STEP_KEYS, ...pending.flatMap((it) => it.keys)]);
    const group = { store: this.#store, group: GROUP, clock: this.#clock, random: randomOf(this.#clock) };
    for (;;) {
      const missing = await updateGroup(group, [...keys], (seen) => {
        const tx = new LedgerTransaction(keys, seen, this.#process());
        const result = pending.flatMap(({ run }) => missingKeysOf(() => run(tx)));
        if (result.length > 0) return { changes: {}, result };
        tx.renewLease();
        return { changes: tx.changes(), result };
      });
      if (missing.length === 0) return;
      for (const key of missing) keys.add(key);
    }
  }
}

/** Returns a function that returns false for another write with the same name. */
function hasOtherName(write: Pending): (other: Pending) => boolean {
  return (other) => other === write || other.name === undefined || other.name !== write.name;
}

function missingKeysOf(work: () => void): readonly string[] {
  try {
    work();
    return [];
  } catch (thrown) {
    if (thrown instanceof MissingKeys) return thrown.keys;
    throw thrown;
  }
}
