// The values of the ledger in a store: read for a step, changed by its rules, and written in one swap. Pure.
import { type BudgetState, type BudgetTerms, budgetName, budgetTtlMs, EMPTY_BUDGET } from './budget.js';
import { type CreateEntry, ENTRY_TTL_MS, entryJobId, KEY_TTL_MS, processOf, type UsedKey } from './create-entry.js';

/** A process without a lease of the operating system counts as alive for this long after its last renewal. */
export const LEASE_MS = 30_000;

/** The index of the entries has many parts, so that a step writes little of it. */
const INDEX_PARTS = 1024;
const MAX_PRICES = 250;
const LEASES = 'leases';

export const INDEX_KEYS: readonly string[] = Array.from({ length: INDEX_PARTS }, (_, part) => `index/${part}`);

/** Every step reads who is alive. */
export const STEP_KEYS: readonly string[] = [LEASES];

export const createKey = (id: string): string => `create/${id}`;

const jobKey = (jobId: string): string => `job/${jobId}`;

const pricesKey = (account: string): string => `prices/${account}`;

const budgetKey = (terms: Pick<BudgetTerms, 'scope' | 'per'>): string => `budget/${budgetName(terms)}`;

function indexKey(id: string): string {
  let hash = 0;
  for (let at = 0; at < id.length; at++) hash = (Math.imul(hash, 31) + id.charCodeAt(at)) | 0;
  return `index/${Math.abs(hash) % INDEX_PARTS}`;
}

/** Returns the keys of the values that decide about a create. */
export function keysOf(id: string, { account, budgets }: Pick<CreateEntry, 'account' | 'budgets'>): string[] {
  return [createKey(id), indexKey(id), pricesKey(account), ...budgets.map(budgetKey)];
}

/** Thrown by a rule that needs values which were not read. The driver reads them, and makes the step again. */
export class MissingKeys {
  readonly keys: readonly string[];
  constructor(keys: readonly string[]) {
    this.keys = keys;
  }
}

export interface LedgerProcess {
  readonly id: string;
  /** True if the store outlives the process. */
  readonly isPersistent: boolean;
  /** For a store with leases: returns true while a process holds the lease of that name. */
  readonly isLeaseHeld: ((name: string) => boolean) | undefined;
  /**
   * Milliseconds since the last renewal of each owner in this process that has calls in flight: the process, or on Workers
   * each call.
   */
  readonly owners: ReadonlyMap<string, number>;
}

type Stored = { readonly entry: CreateEntry } | { readonly usedKey: UsedKey };

/** The ledger as a rule reads and changes it. */
export class LedgerTransaction {
  readonly nowMs: number;
  readonly #read: Pick<ReadonlySet<string>, 'has'>;
  readonly #stored: Readonly<Record<string, string>>;
  readonly #process: LedgerProcess;
  readonly #values = new Map<string, unknown>();
  readonly #ttlMs = new Map<string, number>();

  /** `read` are the keys that `values` were read for. */
  constructor(
    read: Pick<ReadonlySet<string>, 'has'>,
    { nowMs, values }: { readonly nowMs: number; readonly values: Readonly<Record<string, string>> },
    process: LedgerProcess,
  ) {
    this.nowMs = nowMs;
    this.#read = read;
    this.#stored = values;
    this.#process = process;
  }

  /** Returns true for a call of this process, or for this process. */
  isOwn = (owner: string): boolean => {
    const process = processOf(owner);
    return process === this.#process.id || this.#process.owners.has(process);
  };

