// This process's access to a store's ledger.
import { type CreateEntry, processOf } from '../rules/create-entry.js';
import {
  type ReserveRequest,
  type ReserveResult,
  recordSent,
  reserveCreate,
  reuseCreate,
  type SendRequest,
  type SendResult,
} from '../rules/ledger.js';
import { evictCreate } from '../rules/ledger-budgets.js';
import {
  createKey,
  INDEX_KEYS,
  keysOf,
  LEASE_MS,
  type LedgerProcess,
  LedgerTransaction,
  STEP_KEYS,
} from '../rules/ledger-transaction.js';
import { type Clock, randomOf } from '../runtime/clock.js';
import { setAndEvict } from '../runtime/set-and-evict.js';
import type { QueuedCall } from '../store/call-queue.js';
import { leasesOf } from '../store/port.js';
import { isInProcess, type Store, storeClock } from '../store/store.js';
import { createRoomQueue, type RoomQueue, type RoomRequest } from './room-queue.js';
import { LedgerSteps, type Rule, type StepOptions } from './steps.js';

/** Maximum creates that a ledger in memory retains for budgets and callers' keys. The oldest are evicted. */
const MAX_CREATES = 10_000;

interface Entries {
  readonly entries: readonly CreateEntry[];
  readonly nowMs: number;
  readonly isAlive: (owner: string) => boolean;
}

