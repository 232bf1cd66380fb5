import { DAY_MS } from '../rules/limits.js';
import { expectedMs, type Lengths, lengthClassOf, withLength } from '../rules/read-order.js';
import type { Clock } from '../runtime/clock.js';
import { keepLast } from '../runtime/keep-last.js';
import type { PricedCall } from '../schemas/budget.js';
import { type StoredValues, type StoreGroup, updateGroup } from './store.js';

/** Facts that are remembered. The oldest are forgotten first. */
const MOST_FACTS = 1_000;
/** Facts are shared at most this often. */
const FACTS_PAUSE_MS = 1_000;
/** What other processes have learned is read again after this time, when a fact is asked for that is known, or is not. */
const STALE_MS = { known: 5 * 60_000, unknown: 15_000 } as const;
/** Facts that nobody has added to for so long are forgotten. */
const FACTS_KEPT_MS = 30 * DAY_MS;
const FACTS_KEY = 'facts';

type Change<V> = (known: V | undefined) => V;

/**
 * Facts of one kind that an account learns, by name: prices, for example. They are in the memory of this process, and in a
 * shared store once there is one. Nothing waits for the store: it is read and written in the background, and may fail.
 */
export class Facts<V> {
  readonly #known = new Map<string, V>();
  readonly #changes: [name: string, change: Change<V>][] = [];
  #group: StoreGroup | undefined;
  #isSyncing = false;
  #timer: (() => void) | undefined;
  #readMs = Number.NEGATIVE_INFINITY;
  #writtenMs = Number.NEGATIVE_INFINITY;

  /** Shares the facts with the other processes that use the group. */
  share(group: StoreGroup): void {
    if (this.#group?.store === group.store) return;
    this.#group = group;
    void this.#sync();
  }

  get(name: string): V | undefined {
    const staleMs = this.#known.has(name) ? STALE_MS.known : STALE_MS.unknown;
    if (this.#group && this.#group.clock.now() - this.#readMs > staleMs) void this.#sync();
    return this.#known.get(name);
  }

  /** Learns a fact. `change` may run again, on what other processes have learned. */
  learn(name: string, change: Change<V>): void {
    const before = this.#known.get(name);
    const after = change(before);
    keepLast(this.#known, name, after, MOST_FACTS);
    if (!this.#group || before === after) return;
    this.#changes.push([name, change]);
    this.#syncSoon(this.#group.clock);
  }

  #syncSoon(clock: Clock): void {
    const waitMs = this.#writtenMs + FACTS_PAUSE_MS - clock.now();
    // Where timers belong to requests, the fact is shared with the next one.
    if (waitMs <= 0) void this.#sync();
    else if (!clock.perRequest) this.#timer ??= clock.after(waitMs, () => void this.#sync());
  }

  async #sync(): Promise<void> {
    const group = this.#group;
    if (!group || this.#isSyncing) return;
    this.#isSyncing = true;
    this.#timer?.();
    this.#timer = undefined;
    this.#readMs = group.clock.now();
    const changes = [...this.#changes];
    if (changes.length > 0) this.#writtenMs = this.#readMs;
    try {
      const facts = await updateGroup(group, [FACTS_KEY], (seen) => withChanges(seen, changes));
      this.#changes.splice(0, changes.length);
      for (const [name, value] of facts) keepLast(this.#known, name, value, MOST_FACTS);
    } catch {
      // Tried again with the next fact.
      this.#changes.splice(0, Math.max(0, this.#changes.length - MOST_FACTS));
      this.#isSyncing = false;
      return;
    }
    this.#isSyncing = false;
    if (this.#changes.length > 0) this.#syncSoon(group.clock);
  }
}

function withChanges<V>({ values }: StoredValues, changes: readonly (readonly [string, Change<V>])[]) {
  const facts = new Map<string, V>(Object.entries(JSON.parse(values[FACTS_KEY] ?? '{}')));
  for (const [name, change] of changes) keepLast(facts, name, change(facts.get(name)), MOST_FACTS);
  const value = JSON.stringify(Object.fromEntries(facts));
  const isNew = changes.length > 0 && value !== values[FACTS_KEY];
  return { changes: isNew ? { [FACTS_KEY]: { value, ttlMs: FACTS_KEPT_MS } } : {}, result: facts };
}

/** Jobs whose kind is remembered from their create until somebody waits for them. */
const REMEMBERED_JOBS = 1_000;

/** How long the jobs of an account take, by class. All its clients in this process share it. */
export class JobLengths {
  readonly #classes = new Facts<Lengths>();
  readonly #jobs = new Map<string, PricedCall>();

  /** Shares them with the other processes that use the group. */
  share(group: StoreGroup): void {
    this.#classes.share(group);
  }

  created(jobId: string, call: PricedCall): void {
    keepLast(this.#jobs, jobId, call, REMEMBERED_JOBS);
  }

  classOf(jobId: string): string | undefined {
    const call = this.#jobs.get(jobId);
    return call && lengthClassOf(call);
  }

  /** A job of a class has completed after `ms` milliseconds. */
  learn(lengthClass: string, ms: number): void {
    this.#classes.learn(lengthClass, (lengths) => withLength(lengths ?? [], ms));
  }

  /** How long a job of a class will take, in milliseconds; undefined while none has completed. */
  expectedMs(lengthClass: string): number | undefined {
    const lengths = this.#classes.get(lengthClass);
    return lengths && expectedMs(lengths);
  }
}
