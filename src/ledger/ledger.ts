// The driver of the ledger on one store: collects what the calls of this process say, and makes it one step of the rules.
import { backoff } from '../rules/backoff.js';
import { type OpenAsk, type OpenReply, openCreate, openKnown } from '../rules/ledger.js';
import {
  type CreateEntry,
  createKey,
  HOLD_MS,
  INDEX_KEYS,
  keysOf,
  LedgerDraft,
  type LedgerProcess,
  processOf,
  Unread,
} from '../rules/ledger-draft.js';
import { type Clock, clockOf, nextTurn, randomOf, systemClock } from '../runtime/clock.js';
import { abortable, sleep } from '../runtime/deadline.js';
import { leasesOf } from '../store/port.js';
import { boundedStore, isInProcess, isSetupError, type Store, updateGroup } from '../store/store.js';
import { createOpenQueue, type OpenQueue } from './open-queue.js';

const GROUP = 'ledger';
/** Calls that share one step. More of them would hold the event loop for too long. */
const MOST_PER_STEP = 64;
const TIMEOUT_MS = 2_000;
/** The pause after a failed read or swap; each further one is twice as long. */
const RETRY_MS = 50;
/** How long a call waits for all that is written after an answer. The writes go on by themselves. */
const SOON_MS = 2_000;
/** How long a fact that the store has missed is waited for. It is told again until the store has it, after such pauses. */
const NOTE_MS = 60_000;
const NOTE_PAUSE = { firstMs: 250, mostMs: 8_000 } as const;
/** Facts that are remembered for a store that is away. */
const MOST_MISSED = 1_000;

/** What a call wants of the ledger. It may run several times. */
type Rule<T> = (draft: LedgerDraft) => T;

interface Pending {
  /** The values that it surely reads. */
  readonly keys: readonly string[];
  readonly run: (draft: LedgerDraft) => void;
  readonly settle: () => void;
  readonly fail: (error: unknown) => void;
  /** Of a fact: until when it keeps the process alive and its caller waiting. Undefined for what is only asked. */
  readonly untilMs: number | undefined;
}

interface AskOptions {
  readonly signal?: AbortSignal | undefined;
  readonly keys?: readonly string[];
}

interface Entries {
  readonly entries: readonly CreateEntry[];
  readonly nowMs: number;
  readonly isAlive: (holder: string) => boolean;
}

