// The entries of the ledger, and its values in a store: read for a step, changed by its rules, and written in one swap. Pure.
import type { JobCall } from '../schemas/job.js';
import { type BudgetState, type BudgetTerms, budgetName, EMPTY_BUDGET, type ExpectedPrice, keptMs } from './budget.js';
import { DAY_MS } from './limits.js';
import type { JobRunState, RunRules } from './run-state.js';

/**
 * How far a create has come. `open`: noted, and not sent. `sent`: it may have made a job. `accepted`: it has a job. `ended`:
 * its job is final. An entry that made no job, or has done its work, is gone.
 */
export type CreatePhase = 'open' | 'sent' | 'accepted' | 'ended';

export interface CountedBudget extends BudgetTerms {
  /** The start of the period in which the create was accepted. */
  readonly startMs?: number;
}

/** What has become of a create. Its key is the idempotency key of the first create of its run. */
export interface CreateEntry extends ExpectedPrice {
  readonly key: string;
  readonly account: string;
  readonly call: JobCall;
  /** The body, with upload ids in the place of files; null until its files are uploaded. */
  readonly params: Readonly<Record<string, unknown>> | null;
  readonly atMs: number;
  readonly label?: string | undefined;
  readonly phase: CreatePhase;
  /** The key that is sent now: that of the entry, or one that the run has derived from it. */
  readonly sentKey: string;
  /** The calls that work on it: the process, and a number. */
  readonly holders: readonly string[];
  /** Whether an answer was lost, so that a job may exist. */
  readonly isLost?: true;
  /** Whether it counts in no budget now: its run pauses before it asks again. */
  readonly isAside?: true;
  /** Whether a read has shown the end of its job, with the charge. */
  readonly isCharged?: true;
  /** Whether its file is stored, so that only its budgets wait for the charge. */
  readonly isStored?: true;
  readonly budgets: readonly CountedBudget[];
  /** Since when it is reserved, by the store's time. */
  readonly sinceMs?: number;
  readonly priceClass: string;
  /** Whether the class says what the create costs. */
  readonly teaches: boolean;
  /** Tells params that differ. */
  readonly digest?: string | undefined;
  /** Whether the entry stays until its file is stored, because it outlives the process. */
  readonly keeps: boolean;
  /** How `createAndWait` goes on; null for a create that is not waited for. */
  readonly rules: RunRules | null;
  /** Where the run stands, once its first job is over. */
  readonly run?: JobRunState;
  readonly jobId?: string;
  readonly status?: string;
  /** The earlier jobs of its run, by the key that was sent. */
  readonly tries?: Readonly<Record<string, string>>;
}

/** What is kept of an entry that has done its work, so that its key is known. */
export interface DoneEntry {
  readonly jobId?: string | undefined;
  readonly digest?: string | undefined;
  /** All jobs of its run, where there is more than one. */
  readonly tries?: Readonly<Record<string, string>> | undefined;
}

/** A process counts as alive for so long after it has last said so. */
export const HOLD_MS = 30_000;
/** How long the key of a create is known after its entry is gone. */
const DONE_KEPT_MS = 7 * DAY_MS;
/** How long an entry is kept that nobody takes up. */
const ENTRY_KEPT_MS = 70 * DAY_MS;

export function entryId(account: string, key: string): string {
  return `${account}/${key}`;
}

export function processOf(holder: string): string {
  return holder.slice(0, holder.lastIndexOf('#'));
}

/** The index of the entries is split, so that a step writes little of it. */
const INDEX_PARTS = 1024;
const MOST_PRICES = 250;
const HOLDERS = 'holders';

export const INDEX_KEYS: readonly string[] = Array.from({ length: INDEX_PARTS }, (_, part) => `index/${part}`);

export const createKey = (id: string): string => `create/${id}`;

const pricesKey = (account: string): string => `prices/${account}`;

const budgetKey = (terms: Pick<BudgetTerms, 'scope' | 'per'>): string => `budget/${budgetName(terms)}`;

function indexKey(id: string): string {
  let hash = 0;
  for (let at = 0; at < id.length; at++) hash = (Math.imul(hash, 31) + id.charCodeAt(at)) | 0;
  return `index/${Math.abs(hash) % INDEX_PARTS}`;
}

/** The values that decide about a create. */
export function keysOf(id: string, { account, budgets }: Pick<CreateEntry, 'account' | 'budgets'>): string[] {
  return [createKey(id), indexKey(id), pricesKey(account), ...budgets.map(budgetKey)];
}

/** Thrown by a rule that needs a value which was not read: it is read with the others, and the step is made again. */
export class Unread {
  readonly key: string;
  constructor(key: string) {
    this.key = key;
  }
}

export interface LedgerProcess {
  readonly id: string;
  /** For a store with leases: returns true while a process holds the lease of that name. */
  readonly isLeaseHeld: ((name: string) => boolean) | undefined;
  /** The calls that were under way when the process had not said in time that it lives. */
  readonly lapsed: ReadonlySet<string>;
  /** Who has calls under way: the process, or on Workers each call. And for how many milliseconds it has said nothing. */
  readonly holders: ReadonlyMap<string, number>;
}

type Stored = { readonly entry: CreateEntry } | { readonly done: DoneEntry };

