// Holds the one piece of mutable module state there is: a limit is the account's, not a client's, so every client of an
// account must count together, also when the ESM and the CommonJS copy of this package are both loaded.
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import type { LaneLimit } from '../rules/limits.js';
import { type Places, takePlace } from '../rules/places.js';
import type { Lengths } from '../rules/read-order.js';
import { type Clock, type Random, randomOf, systemClock, systemRandom, wallOf } from '../runtime/clock.js';
import { Facts } from './facts.js';
import { InProcessLimiter, type LanePool } from './in-process-limiter.js';
import type { AnyLimiter } from './rate-limiter.js';
import { SharedLimiter } from './shared-limiter.js';
import { memoryStoreOn, type Store, type StoredValues, updateGroup } from './store.js';

/** What every client of one account (base URL and key) in this process shares, whichever copy of the package made it. */
export interface ClientAccount {
  /** Names the account in a store: by the store's own name for it, else by base URL and key. It does not tell the key. */
  idIn(store: Store | undefined): string;
  /** The limiter of the account's lanes, the same for all clients with the same settings. */
  limiterFor(settings: LimitSettings): AnyLimiter;
  /** What its clients learn from the service. It is shared with other processes where a client has a shared store. */
  readonly facts: AccountFacts;
  /** The one thing of this name for the account, made on first use: the poll scheduler, for example. */
  shared<T extends object>(name: string, make: () => T): T;
  /** Whether something of it is in use, which keeps it. */
  readonly busy: boolean;
  /** The one thing of this name for all accounts of the process. */
  ofProcess<T extends object>(name: string, make: () => T): T;
}

/** What the clients of an account learn. */
export interface AccountFacts {
  /** Tokens by price class. */
  readonly prices: Facts<number>;
  /** How long jobs took, by class. */
  readonly lengths: Facts<Lengths>;
}

/** How a client keeps the limits of its account. */
export interface LimitSettings {
  /** Where the limits are shared with other processes. @default they are kept in this process */
  readonly store?: Store | undefined;
  /** Limits by lane, in place of the documented ones of the same lane. */
  readonly limits?: Readonly<Record<string, LaneLimit>> | undefined;
  readonly onUnavailable?: 'local' | 'throw' | undefined;
  /** Writes to the client's logger. */
  readonly warn: (message: string) => void;
}

interface Registry {
  /** Never leaves the process, so that the ids below cannot be used to test a guessed key. */
  readonly salt: string;
  /** Accounts in use, and those that were used last. */
  readonly accounts: Map<string, ClientAccount>;
  /** All other accounts that a client still holds. */
  readonly held: Map<string, WeakRef<ClientAccount>>;
  /** What all accounts share, by name. */
  readonly things: Map<string, object>;
  pruneAt: number;
}

/** Copies of the package that share the symbol must agree on what is behind it. */
const REGISTRY = Symbol.for('gen-client.accounts');
/** The accounts of clients with a clock of their own, such as a sandbox's: they cannot count together with the others. */
const OF_CLOCKS = new WeakMap<Clock, Registry>();
/** A service for many tenants may use any number of keys. Idle accounts beyond this are kept only while a client holds them. */
const KEPT_ACCOUNTS = 1000;

/**
 * The account behind a base URL and key: the same object for all who ask in this process. With a rotated key the account
 * of the `previous` key goes on, so that its limits are not counted afresh, and the old key is forgotten.
 */
export function accountFor(
  baseUrl: string,
  apiKey: string,
  previous?: { readonly account: ClientAccount; readonly apiKey: string },
  options: { readonly clock?: Clock } = {},
): ClientAccount {
  const { clock = systemClock } = options;
  const registry = registryOf(wallOf(clock));
  const { accounts, held } = registry;
  const idOf = (key: string) => bytesToHex(sha256(utf8ToBytes(`${registry.salt}\n${baseUrl}\n${key}`)));
  const id = idOf(apiKey);
  const account =
    accounts.get(id) ?? held.get(id)?.deref() ?? previous?.account ?? createAccount(baseUrl, apiKey, clock, registry);
  if (previous?.account === account) {
    accounts.delete(idOf(previous.apiKey));
    held.delete(idOf(previous.apiKey));
  }
  held.delete(id);
  // Taken out and put back at the end: the least recently used come first.
  accounts.delete(id);
  accounts.set(id, account);
  if (accounts.size > registry.pruneAt) prune(registry);
  return account;
}

/** Half a hash is enough to tell accounts apart. */
const ID_LENGTH = 32;

/** The same in every process. Of a key that nobody could guess it tells nothing. */
function accountHash(...parts: readonly string[]): string {
  return bytesToHex(sha256(utf8ToBytes(['gen-client', ...parts].join('\n')))).slice(0, ID_LENGTH);
}

function prune(registry: Registry): void {
  const { accounts, held } = registry;
  for (const [id, account] of accounts) {
    if (accounts.size <= KEPT_ACCOUNTS / 2) break;
    if (account.busy) continue;
    accounts.delete(id);
    held.set(id, new WeakRef(account));
  }
  for (const [id, account] of held) if (account.deref() === undefined) held.delete(id);
  // Looking again only after as many more keeps the cost of a new account constant on average.
  registry.pruneAt = accounts.size + KEPT_ACCOUNTS / 2;
}