export class Ledger {
  readonly outlives: boolean;
  readonly clock: Clock;
  readonly #store: Store;
  readonly #uuid: string;
  #lease: string | undefined;
  readonly #queue: Pending[] = [];
  /** Facts that the store has missed. The next step begins with them. */
  #missed: Pending[] = [];
  #failures = 0;
  /** When each fact was told that the store does not have, the oldest first: in real time, because an answer waits for it. */
  readonly #owed = new Map<Pending, number>();
  #retry: (() => void) | undefined;
  readonly #open: OpenQueue;
  /** The calls that work on an entry now, and when they last said so. */
  readonly #flying = new Map<string, number>();
  /** Those of them that others took for dead, because the process was stopped or its store was away. */
  readonly #lapsed = new Set<string>();
  /** The processes that the store knows to live: this one, or on Workers each call. */
  readonly #held = new Set<string>();
  #reading: Promise<Entries> | undefined;
  #calls = 0;
  #isRunning = false;
  #renewal: (() => void) | undefined;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.outlives = !isInProcess(store);
    this.clock = clock;
    this.#uuid = randomOf(clock).uuid();
    this.#open = createOpenQueue({ ask: (rule, keys) => this.ask(rule, { keys }), clock, isShared: this.outlives });
  }

  get #process(): LedgerProcess {
    const id = this.#lease === undefined ? this.#uuid : `${this.#lease}/${this.#uuid}`;
    const leases = leasesOf(this.#store);
    const isLeaseHeld = leases && ((name: string) => leases.isHeld(name));
    return { id, isLeaseHeld, lapsed: this.#lapsed, holders: this.#holders(id) };
  }

  #holders(id: string): ReadonlyMap<string, number> {
    if (!this.clock.perRequest) return new Map(this.#flying.size > 0 ? [[id, 0]] : []);
    const silent = [...this.#flying].map(([by, saidMs]) => [processOf(by), this.clock.now() - saidMs] as const);
    return new Map(silent.filter(([, ms]) => ms < HOLD_MS));
  }

  /** Names a call, which holds its entry until it is {@link landed}. */
  fly(): string {
    this.#calls += 1;
    // A program that only reads the ledger needs no lease.
    this.#lease = leasesOf(this.#store)?.own();
    const { id } = this.#process;
    // On Workers a request may end without a word, and its isolate lives on.
    const by = this.clock.perRequest ? `${id}.${this.#calls}#1` : `${id}#${this.#calls}`;
    const nowMs = this.clock.now();
    if (this.clock.perRequest)
      for (const [it, saidMs] of this.#flying) if (nowMs - saidMs > 2 * HOLD_MS) this.#flying.delete(it);
    this.#flying.set(by, nowMs);
    this.#renew(by);
    return by;
  }

  landed(by: string): void {
    this.#flying.delete(by);
    this.#lapsed.delete(by);
    if (this.clock.perRequest) this.#held.delete(processOf(by));
    if (this.#flying.size > 0) return;
    this.#held.clear();
    this.#renewal?.();
    this.#renewal = undefined;
  }

  /** Whether a call of this process, or one of another process, is under way. */
  isInFlight = (holder: string): boolean => !holder.includes(this.#uuid) || this.#flying.has(holder);

  /** Opens an entry, after those that wait for the same budgets. An abort ends the wait. */
  async open(ask: OpenAsk, signal: AbortSignal | undefined): Promise<OpenReply> {
    const { id, entry, isAgain } = ask;
    if (entry.budgets.length === 0) {
      return this.ask((draft) => openCreate(draft, ask), { keys: keysOf(id, entry), signal });
    }
    // Those in front may wait for what this one settles.
    const known = isAgain && (await this.ask((draft) => openKnown(draft, ask), { keys: [createKey(id)], signal }));
    return known || this.#open.add(ask, signal);
  }

  /** Makes a step. Rejects where the store does not answer. `keys` are values that it surely reads. */
  ask<T>(rule: Rule<T>, { signal, keys = [] }: AskOptions = {}): Promise<T> {
    const done = this.#ask(rule, keys, undefined);
    return signal ? abortable(done, signal) : done;
  }

  /** Tells a fact, again and again while the store is away. Rejects where that takes too long. */
  async note<T>(rule: Rule<T>, keys: readonly string[] = []): Promise<T> {
    const noted = await this.#ask(rule, keys, this.clock.now() + NOTE_MS);
    this.#open.wake();
    return noted;
  }

  /** Waits for what is told about an answer: in all no longer than two seconds, also where several facts are told in turn. */
  async soon(work: Promise<unknown>): Promise<void> {
    const [oldestMs = systemClock.now()] = this.#owed.values();
    let cancel = () => {};
    const late = new Promise<void>((resolve) => {
      cancel = systemClock.after(Math.max(0, oldestMs + SOON_MS - systemClock.now()), resolve);
    });
    await Promise.race([work.catch(() => {}), late]).finally(() => cancel());
  }

  #ask<T>(rule: Rule<T>, keys: readonly string[], untilMs: number | undefined): Promise<T> {
    let result: { readonly value: T } | undefined;
    return new Promise<T>((resolve, reject) => {
      const run = (draft: LedgerDraft) => {
        result = { value: rule(draft) };
      };
      const settle = () => (result ? resolve(result.value) : undefined);
      this.#add({ keys, run, settle, fail: reject, untilMs });
    });
  }

  /** All entries, as a reading shows them that may be under way already. */
  recentEntries(): Promise<Entries> {
    if (this.clock.perRequest) return this.entries();
    this.#reading ??= this.entries().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  /** All entries, the oldest first. It reads the whole index. */
  async entries(): Promise<Entries> {
    const seen = await this.#read(INDEX_KEYS);
    const ids = new LedgerDraft(new Set(INDEX_KEYS), seen, this.#process).ids();
    const keys = ['holders', ...ids.map(createKey)];
    const draft = new LedgerDraft(new Set(keys), await this.#read(keys), this.#process);
    const entries = ids.flatMap((id) => draft.entry(id) ?? []);
    const { nowMs, isAlive } = draft;
    return { entries: entries.sort((a, b) => a.atMs - b.atMs), nowMs, isAlive };
  }

  async #read(keys: readonly string[]) {
    return this.#persistently(() => boundedStore(this.#store, this.clock).read(GROUP, keys));
  }

  #add(pending: Pending): void {
    if (pending.untilMs !== undefined) this.#owed.set(pending, systemClock.now());
    if (this.clock.perRequest) {
      // On Workers a call must not wait for what another request does.
      if (pending.untilMs !== undefined) this.#missed.push(pending);
      void this.#step([pending]);
      return;
    }
    this.#queue.push(pending);
    void this.#run();
  }

  /** One step after the other, each for the calls that have come meanwhile. */
  async #run(): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    // The calls of one moment come together.
    await Promise.resolve();
    while (this.#queue.length > 0) {
      await this.#step([...this.#missed.splice(0), ...this.#queue.splice(0, MOST_PER_STEP)]);
      if (this.#queue.length > 0) await nextTurn();
    }
    this.#isRunning = false;
  }

  async #step(pending: readonly Pending[]): Promise<void> {
    // On Workers a request may end without a word: what it has not told, the next ones tell.
    const others = this.clock.perRequest ? this.#missed.filter((it) => !pending.includes(it)) : [];
    const told = [...others, ...pending];
    try {
      await this.#persistently(() => this.#make(told));
      this.#failures = 0;
      this.#missed = this.#missed.filter((it) => !told.includes(it));
      for (const it of told) this.#owed.delete(it);
      for (const it of pending) it.settle();
    } catch (error) {
      this.#failed(pending, error);
    }
  }

  /** What was asked fails. Facts are told with the next step, or after a while. */
  #failed(pending: readonly Pending[], error: unknown): void {
    const nowMs = this.clock.now();
    const facts = isSetupError(error) ? [] : pending.filter(({ untilMs }) => untilMs !== undefined);
    for (const it of pending) if (!facts.includes(it) || (it.untilMs ?? 0) <= nowMs) it.fail(error);
    this.#missed = [...new Set([...this.#missed, ...facts])].slice(-MOST_MISSED);
    for (const it of pending) if (!this.#missed.includes(it)) this.#owed.delete(it);
    if (this.#missed.length === 0) return;
    this.#failures += 1;
    const isIdle = this.#missed.every(({ untilMs = 0 }) => untilMs <= nowMs);
    const pauseMs = backoff(NOTE_PAUSE, this.#failures);
    if (this.clock.perRequest) return void this.clock.after(pauseMs, () => this.#tellAgain(facts), { isIdle });
    const again = () => {
      this.#retry = undefined;
      // In their order: the end of a job means nothing before its create.
      this.#queue.unshift(...this.#missed.splice(0));
      void this.#run();
    };
    this.#retry ??= this.clock.after(pauseMs, again, { isIdle });
  }

  /** On Workers: the request tells its own facts again, unless another one has told them meanwhile. */
  #tellAgain(facts: readonly Pending[]): void {
    const own = facts.filter((it) => this.#missed.includes(it));
    for (const it of facts) if (!own.includes(it)) it.settle();
    if (own.length > 0) void this.#step(own);
  }

  /** Every step is idempotent by key, so a read or a swap that failed is made again until the store's time has passed. */
  async #persistently<T>(work: () => Promise<T>): Promise<T> {
    const { timeoutMs = TIMEOUT_MS } = this.#store;
    const startMs = this.clock.now();
    for (let tries = 0; ; tries++) {
      try {
        return await work();
      } catch (error) {
        const pauseMs = RETRY_MS * 2 ** tries;
        if (isSetupError(error) || this.clock.now() + pauseMs - startMs >= timeoutMs) throw error;
        await sleep(this.clock, pauseMs);
      }
    }
  }

  async #make(pending: readonly Pending[]): Promise<void> {
    const keys = new Set(['holders', ...pending.flatMap((it) => it.keys)]);
    const where = { store: this.#store, group: GROUP, clock: this.clock, random: randomOf(this.clock) };
    for (;;) {
      const missing = await updateGroup(where, [...keys], (seen) => {
        const draft = new LedgerDraft(keys, seen, this.#process);
        const lapsed = [...this.#held].filter((it) => draft.hasLapsed(it));
        if (lapsed.length > 0)
          for (const by of this.#flying.keys()) if (lapsed.includes(processOf(by))) this.#lapsed.add(by);
        const unread = pending.flatMap(({ run }) => unreadOf(() => run(draft)));
        if (unread.length > 0) return { changes: {}, result: unread };
        draft.hold();
        return { changes: draft.changes(), result: unread };
      });
      if (missing.length === 0) break;
      for (const key of missing) keys.add(key);
    }
    for (const it of this.#process.holders.keys()) this.#held.add(it);
  }

  /** Says that the process lives while a call of it is under way. One process that has the store alone need not. */
  #renew(by: string): void {
    const { perRequest } = this.clock;
    const isAlone = !this.outlives || this.#lease !== undefined;
    if (!perRequest && (isAlone || this.#renewal)) return;
    const renew = () => {
      this.#renewal = undefined;
      if (perRequest ? !this.#flying.has(by) : this.#flying.size === 0) return;
      if (perRequest) this.#flying.set(by, this.clock.now());
      void this.ask((draft) => draft.hold()).catch(() => {});
      this.#renew(by);
    };
    const stop = this.clock.after(HOLD_MS / 3, renew, { isIdle: true });
    if (!perRequest) this.#renewal = stop;
  }
}

function unreadOf(work: () => void): string[] {
  try {
    work();
    return [];
  } catch (thrown) {
    if (thrown instanceof Unread) return [thrown.key];
    throw thrown;
  }
}

const LEDGERS = new WeakMap<Store, WeakMap<Clock, Ledger>>();

/** The ledger of a store. What is in the memory of this process follows the clock of its client. */
export function ledgerOf(store: Store, clock: Clock): Ledger {
  const time = isInProcess(store) ? clock : clockOf(store);
  const ledgers = LEDGERS.get(store) ?? new WeakMap<Clock, Ledger>();
  LEDGERS.set(store, ledgers);
  const ledger = ledgers.get(time) ?? new Ledger(store, time ?? systemClock);
  ledgers.set(time, ledger);
  return ledger;
}
