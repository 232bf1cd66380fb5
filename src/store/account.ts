// Registers this process's accounts. Rate limits belong to an account, so all its clients must share them, even across
// the ESM and CommonJS copies of this package.
import { type Clock, randomOf, steady, systemClock, systemRandom, wallOf } from '../runtime/clock.js';
import { sha256Of } from '../runtime/sha256.js';
import { JobDurations, LearnedValues } from './learned-values.js';
import { type RateLimitBackend, sharedLimits } from './rate-limit-backend.js';
import { type Limits, RateLimits } from './rate-limits.js';
import type { Store } from './store.js';

/** State that all clients of an account (base URL, and key or name) in this process share. */
export interface ClientAccount {
  /** Identifies the account in a store. Doesn't reveal the key. */
  readonly id: string;
  /** Returns the account's rate limits. Clients with the same settings share them. */
  limitsFor(settings: LimitSettings): RateLimits;
  /** Values learned from the service's responses. */
  readonly learned: { readonly prices: LearnedValues<number>; readonly durations: JobDurations };
  /** Returns the account's object with this name, for example its poll scheduler. Creates it on first use. */
  shared<T extends object>(name: string, create: () => T): T;
  /** If true, something in the account is in use, so it must not be evicted. */
  readonly busy: boolean;
  /** Returns the process's object with this name. Creates it on first use. */
  processSingleton<T extends object>(name: string, create: () => T): T;
}

/** How a client enforces its account's rate limits. */
export interface LimitSettings {
  /** Store that shares the limits with other processes. @default the limits apply to this process only */
  readonly store?: Store | undefined;
  /** Limits by name. Each replaces the documented limit with that name. */
  readonly limits?: Limits | undefined;
}

interface Registry {
  /** Random, and never leaves the process, so nobody can test a guessed key against the IDs. */
  readonly salt: string;
  /** Accounts in use, and recently used ones. */
  readonly accounts: Map<string, ClientAccount>;
  /** Evicted accounts that a client still references. */
  readonly evicted: Map<string, WeakRef<ClientAccount>>;
  /** Objects that all accounts share, by name. */
  readonly singletons: Map<string, object>;
  pruneAt: number;
}

/** Shared by copies of the package, which must agree on the value's shape. */
const REGISTRY = Symbol.for('gen-client.accounts');
/** Accounts of clients with their own clock, such as a sandbox's. They can't share limits with other clients. */
const REGISTRIES = new WeakMap<Clock, Registry>();
/**
 * A multi-tenant service may use any number of keys. Beyond this number, an idle account remains only while a client
 * references it.
 */
const MAX_ACCOUNTS = 1000;

/** Returns the account for a base URL and key, or a base URL and name. In one process, it's always the same object. */
export function accountFor(
  baseUrl: string,
  key: string,
  { name, clock = systemClock }: { readonly name?: string | undefined; readonly clock?: Clock } = {},
): ClientAccount {
  const registry = registryOf(wallOf(clock));
  const { accounts, evicted } = registry;
  const identity = name === undefined ? [key] : ['account', name];
  const id = sha256Of([registry.salt, baseUrl, ...identity].join('\n'));
  const account =
    accounts.get(id) ?? evicted.get(id)?.deref() ?? createAccount(accountHash(baseUrl, ...identity), clock, registry);
  evicted.delete(id);
  // Reinserted, so that the least recently used accounts come first.
  accounts.delete(id);
  accounts.set(id, account);
  if (accounts.size > registry.pruneAt) prune(registry);
  return account;
}

/** Half a hash is enough to distinguish accounts. */
const ID_LENGTH = 32;

/** Returns the account's hash, which is the same in every process, and doesn't reveal a key that can't be guessed. */
function accountHash(...parts: readonly string[]): string {
  return sha256Of(['gen-client', ...parts].join('\n')).slice(0, ID_LENGTH);
}

function prune(registry: Registry): void {
  const { accounts, evicted } = registry;
  for (const [id, account] of accounts) {
    if (accounts.size <= MAX_ACCOUNTS / 2) break;
    if (account.busy) continue;
    accounts.delete(id);
    evicted.set(id, new WeakRef(account));
  }
  for (const [id, account] of evicted) if (account.deref() === undefined) evicted.delete(id);
  // The amortized cost is constant, because the next pruning follows after half as many new accounts as the maximum.
  registry.pruneAt = accounts.size + MAX_ACCOUNTS / 2;
}

function createAccount(id: string, clock: Clock, registry: Registry): ClientAccount {
  const singletons = new Map<string, object & { readonly busy?: boolean }>();
  const rateLimits = new Set<RateLimits>();
  return {
    id,
    learned: { prices: new LearnedValues(), durations: new JobDurations() },
    limitsFor: limitsOf({ id, clock, rateLimits }),
    get busy() {
      return [...rateLimits, ...singletons.values()].some(({ busy }) => busy);
    },
    shared: (name, create) => getOrCreate(singletons, name, create),
    processSingleton: (name, create) => getOrCreate(registry.singletons, name, create),
  };
}

function getOrCreate<T extends object>(singletons: Map<string, object>, name: string, create: () => T): T {
  const singleton = singletons.get(name) ?? create();
  singletons.set(name, singleton);
  return singleton as T;
}

interface LimitsOf extends Pick<ClientAccount, 'id'> {
  readonly clock: Clock;
  readonly rateLimits: Set<RateLimits>;
}

/** Returns a function that caches rate limits by settings, so that clients with the same settings share them. */
function limitsOf({ id, clock, rateLimits }: LimitsOf): ClientAccount['limitsFor'] {
  const random = randomOf(clock);
  const backends = new Map<string, RateLimitBackend>();
  const processLimits = new Map<string, RateLimits>();
  const storeLimits = new WeakMap<Store, Map<string, RateLimits>>();
  return ({ store, limits }) => {
    const bySettings = (store && storeLimits.get(store)) ?? (store ? new Map<string, RateLimits>() : processLimits);
    if (store) storeLimits.set(store, bySettings);
    const settings = JSON.stringify(Object.entries(limits ?? {}));
    const open = () => {
      const shared = store && sharedLimits({ store, account: id, clock: steady(clock), random });
      return new RateLimits({ limits, shared, clock, random, backends });
    };
    const accountLimits = bySettings.get(settings) ?? open();
    bySettings.set(settings, accountLimits);
    rateLimits.add(accountLimits);
    return accountLimits;
  };
}

function registryOf(clock: Clock): Registry {
  const globals: typeof globalThis & { [REGISTRY]?: Registry } = globalThis;
  const existing = clock === systemClock ? globals[REGISTRY] : REGISTRIES.get(clock);
  if (existing) return existing;
  const accounts = new Map<string, ClientAccount>();
  const salt = systemRandom.uuid();
  const registry = { salt, accounts, evicted: new Map(), singletons: new Map(), pruneAt: MAX_ACCOUNTS };
  if (clock === systemClock) Object.defineProperty(globals, REGISTRY, { value: registry });
  else REGISTRIES.set(clock, registry);
  return registry;
}
