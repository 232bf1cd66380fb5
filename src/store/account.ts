// Holds the one piece of mutable module state there is: a limit is the account's, not a client's, so every client of an
// account must count together, also when the ESM and the CommonJS copy of this package are both loaded.
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { type Clock, randomOf, systemClock, systemRandom, wallOf } from '../runtime/clock.js';
import { JobDurations, LearnedValues } from './learned-values.js';
import type { RateLimitBackend } from './rate-limit-backend.js';
import { type Limits, RateLimits } from './rate-limits.js';
import type { Store } from './store.js';

/** What every client of one account (base URL and key) in this process shares, whichever copy of the package made it. */
export interface ClientAccount {
  /** Names the account in a store. It does not tell the key. */
  readonly id: string;
  /** The account's rate limits, the same for all clients with the same settings. */
  limitsFor(settings: LimitSettings): RateLimits;
  /** What its clients in this process learn from the service. */
  readonly learned: { readonly prices: LearnedValues<number>; readonly durations: JobDurations };
  /** The one thing of this name for the account, made on first use: the poll scheduler, for example. */
  shared<T extends object>(name: string, make: () => T): T;
  /** Whether something of it is in use, which keeps it. */
  readonly busy: boolean;
  /** The one thing of this name for all accounts of the process. */
  ofProcess<T extends object>(name: string, make: () => T): T;
}

/** How a client keeps the limits of its account. */
export interface LimitSettings {
  /** Where the limits are shared with other processes. @default they are kept in this process */
  readonly store?: Store | undefined;
  /** Limits by name, in place of the documented ones of the same name. */
  readonly limits?: Limits | undefined;
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

/** The account behind a base URL and a key, or a base URL and a name: the same object for all who ask in this process. */
export function accountFor(
  baseUrl: string,
  key: string,
  { name, clock = systemClock }: { readonly name?: string | undefined; readonly clock?: Clock } = {},
): ClientAccount {
  const registry = registryOf(wallOf(clock));
  const { accounts, held } = registry;
  const who = name === undefined ? [key] : ['account', name];
  const id = bytesToHex(sha256(utf8ToBytes([registry.salt, baseUrl, ...who].join('\n'))));
  const account =
    accounts.get(id) ?? held.get(id)?.deref() ?? createAccount(accountHash(baseUrl, ...who), clock, registry);
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

function createAccount(id: string, clock: Clock, registry: Registry): ClientAccount {
  /** Each may say that it is in use. */
  const things = new Map<string, object & { readonly busy?: boolean }>();
  const made = new Set<RateLimits>();
  return {
    id,
    learned: { prices: new LearnedValues(), durations: new JobDurations() },
    limitsFor: limitsOf({ id, clock, made }),
    get busy() {
      return [...made, ...things.values()].some((thing) => thing.busy);
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

interface LimitsOf extends Pick<ClientAccount, 'id'> {
  readonly clock: Clock;
  /** All that were made. */
  readonly made: Set<RateLimits>;
}

/** Makes the rate limits once: clients with the same settings use the same ones. */
function limitsOf({ id, clock, made }: LimitsOf): ClientAccount['limitsFor'] {
  const random = randomOf(clock);
  const backends = new Map<string, RateLimitBackend>();
  const inProcess = new Map<string, RateLimits>();
  const inStores = new WeakMap<Store, Map<string, RateLimits>>();
  return ({ store, limits }) => {
    const shared = store && { store, account: id };
    const known = (store && inStores.get(store)) ?? (store ? new Map<string, RateLimits>() : inProcess);
    if (store) inStores.set(store, known);
    const settings = JSON.stringify(Object.entries(limits ?? {}));
    const limited = known.get(settings) ?? new RateLimits({ limits, shared, clock, random, backends });
    known.set(settings, limited);
    made.add(limited);
    return limited;
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