function createAccount(baseUrl: string, apiKey: string, clock: Clock, registry: Registry): ClientAccount {
  const id = accountHash(baseUrl, apiKey);
  const idIn = (store: Store | undefined) =>
    store?.account === undefined ? id : accountHash(baseUrl, 'account', store.account);
  /** Each may say that it is in use. */
  const things = new Map<string, object & { readonly busy?: boolean }>();
  const pool: LanePool = new Map();
  const facts: AccountFacts = { prices: new Facts(), lengths: new Facts() };
  return {
    idIn,
    facts,
    limiterFor: limitersOf({ idIn, clock, pool, facts }),
    get busy() {
      const lanes = [...pool.values()].map((lane) => lane.snapshot());
      return (
        lanes.some((lane) => lane.inUse + lane.queued + lane.nextFreeMs > 0) ||
        [...things.values()].some((thing) => thing.busy)
      );
    },
    shared<T extends object>(name: string, make: () => T): T {
      const made = things.get(name) ?? make();
      things.set(name, made);
      return made as T;
    },
    ofProcess<T extends object>(name: string, make: () => T): T {
      const made = registry.things.get(name) ?? make();
      registry.things.set(name, made);
      return made as T;
    },
  };
}

interface LimitersOf extends Pick<ClientAccount, 'idIn'> {
  readonly clock: Clock;
  readonly pool: LanePool;
  readonly facts: AccountFacts;
}

/** Makes each limiter once: clients with the same settings use the same one. */
function limitersOf({ idIn, clock, pool, facts }: LimitersOf): ClientAccount['limiterFor'] {
  const random = randomOf(clock);
  const inProcess = new Map<string, AnyLimiter>();
  const inStores = new WeakMap<Store, Map<string, SharedLimiter>>();
  return ({ store, limits, onUnavailable = 'local', warn }) => {
    const settings = JSON.stringify([onUnavailable, Object.entries(limits ?? {})]);
    if (store === undefined) {
      const limiter = inProcess.get(settings) ?? new InProcessLimiter({ limits }, clock, { pool, random });
      inProcess.set(settings, limiter);
      return limiter;
    }
    const account = idIn(store);
    for (const [name, learned] of Object.entries(facts))
      learned.share({ store, group: `${account}/${name}`, clock, random });
    const inStore = inStores.get(store) ?? new Map<string, SharedLimiter>();
    inStores.set(store, inStore);
    const limiter =
      inStore.get(settings) ?? new SharedLimiter({ store, account, limits, onUnavailable, clock, random, pool });
    inStore.set(settings, limiter);
    return limiter.for(warn);
  };
}

/** The registry of the process, or of a clock of one's own. */
function registryOf(clock: Clock): Registry {
  const home: typeof globalThis & { [REGISTRY]?: Registry } = globalThis;
  const known = clock === systemClock ? home[REGISTRY] : OF_CLOCKS.get(clock);
  if (known) return known;
  const accounts = new Map<string, ClientAccount>();
  const made = { salt: systemRandom.uuid(), accounts, held: new Map(), things: new Map(), pruneAt: KEPT_ACCOUNTS };
  if (clock === systemClock) Object.defineProperty(home, REGISTRY, { value: made });
  else OF_CLOCKS.set(clock, made);
  return made;
}

/** Who asks for a place. */
export interface PlaceRequest {
  readonly lane: string;
  readonly limit: LaneLimit;
  /** The same place is given for the same key, however often it is asked for. */
  readonly key: string;
  /** The rate limit was full when the place had come: a new one is given, so many milliseconds from now or later. */
  readonly retryAfterMs?: number | undefined;
}

/** How long a place is kept for a run that comes late. */
const PLACE_KEPT_MS = 60 * 60 * 1000;
const LINE = 'line';

/**
 * The lines of the runs of one account. Runs of all processes get their places first come, first served, and are in no
 * process while they wait. Requests of one process follow each other, so that they do not compete for the store.
 */
export class AccountPlaces {
  readonly #idIn: ClientAccount['idIn'];
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #ownStore: Store;
  readonly #last = new WeakMap<Store, Promise<unknown>>();

  constructor({
    account,
    clock,
    random,
  }: { readonly account: ClientAccount; readonly clock: Clock; readonly random: Random }) {
    this.#idIn = account.idIn;
    this.#clock = clock;
    this.#random = random;
    this.#ownStore = memoryStoreOn(clock);
  }

  /** Milliseconds until the place of a run comes; 0 when it has come. Without a store, the line is that of this process. */
  async take(asked: PlaceRequest, store: Store = this.#ownStore): Promise<number> {
    // Where promises end with their request, no call may wait for another one.
    if (this.#clock.perRequest) return this.#ask(asked, store);
    const place = (this.#last.get(store) ?? Promise.resolve()).then(() => this.#ask(asked, store));
    this.#last.set(
      store,
      place.catch(() => {}),
    );
    return place;
  }

  #ask({ lane, limit, key, retryAfterMs }: PlaceRequest, store: Store): Promise<number> {
    const group = `places/${this.#idIn(store)}/${lane}`;
    const own = `run/${key}`;
    const where = { store, group, clock: this.#clock, random: this.#random };
    return updateGroup(where, [LINE, own], ({ nowMs, values }: StoredValues) => {
      const given = Number(values[own] ?? Number.NaN);
      // A run that was refused has had its place, whatever the clocks say.
      if (retryAfterMs === undefined && !Number.isNaN(given)) {
        return { changes: {}, result: Math.max(0, given - nowMs) };
      }
      const { atMs, places } = takePlace(parsedPlaces(values[LINE]), limit, nowMs + (retryAfterMs ?? 0));
      const ttlMs = atMs - nowMs + limit.windowMs + PLACE_KEPT_MS;
      const changes = { [LINE]: { value: JSON.stringify(places), ttlMs }, [own]: { value: String(atMs), ttlMs } };
      return { changes, result: atMs - nowMs };
    });
  }
}

function parsedPlaces(value: string | undefined): Places {
  const places: unknown = JSON.parse(value ?? '[]');
  return Array.isArray(places) ? places.map(Number) : [];
}