  isAlive = (owner: string): boolean => {
    if (this.isOwn(owner)) return true;
    const process = processOf(owner);
    const { isLeaseHeld } = this.#process;
    if (isLeaseHeld) return isLeaseHeld(process.slice(0, process.indexOf('/')));
    // A lease that was renewed before the clock was set back lasts longer: what a living process owns must not be free.
    return (this.#get<Record<string, number>>(LEASES)?.[process] ?? 0) > this.nowMs;
  };

  get isPersistent(): boolean {
    return this.#process.isPersistent;
  }

  /** Renews the leases of this process, and removes those that have expired. */
  renewLease(): void {
    const { isLeaseHeld, owners } = this.#process;
    if (isLeaseHeld) return;
    const known = this.#get<Record<string, number>>(LEASES) ?? {};
    const own = [...owners].map(([it, silentMs]) => [it, this.nowMs + LEASE_MS - silentMs] as const);
    // Not in each step: half of the time is enough.
    if (own.every(([it, untilMs]) => Math.abs(untilMs - (known[it] ?? 0)) < LEASE_MS / 2)) return;
    const alive = Object.entries(known).filter(([it]) => this.isAlive(it));
    this.#set(LEASES, Object.fromEntries([...alive, ...own]), LEASE_MS);
  }

  entry(id: string): CreateEntry | undefined {
    const stored = this.#valueOf(id);
    return stored && 'entry' in stored ? stored.entry : undefined;
  }

  usedKey(id: string): UsedKey | undefined {
    const stored = this.#valueOf(id);
    return stored && 'usedKey' in stored ? stored.usedKey : undefined;
  }

  /** Reads what is under a key. Of a completed job whose link has expired, only the key is known. */
  #valueOf(id: string): Stored | undefined {
    const key = createKey(id);
    if (!this.#values.has(key) && !this.#read.has(key)) throw new MissingKeys([key, indexKey(id)]);
    const stored = this.#get<Stored>(key);
    if (!stored || !('entry' in stored)) return stored;
    const { entry } = stored;
    return entry.phase === 'ended' && entry.retainUntilMs <= this.nowMs ? { usedKey: usedKeyOf(entry) } : stored;
  }

  put(id: string, entry: CreateEntry): void {
    const untilMs = entry.phase === 'ended' ? entry.retainUntilMs : this.nowMs + ENTRY_TTL_MS;
    const isEnded = entry.phase === 'ended';
    const ttlMs = untilMs - this.nowMs + (isEnded ? KEY_TTL_MS : 0);
    this.#set(createKey(id), { entry }, ttlMs);
    if (isEnded) this.#set(jobKey(entry.jobId), id, ttlMs);
    this.#list(id, untilMs);
  }

  /** Removes an entry. Its key stays known if `usedKey` says what it was used for. */
  remove(id: string, usedKey?: UsedKey): void {
    this.#set(createKey(id), usedKey && { usedKey }, KEY_TTL_MS);
    this.#list(id, undefined);
  }

  /** The index knows when each entry is over, so that it does not grow by entries that have expired. */
  #list(id: string, untilMs: number | undefined): void {
    const key = indexKey(id);
    const { [id]: listedMs, ...others } = this.#get<Record<string, number>>(key) ?? {};
    if (untilMs !== undefined && listedMs !== undefined && listedMs <= untilMs && untilMs - listedMs < KEY_TTL_MS)
      return;
    const current = Object.entries(others).filter(([, it]) => it > this.nowMs);
    const after = untilMs === undefined ? current : [...current, [id, untilMs] as const];
    this.#set(key, after.length > 0 ? Object.fromEntries(after) : undefined, ENTRY_TTL_MS);
  }

  ids(): string[] {
    return INDEX_KEYS.flatMap((key) => Object.keys(this.#get<Record<string, number>>(key) ?? {}));
  }

  budget(terms: Pick<BudgetTerms, 'scope' | 'per'>): BudgetState {
    return this.#get<BudgetState>(budgetKey(terms)) ?? EMPTY_BUDGET;
  }

  putBudget(terms: Pick<BudgetTerms, 'scope' | 'per'>, state: BudgetState): void {
    this.#set(budgetKey(terms), state, budgetTtlMs(terms.per));
  }

  /** Returns the ID of the entry that a job belongs to. */
  jobEntry(jobId: string): string | undefined {
    return this.#get<string>(jobKey(jobId));
  }

  putJob(jobId: string, id: string | undefined): void {
    this.#set(jobKey(jobId), id, ENTRY_TTL_MS);
  }

  price({ account, priceClass }: Pick<CreateEntry, 'account' | 'priceClass'>): number | undefined {
    return this.#get<Record<string, number>>(pricesKey(account))?.[priceClass];
  }

  learnPrice(of: Pick<CreateEntry, 'account' | 'priceClass'>, tokens: number): void {
    if (this.price(of) === tokens) return;
    const key = pricesKey(of.account);
    const { [of.priceClass]: _, ...others } = this.#get<Record<string, number>>(key) ?? {};
    const newest = Object.entries(others).slice(1 - MAX_PRICES);
    this.#set(key, { ...Object.fromEntries(newest), [of.priceClass]: tokens }, ENTRY_TTL_MS);
  }

  changes(): Record<string, { readonly value: string; readonly ttlMs: number } | null> {
    const changed = [...this.#ttlMs].flatMap(([key, ttlMs]) => {
      const value = this.#values.get(key);
      const text = value === undefined ? undefined : JSON.stringify(value);
      if (text === this.#stored[key] && this.#read.has(key)) return [];
      return [[key, text === undefined ? null : { value: text, ttlMs }] as const];
    });
    return Object.fromEntries(changed);
  }

  #get<T>(key: string): T | undefined {
    if (this.#values.has(key)) return this.#values.get(key) as T | undefined;
    if (!this.#read.has(key)) throw new MissingKeys([key]);
    const text = this.#stored[key];
    const value: T | undefined = text === undefined ? undefined : JSON.parse(text);
    this.#values.set(key, value);
    return value;
  }

  #set(key: string, value: unknown, ttlMs: number): void {
    this.#values.set(key, value);
    this.#ttlMs.set(key, ttlMs);
  }
}

/** Returns what stays of an entry that is over. */
export function usedKeyOf(entry: CreateEntry): UsedKey {
  const { digest, sentKey, earlierJobs } = entry;
  const jobId = entryJobId(entry);
  const jobs = earlierJobs && jobId !== undefined ? { ...earlierJobs, [sentKey]: jobId } : earlierJobs;
  return { jobId, digest, earlierJobs: jobs };
}
