import { type Clock, clockOf, randomOf, systemClock } from '../runtime/clock.js';
import { abortable, sleep } from '../runtime/deadline.js';
import { boundedStore, isInProcess, memoryStoreOn, type Store, updateGroup } from '../store/store.js';
import { addCreates, groupOf, JOB_KEYS, type JobCreate, jobGroupOf, readCreates } from './ledger.js';
import { type BudgetGroup, ScopeAccount } from './scope-account.js';

/** The wait after the first failure; each further one waits twice as long. */
const LOOK_RETRY_MS = 250;
const LOOK_TRIES = 9;
/** How long the answer of a create or a read waits for the store. */
const ANSWER_WAIT_MS = 1_500;
/** How long a look at a job may take. */
const LOOK_TIMEOUT_MS = 5_000;

/** The budgets of one store in this process. Whoever makes a budget of the same name shares its queue. */
class BudgetHome {
  readonly #store: Store;
  /** Whether budgets follow the clocks of their clients, because the store is in this process. */
  readonly #follows: boolean;
  readonly #accounts = new WeakMap<Clock, Map<string, ScopeAccount>>();
  /** Creates of jobs that the store does not have yet. */
  readonly #unnoted = new Map<string, readonly JobCreate[]>();

  constructor(store: Store) {
    this.#store = store;
    this.#follows = isInProcess(store);
  }

  /** Waits for work of the store a moment. What takes longer goes on by itself. */
  async soon(work: Promise<unknown>, clock: Clock): Promise<void> {
    const limit = new AbortController();
    const late = sleep(this.#timeOf(clock), ANSWER_WAIT_MS, limit.signal).catch(() => {});
    await Promise.race([work, late]);
    limit.abort();
  }

  /** The budget of a name. */
  account(name: string, clock: Clock): ScopeAccount {
    const make = (onIdle: () => void) =>
      new ScopeAccount({ group: this.#group(groupOf(name), clock), clock: this.#timeOf(clock), onIdle });
    // On Workers a call must not wait for what another request does.
    if (clock.perRequest) return make(() => {});
    const accounts = this.#accounts.get(clock) ?? new Map<string, ScopeAccount>();
    this.#accounts.set(clock, accounts);
    const account = accounts.get(name) ?? make(() => accounts.delete(name));
    accounts.set(name, account);
    return account;
  }

  /** Writes down which budgets have counted a job, so that any process can give its tokens back. */
  async note(jobId: string, create: JobCreate, clock: Clock): Promise<void> {
    const creates = [...(this.#unnoted.get(jobId) ?? []), create];
    this.#unnoted.set(jobId, creates);
    const isNoted = await this.#persistently(clock, async (signal) => {
      await this.#group(jobGroupOf(jobId), clock).update(JOB_KEYS, (seen) => addCreates(seen, creates), signal);
      return true;
    });
    if (isNoted && this.#unnoted.get(jobId) === creates) this.#unnoted.delete(jobId);
  }

  /** The service says what a job was charged: every budget that has counted it is corrected. */
  async charge(jobId: string, tokens: number, clock: Clock): Promise<void> {
    const noted = await this.#persistently(clock, async () =>
      readCreates(await boundedStore(this.#store, this.#timeOf(clock)).read(jobGroupOf(jobId), JOB_KEYS)),
    );
    const creates = new Map<string, JobCreate>();
    for (const create of [...(noted ?? []), ...(this.#unnoted.get(jobId) ?? [])]) {
      creates.set(JSON.stringify(create), create);
    }
    const charges = [...creates.values()].map(([name, key, per]) =>
      // Only the period counts: the limit of the budget decides nothing here.
      this.account(name, clock).change({ scope: { maxTokens: 0, per }, step: { op: 'charge', key, jobId, tokens } }),
    );
    await Promise.all(charges);
  }

  /** A sandbox may hold the clock of its client, or make it fast. A store outside of this process has real time. */
  #timeOf(clock: Clock): Clock {
    return this.#follows ? clock : clockOf(this.#store);
  }

  /** A group of the store, for updates. */
  #group(group: string, clock: Clock): BudgetGroup {
    const store = this.#store;
    const at = { store, group, clock: this.#timeOf(clock), random: randomOf(clock) };
    if (!this.#follows) return { update: (keys, rule, signal) => updateGroup(at, keys, rule, signal) };
    return {
      // Nothing to wait for: a held clock would hold up the next look.
      async update(keys, rule, signal) {
        for (;;) {
          signal?.throwIfAborted();
          const seen = { ...(await store.read(group, keys)), nowMs: clock.now() };
          const { changes, result } = rule(seen);
          if (Object.keys(changes).length === 0 || (await store.write(group, seen.version, changes))) return result;
        }
      },
    };
  }

  /** Repeats what the store fails. Undefined after the last try. */
  async #persistently<T>(given: Clock, work: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    const clock = this.#timeOf(given);
    for (let tries = 0; tries < LOOK_TRIES; tries++) {
      if (tries > 0) await sleep(clock, LOOK_RETRY_MS * 2 ** (tries - 1));
      const limit = new AbortController();
      const stop = clock.after(LOOK_TIMEOUT_MS, () => limit.abort());
      try {
        return await abortable(work(limit.signal), limit.signal);
      } catch {
        // Tried again.
      } finally {
        stop();
      }
    }
    return undefined;
  }
}

const HOMES = new WeakMap<Store, BudgetHome>();
const STORES = new WeakMap<Clock, Store>();

/** The budgets of a store. */
export function homeOf(store: Store): BudgetHome {
  const home = HOMES.get(store) ?? new BudgetHome(store);
  HOMES.set(store, home);
  return home;
}

/** The process's own store for budgets that have a name and no store. A clock that a sandbox holds has its own. */
export function processStore(clock: Clock): Store {
  const store = STORES.get(clock) ?? memoryStoreOn(systemClock);
  STORES.set(clock, store);
  return store;
}