export class Ledger {
  readonly isPersistent: boolean;
  readonly clock: Clock;
  readonly #store: Store;
  readonly #uuid: string;
  readonly #steps: LedgerSteps;
  #lease: string | undefined;
  readonly #reservations: RoomQueue<ReserveRequest & RoomRequest, ReserveResult>;
  readonly #sends: RoomQueue<SendRequest & RoomRequest, SendResult>;
  /** Calls in flight, with the time of their last lease renewal. */
  readonly #activeCalls = new Map<string, number>();
  /** IDs of creates with a job, oldest first. Only for a ledger in memory. */
  readonly #creates = new Map<string, string>();
  #reading: Promise<Entries> | undefined;
  #calls = 0;
  #stopRenewal: (() => void) | undefined;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.isPersistent = !isInProcess(store);
    this.clock = clock;
    this.#uuid = randomOf(clock).uuid();
    const wakeQueues = () => {
      this.#sends.wake();
      this.#reservations.wake();
    };
    this.#steps = new LedgerSteps(store, clock, () => this.#process, wakeQueues);
    const transact = <T>(rule: Rule<T>, keys: readonly string[]) => this.transact(rule, { keys });
    const ports = { transact, clock, isShared: this.isPersistent };
    this.#reservations = createRoomQueue<ReserveRequest & RoomRequest, ReserveResult>({
      ...ports,
      decide: reserveCreate,
    });
    this.#sends = createRoomQueue<SendRequest & RoomRequest, SendResult>({ ...ports, decide: recordSent });
  }

  get #process(): LedgerProcess {
    const id = this.#lease === undefined ? this.#uuid : `${this.#lease}/${this.#uuid}`;
    const leases = leasesOf(this.#store);
    const isLeaseHeld = leases && ((name: string) => leases.isHeld(name));
    return { id, isPersistent: this.isPersistent, isLeaseHeld, owners: this.#owners(id) };
  }

  #owners(id: string): ReadonlyMap<string, number> {
    if (!this.clock.perRequest) return new Map(this.#activeCalls.size > 0 ? [[id, 0]] : []);
    const silences = [...this.#activeCalls].map(([it, atMs]) => [processOf(it), this.clock.now() - atMs] as const);
    return new Map(silences.filter(([, ms]) => ms < LEASE_MS));
  }

  /** Registers a call as in flight. It owns its entry until {@link endCall}. */
  startCall(): string {
    this.#calls += 1;
    // Don't acquire the lease in the constructor, because a program that only reads the ledger needs no lease.
    this.#lease = leasesOf(this.#store)?.own();
    const { id } = this.#process;
    const { perRequest } = this.clock;
    // On Workers, a request can end without cleanup while its isolate keeps running.
    const owner = perRequest ? `${id}.${this.#calls}#1` : `${id}#${this.#calls}`;
    const nowMs = this.clock.now();
    if (perRequest)
      for (const [it, atMs] of this.#activeCalls) if (nowMs - atMs > 2 * LEASE_MS) this.#activeCalls.delete(it);
    this.#activeCalls.set(owner, nowMs);
    this.#renewLeaseOf(owner);
    return owner;
  }

  endCall(owner: string): void {
    this.#activeCalls.delete(owner);
    if (this.#activeCalls.size > 0) return;
    this.#stopRenewal?.();
    this.#stopRenewal = undefined;
  }

  /** Returns true for this process's calls in flight, and for all calls of other processes. */
  isInFlight = (owner: string): boolean => !owner.includes(this.#uuid) || this.#activeCalls.has(owner);

  /** Reserves a create's price. Queues behind creates that wait for the same budgets, until an abort. */
  async reserve(request: ReserveRequest, call: QueuedCall): Promise<ReserveResult> {
    const { id, entry, mayBeUsed } = request;
    const { signal } = call;
    const keys = keysOf(id, entry);
    if (entry.budgets.length === 0) return this.transact((tx) => reserveCreate(tx, request), { keys, signal });
    // Look for an existing create without queueing, because queued creates may wait for the tokens that it reserves.
    const reused =
      mayBeUsed && (await this.transact((tx) => reuseCreate(tx, request), { keys: [createKey(id)], signal }));
    return reused || this.#reservations.add({ ...request, keys, budgets: entry.budgets }, call);
  }

  /** Records that a request is about to be sent. Waits until its budgets can cover it, or until an abort. */
  async send(request: SendRequest & RoomRequest, call: QueuedCall): Promise<SendResult> {
    const { keys, budgets } = request;
    if (budgets.length === 0) return this.transact((tx) => recordSent(tx, request), { keys, signal: call.signal });
    return this.#sends.add(request, call);
  }

  /** Runs a rule in a transaction. Rejects if the store doesn't respond. */
  transact<T>(rule: Rule<T>, options?: StepOptions): Promise<T> {
    return this.#steps.transact(rule, options);
  }

  /** Runs a rule whose write must not be lost: see {@link LedgerSteps.record}. */
  record<T>(rule: Rule<T>, keys?: readonly string[], name?: string): Promise<T> {
    return this.#steps.record(rule, keys, name);
  }

  /** Retains a create that has a job. A ledger in memory evicts the oldest. */
  retain(id: string): void {
    if (this.isPersistent) return;
    const evicted = setAndEvict(this.#creates, id, id, MAX_CREATES);
    if (evicted !== undefined) void this.record((tx) => evictCreate(tx, evicted), [createKey(evicted)]).catch(() => {});
  }

  /** Waits at most two seconds in total for the writes that follow a response, or until an abort. */
  awaitBriefly(work: Promise<unknown>, signal?: AbortSignal): Promise<void> {
    return this.#steps.awaitBriefly(work, signal);
  }

  /** Returns all entries. Concurrent calls share one read. */
  recentEntries(): Promise<Entries> {
    if (this.clock.perRequest) return this.entries();
    this.#reading ??= this.entries().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  /** Reads all entries, oldest first. */
  async entries(): Promise<Entries> {
    const index = await this.#steps.read(INDEX_KEYS);
    const ids = new LedgerTransaction(new Set(INDEX_KEYS), index, this.#process).ids();
    const keys = [...STEP_KEYS, ...ids.map(createKey)];
    const tx = new LedgerTransaction(new Set(keys), await this.#steps.read(keys), this.#process);
    const entries = ids.flatMap((id) => tx.entry(id) ?? []);
    const { nowMs, isAlive } = tx;
    return { entries: entries.sort((a, b) => a.atMs - b.atMs), nowMs, isAlive };
  }

  /** Renews the lease while a call is in flight. A store in memory or with operating-system leases needs no renewal. */
  #renewLeaseOf(owner: string): void {
    const { perRequest } = this.clock;
    const needsNoRenewal = !this.isPersistent || this.#lease !== undefined;
    if (!perRequest && (needsNoRenewal || this.#stopRenewal)) return;
    const renew = () => {
      this.#stopRenewal = undefined;
      if (perRequest ? !this.#activeCalls.has(owner) : this.#activeCalls.size === 0) return;
      if (perRequest) this.#activeCalls.set(owner, this.clock.now());
      void this.transact((tx) => tx.renewLease()).catch(() => {});
      this.#renewLeaseOf(owner);
    };
    const stop = this.clock.after(LEASE_MS / 3, renew, { isIdle: true });
    if (!perRequest) this.#stopRenewal = stop;
  }
}

const LEDGERS = new WeakMap<Store, WeakMap<Clock, Ledger>>();

/** Returns the store's ledger: the same object for the same store and clock. */
export function ledgerOf(store: Store, clock: Clock): Ledger {
  const ledgerClock = storeClock(store, clock);
  const ledgers = LEDGERS.get(store) ?? new WeakMap<Clock, Ledger>();
  LEDGERS.set(store, ledgers);
  const ledger = ledgers.get(ledgerClock) ?? new Ledger(store, ledgerClock);
  ledgers.set(ledgerClock, ledger);
  return ledger;
}