/** The ledger as a rule reads and changes it. */
export class LedgerDraft {
  readonly nowMs: number;
  readonly #read: Pick<ReadonlySet<string>, 'has'>;
  readonly #seen: Readonly<Record<string, string>>;
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
    this.#seen = values;
    this.#process = process;
  }

  isOwn = (holder: string): boolean => {
    const process = holder.includes('#') ? processOf(holder) : holder;
    return process === this.#process.id || this.#process.holders.has(process);
  };

  isAlive = (holder: string): boolean => {
    const process = holder.includes('#') ? processOf(holder) : holder;
    const { isLeaseHeld } = this.#process;
    if (this.isOwn(holder)) return true;
    if (isLeaseHeld) return isLeaseHeld(process.slice(0, process.indexOf('/')));
    const untilMs = this.#get<Record<string, number>>(HOLDERS)?.[process] ?? 0;
    // One that was said before the clock was set back counts for longer: what a living process holds must not be free.
    return untilMs > this.nowMs;
  };

  /** Whether the process has counted as alive ever since the call began, so that nobody has had what it holds. */
  isHeld(call: string): boolean {
    return !this.#process.lapsed.has(call);
  }

  /** Whether the others take a process for dead. */
  hasLapsed(process: string): boolean {
    return (
      this.#process.isLeaseHeld === undefined &&
      (this.#get<Record<string, number>>(HOLDERS)?.[process] ?? 0) <= this.nowMs
    );
  }

  /** The process says that it lives, and that those which have not said so are gone. */
  hold(): void {
    const { isLeaseHeld, holders } = this.#process;
    if (isLeaseHeld) return;
    const known = this.#get<Record<string, number>>(HOLDERS) ?? {};
    const own = [...holders].map(([it, silentMs]) => [it, this.nowMs + HOLD_MS - silentMs] as const);
    // Not at each step: half of the time is enough.
    if (own.every(([it, untilMs]) => Math.abs(untilMs - (known[it] ?? 0)) < HOLD_MS / 2)) return;
    const alive = Object.entries(known).filter(([it]) => this.isAlive(it));
    this.#set(HOLDERS, Object.fromEntries([...alive, ...own]), HOLD_MS);
  }

  entry(id: string): CreateEntry | undefined {
    const stored = this.#get<Stored>(createKey(id));
    return stored && 'entry' in stored ? stored.entry : undefined;
  }

  done(id: string): DoneEntry | undefined {
    const stored = this.#get<Stored>(createKey(id));
    return stored && 'done' in stored ? stored.done : undefined;
  }

  /** Undefined removes the entry. */
  put(id: string, entry: CreateEntry | undefined, done?: DoneEntry): void {
    const wasListed = this.entry(id) !== undefined;
    if (entry) this.#set(createKey(id), { entry }, ENTRY_KEPT_MS);
    else if (done) this.#set(createKey(id), { done }, DONE_KEPT_MS);
    else this.#set(createKey(id), undefined, 0);
    if (wasListed !== (entry !== undefined)) this.#list(id, entry !== undefined);
  }

  #list(id: string, isListed: boolean): void {
    const key = indexKey(id);
    const ids = (this.#get<string[]>(key) ?? []).filter((it) => it !== id);
    const after = isListed ? [...ids, id] : ids;
    this.#set(key, after.length > 0 ? after : undefined, ENTRY_KEPT_MS);
  }

  budget(name: string): BudgetState {
    return this.#get<BudgetState>(`budget/${name}`) ?? EMPTY_BUDGET;
  }

  putBudget(terms: BudgetTerms, state: BudgetState): void {
    this.#set(budgetKey(terms), state, keptMs(terms.per));
  }

  jobEntry(jobId: string): string | undefined {
    return this.#get<string>(`job/${jobId}`);
  }

  putJob(jobId: string, id: string | undefined): void {
    this.#set(`job/${jobId}`, id, ENTRY_KEPT_MS);
  }

  price({ account, priceClass }: Pick<CreateEntry, 'account' | 'priceClass'>): number | undefined {
    return this.#get<Record<string, number>>(pricesKey(account))?.[priceClass];
  }

  learnPrice(of: Pick<CreateEntry, 'account' | 'priceClass'>, tokens: number): void {
    if (this.price(of) === tokens) return;
    const key = pricesKey(of.account);
    const { [of.priceClass]: _, ...others } = this.#get<Record<string, number>>(key) ?? {};
    const kept = Object.entries(others).slice(1 - MOST_PRICES);
    this.#set(key, { ...Object.fromEntries(kept), [of.priceClass]: tokens }, ENTRY_KEPT_MS);
  }

  ids(): string[] {
    return INDEX_KEYS.flatMap((key) => this.#get<string[]>(key) ?? []);
  }

  changes(): Record<string, { readonly value: string; readonly ttlMs: number } | null> {
    const changed = [...this.#ttlMs].flatMap(([key, ttlMs]) => {
      const value = this.#values.get(key);
      const text = value === undefined ? undefined : JSON.stringify(value);
      if (text === this.#seen[key] && this.#read.has(key)) return [];
      return [[key, text === undefined ? null : { value: text, ttlMs }] as const];
    });
    return Object.fromEntries(changed);
  }

  #get<T>(key: string): T | undefined {
    if (this.#values.has(key)) return this.#values.get(key) as T | undefined;
    if (!this.#read.has(key)) throw new Unread(key);
    const text = this.#seen[key];
    const value: T | undefined = text === undefined ? undefined : JSON.parse(text);
    this.#values.set(key, value);
    return value;
  }

  #set(key: string, value: unknown, ttlMs: number): void {
    this.#values.set(key, value);
    this.#ttlMs.set(key, ttlMs);
  }
}
