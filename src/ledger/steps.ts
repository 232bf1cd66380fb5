// Makes the steps of this process on the ledger of one store: one after the other, each for the calls that have come meanwhile.
import { backoff } from '../rules/backoff.js';
import { type LedgerProcess, LedgerTransaction, MissingKeys, STEP_KEYS } from '../rules/ledger-transaction.js';
import { type Clock, nextTurn, randomOf, systemClock } from '../runtime/clock.js';
import { abortable, onAbort } from '../runtime/deadline.js';
import { boundedStore, isSetupError, type Store, type StoredValues, updateGroup } from '../store/store.js';

const GROUP = 'ledger';
/** Calls that share one step. More of them would block the event loop for too long. */
const MAX_PER_STEP = 64;
const TIMEOUT_MS = 2_000;
/** The pause after a failed read or swap. It doubles with each further one. */
const RETRY_MS = 50;
/** How long a call waits for the writes that follow a response. The writes continue without it. */
const BRIEFLY_MS = 2_000;
/** How long the caller of a failed write waits for it. It is retried until the store has it, after these pauses. */
const RECORD_MS = 60_000;
const RECORD_PAUSE = { firstMs: 250, mostMs: 8_000 } as const;

/** A step on the ledger. It may run several times. */
export type Rule<T> = (tx: LedgerTransaction) => T;

interface Pending {
  /** The values that it is known to read. */
  readonly keys: readonly string[];
  readonly run: (tx: LedgerTransaction) => void;
  readonly settle: () => void;
  readonly fail: (error: unknown) => void;
  /** For a write that must not be lost: until when its caller waits. */
  readonly untilMs: number | undefined;
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
  /** Writes that the store does not have yet. The next step begins with them. The calls in flight bound their number. */
  #failedWrites: Pending[] = [];
  #failures = 0;
  /** When the oldest step began that the store does not have. Real time, because a response waits for it. */
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

  /** Makes a step. Rejects if the store does not respond. */
  transact<T>(rule: Rule<T>, { signal, keys = [] }: StepOptions = {}): Promise<T> {
    const made = this.#add(rule, keys, undefined);
    return signal ? abortable(made, signal) : made;
  }

  /** Makes a step that must not be lost. Retries it while the store is unavailable, and rejects if that takes too long. */
  async record<T>(rule: Rule<T>, keys: readonly string[] = []): Promise<T> {
    const result = await this.#add(rule, keys, this.#clock.now() + RECORD_MS);
    this.#recorded();
    return result;
  }

  /** Waits at most two seconds in total for the writes that follow a response. Does not wait after an abort. */
  async awaitBriefly(work: Promise<unknown>, signal?: AbortSignal): Promise<void> {
    const sinceMs = this.#pendingSince ?? systemClock.now();
    let stop = () => {};
    const late = new Promise<void>((resolve) => {
      const stopTimer = systemClock.after(Math.max(0, sinceMs + BRIEFLY_MS - systemClock.now()), resolve);
      const forget = onAbort(signal, resolve);
      stop = () => {
        stopTimer();
        forget();
      };
      if (signal?.aborted) resolve();
    });
    await Promise.race([work.catch(() => {}), late]).finally(() => stop());
  }

  async read(keys: readonly string[]): Promise<StoredValues> {
    return this.#persistently(() => boundedStore(this.#store, this.#clock).read(GROUP, keys));
  }

  #add<T>(rule: Rule<T>, keys: readonly string[], untilMs: number | undefined): Promise<T> {
    let result: { readonly value: T } | undefined;
    return new Promise<T>((resolve, reject) => {
      const run = (tx: LedgerTransaction) => {
        result = { value: rule(tx) };
      };
      const settle = () => (result ? resolve(result.value) : undefined);
      const pending = { keys, run, settle, fail: reject, untilMs };
      this.#pendingSince ??= systemClock.now();
      if (this.#clock.perRequest) {
        // On Workers, a call must not wait for another request.
        if (untilMs !== undefined) this.#failedWrites.push(pending);
        void this.#step([pending]);
        return;
      }
      this.#queue.push(pending);
      void this.#run();
    });
  }

  /** One step after the other, each for the calls that have come meanwhile. */
  async #run(): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    // The calls of one moment share a step.
    await Promise.resolve();
    while (this.#queue.length > 0) {
      await this.#step([...this.#failedWrites.splice(0), ...this.#queue.splice(0, MAX_PER_STEP)]);
      if (this.#queue.length > 0) await nextTurn();
    }
    this.#isRunning = false;
  }

  async #step(pending: readonly Pending[]): Promise<void> {
    // On Workers, a request can end before its writes. The next requests make them.
    const others = this.#clock.perRequest ? this.#failedWrites.filter((it) => !pending.includes(it)) : [];
    const all = [...others, ...pending];
    try {
      // A finished program exits, whatever its store does not have: a write that nobody waits for is lost with it.
      const isIdle = all.every(({ untilMs }) => untilMs !== undefined);
      await this.#persistently(() => this.#write(all), isIdle);
      this.#failures = 0;
      this.#failedWrites = this.#failedWrites.filter((it) => !all.includes(it));
      const isBehind = this.#queue.length > 0 || this.#failedWrites.length > 0;
      this.#pendingSince = isBehind ? systemClock.now() : undefined;
      for (const it of pending) it.settle();
    } catch (error) {
      this.#failed(pending, error);
    }
  }

  /** Questions fail. Writes are retried with the next step, or after a pause. */
  #failed(pending: readonly Pending[], error: unknown): void {
    const nowMs = this.#clock.now();
    const writes = isSetupError(error) ? [] : pending.filter(({ untilMs }) => untilMs !== undefined);
    for (const it of pending) if (!writes.includes(it) || (it.untilMs ?? 0) <= nowMs) it.fail(error);
    this.#failedWrites = [...new Set([...this.#failedWrites, ...writes])];
    if (this.#failedWrites.length === 0) {
      this.#pendingSince = undefined;
      return;
    }
    this.#failures += 1;
    const pauseMs = backoff(RECORD_PAUSE, this.#failures);
    const idle = { isIdle: true };
    if (this.#clock.perRequest) return void this.#clock.after(pauseMs, () => this.#writeAgain(writes), idle);
    const again = () => {
      this.#retry = undefined;
      // In order: the end of a job means nothing before its create.
      this.#queue.unshift(...this.#failedWrites.splice(0));
      void this.#run();
    };
    this.#retry ??= this.#clock.after(pauseMs, again, idle);
  }

  /** On Workers, a request retries its own writes, unless another one has made them meanwhile. */
  #writeAgain(writes: readonly Pending[]): void {
    const own = writes.filter((it) => this.#failedWrites.includes(it));
    for (const it of writes) if (!own.includes(it)) it.settle();
    if (own.length > 0) void this.#step(own);
  }

  /** Every step is idempotent by key, so a failed read or swap is retried until the store's timeout. */
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

function missingKeysOf(work: () => void): readonly string[] {
  try {
    work();
    return [];
  } catch (thrown) {
    if (thrown instanceof MissingKeys) return thrown.keys;
    throw thrown;
  }
}
