// A ledger transaction: rules read and change its copy of stored values, and the caller writes the changes in one swap.
// Pure.
import { type BudgetState, type BudgetTerms, budgetName, budgetTtlMs, EMPTY_BUDGET } from './budget.js';
import { type CreateEntry, ENTRY_TTL_MS, entryJobId, KEY_TTL_MS, processOf, type UsedKey } from './create-entry.js';

/** How long a process counts as alive after it last renewed its lease. Doesn't apply to operating-system leases. */
export const LEASE_MS = 30_000;

/** The index of entries is split into parts, so that a transaction writes only a small part. */
const INDEX_PARTS = 1024;
const MAX_PRICES = 250;
const LEASES = 'leases';

export const INDEX_KEYS: readonly string[] = Array.from({ length: INDEX_PARTS }, (_, part) => `index/${part}`);

/** Keys that every transaction reads. */
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

/** Returns the keys that a transaction on a create reads. */
export function keysOf(id: string, { account, budgets }: Pick<CreateEntry, 'account' | 'budgets'>): string[] {
  return [createKey(id), indexKey(id), pricesKey(account), ...budgets.map(budgetKey)];
}

/** Thrown if a rule needs values that were not read. The caller reads them and runs the rule again. */
export class MissingKeys {
  readonly keys: readonly string[];
  constructor(keys: readonly string[]) {
    this.keys = keys;
  }
}

export interface LedgerProcess {
  readonly id: string;
  readonly isPersistent: boolean;
  /** Returns true while a process has the lease. Only for a store with operating-system leases. */
  readonly isLeaseHeld: ((name: string) => boolean) | undefined;
  /** Milliseconds since the last renewal, by owner with calls in flight: the process or, on Workers, each call. */
  readonly owners: ReadonlyMap<string, number>;
}

type StoredValue = { readonly entry: CreateEntry } | { readonly usedKey: UsedKey };

/** Reads and changes the ledger for a rule. */
export class LedgerTransaction {
  readonly nowMs: number;
  readonly #read: Pick<ReadonlySet<string>, 'has'>;
  readonly #stored: Readonly<Record<string, string>>;
  readonly #process: LedgerProcess;
  readonly #values = new Map<string, unknown>();
  readonly #ttlMs = new Map<string, number>();

  /** `readKeys` are the keys that were read, including those without a value. */
  constructor(
    readKeys: Pick<ReadonlySet<string>, 'has'>,
    { nowMs, values }: { readonly nowMs: number; readonly values: Readonly<Record<string, string>> },
    process: LedgerProcess,
  ) {
    this.nowMs = nowMs;
    this.#read = readKeys;
    this.#stored = values;
    this.#process = process;
  }

  /** Returns true for this process, and for its calls. */
  isOwn = (owner: string): boolean => {
    const process = processOf(owner);
    return process === this.#process.id || this.#process.owners.has(process);
  };

  isAlive = (owner: string): boolean => {
    if (this.isOwn(owner)) return true;
    const process = processOf(owner);
    const { isLeaseHeld } = this.#process;
    if (isLeaseHeld) return isLeaseHeld(process.slice(0, process.indexOf('/')));
    // If the clock is set back, leases last longer, so that a live process doesn't lose its entries.
    return (this.#get<Record<string, number>>(LEASES)?.[process] ?? 0) > this.nowMs;
  };

  get isPersistent(): boolean {
    return this.#process.isPersistent;
  }

  /** Renews this process's leases, and removes expired ones. */
  renewLease(): void {
    const { isLeaseHeld, owners } = this.#process;
    if (isLeaseHeld) return;
    const leases = this.#get<Record<string, number>>(LEASES) ?? {};
    const renewedLeases = [...owners].map(([it, silentMs]) => [it, this.nowMs + LEASE_MS - silentMs] as const);
    // To save writes, a lease is renewed only after half of its duration.
    if (renewedLeases.every(([it, untilMs]) => Math.abs(untilMs - (leases[it] ?? 0)) < LEASE_MS / 2)) return;
    const liveLeases = Object.entries(leases).filter(([it]) => this.isAlive(it));
    this.#set(LEASES, Object.fromEntries([...liveLeases, ...renewedLeases]), LEASE_MS);
  }

  entry(id: string): CreateEntry | undefined {
    const stored = this.#valueOf(id);
    return stored && 'entry' in stored ? stored.entry : undefined;
  }

  usedKey(id: string): UsedKey | undefined {
    const stored = this.#valueOf(id);
    return stored && 'usedKey' in stored ? stored.usedKey : undefined;
  }

  /** Returns the stored value of a create, or only its used key after its file has expired. */
  #valueOf(id: string): StoredValue | undefined {
    const key = createKey(id);
    if (!this.#values.has(key) && !this.#read.has(key)) throw new MissingKeys([key, indexKey(id)]);
    const stored = this.#get<StoredValue>(key);
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
    // A completed job must be listed until its file expires.
    this.#list(id, untilMs, isEnded ? 0 : KEY_TTL_MS);
  }

  /** Removes an entry. Retains its key if `usedKey` is set. */
  remove(id: string, usedKey?: UsedKey): void {
    this.#set(createKey(id), usedKey && { usedKey }, KEY_TTL_MS);
    this.#list(id, undefined);
  }

  /**
   * Updates an entry's expiry in the index, unless the listed expiry is earlier by at most `slackMs`. Removes expired
   * entries, so that the index doesn't grow.
   */
  #list(id: string, untilMs: number | undefined, slackMs = 0): void {
    const key = indexKey(id);
    const { [id]: listedMs, ...others } = this.#get<Record<string, number>>(key) ?? {};
    if (untilMs !== undefined && listedMs !== undefined && listedMs <= untilMs && untilMs - listedMs <= slackMs) return;
    const expiredEntries = Object.entries(others).filter(([, it]) => it <= this.nowMs);
    this.#expire(expiredEntries.map(([it]) => it));
    const currentEntries = Object.entries(others).filter(([, it]) => it > this.nowMs);
    const newEntries = untilMs === undefined ? currentEntries : [...currentEntries, [id, untilMs] as const];
    this.#set(key, newEntries.length > 0 ? Object.fromEntries(newEntries) : undefined, ENTRY_TTL_MS);
  }

  /** For each job whose file has expired, replaces the entry with its used key. */
  #expire(ids: readonly string[]): void {
    const missing = ids.map(createKey).filter((it) => !this.#values.has(it) && !this.#read.has(it));
    if (missing.length > 0) throw new MissingKeys(missing);
    for (const id of ids) {
      const stored = this.#get<StoredValue>(createKey(id));
      if (!stored || !('entry' in stored) || stored.entry.phase !== 'ended') continue;
      this.#set(createKey(id), { usedKey: usedKeyOf(stored.entry) }, KEY_TTL_MS);
      this.putJob(stored.entry.jobId, undefined);
    }
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

  learnPrice(entry: Pick<CreateEntry, 'account' | 'priceClass'>, tokens: number): void {
    if (this.price(entry) === tokens) return;
    const key = pricesKey(entry.account);
    const { [entry.priceClass]: _, ...others } = this.#get<Record<string, number>>(key) ?? {};
    const newest = Object.entries(others).slice(1 - MAX_PRICES);
    this.#set(key, { ...Object.fromEntries(newest), [entry.priceClass]: tokens }, ENTRY_TTL_MS);
  }

  changes(): Record<string, { readonly value: string; readonly ttlMs: number } | null> {
    const changedEntries = [...this.#ttlMs].flatMap(([key, ttlMs]) => {
      const value = this.#values.get(key);
      const json = value === undefined ? undefined : JSON.stringify(value);
      if (json === this.#stored[key] && this.#read.has(key)) return [];
      return [[key, json === undefined ? null : { value: json, ttlMs }] as const];
    });
    return Object.fromEntries(changedEntries);
  }

  #get<T>(key: string): T | undefined {
    if (this.#values.has(key)) return this.#values.get(key) as T | undefined;
    if (!this.#read.has(key)) throw new MissingKeys([key]);
    const json = this.#stored[key];
    const value: T | undefined = json === undefined ? undefined : JSON.parse(json);
    this.#values.set(key, value);
    return value;
  }

  #set(key: string, value: unknown, ttlMs: number): void {
    this.#values.set(key, value);
    this.#ttlMs.set(key, ttlMs);
  }
}

/** Returns the part of a closed entry that is retained. */
export function usedKeyOf(entry: CreateEntry): UsedKey {
  const { digest, sentKey, earlierJobs } = entry;
  const jobId = entryJobId(entry);
  const jobs = earlierJobs && jobId !== undefined ? { ...earlierJobs, [sentKey]: jobId } : earlierJobs;
  return { jobId, digest, earlierJobs: jobs };
}
