// Holds the one piece of mutable module state there is: a limit is the account's, not a client's, so every client of an
// account must count together, also when the ESM and the CommonJS copy of this package are both loaded.
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { type Clock, systemClock } from '../clock.js';
import { InProcessLimiter } from './in-process-limiter.js';
import type { LaneLimiter } from './rate-limiter.js';

/** What every client of one account (base URL and key) in this process shares, whichever copy of the package made it. */
export interface Account {
  /** The in-process limiter of the account's lanes. */
  readonly limiter: LaneLimiter;
  /** The one thing of this name for the account, made on first use: the poll scheduler, for example. */
  shared<T extends object>(name: string, make: () => T): T;
}

/** Something shared may say that it is in use, which keeps its account. */
interface MaybeBusy {
  readonly busy?: boolean;
}

interface RegisteredAccount extends Account {
  readonly busy: boolean;
}

interface Registry {
  /** Never leaves the process, so that the ids below cannot be used to test a guessed key. */
  readonly salt: string;
  /** Accounts in use, and those that were used last. */
  readonly accounts: Map<string, RegisteredAccount>;
  /** All other accounts that a client still holds. */
  readonly held: Map<string, WeakRef<RegisteredAccount>>;
  pruneAt: number;
}

/** The key that a client used before, and its account. */
export interface PreviousKey {
  readonly account: Account;
  readonly apiKey: string;
}

/** The number is the protocol's: copies that share the symbol must agree on what is behind it. */
const REGISTRY = Symbol.for('gen-client.accounts/2');
/** The accounts of clients with a clock of their own, such as a sandbox's: they cannot count together with the others. */
const OF_CLOCKS = new WeakMap<Clock, Registry>();
/** A service for many tenants may use any number of keys. Idle accounts beyond this are kept only while a client holds them. */
const KEPT_ACCOUNTS = 1000;

/**
 * The account behind a base URL and key: the same object for all who ask in this process. With a rotated key the account
 * of the key before goes on, so that its limits are not counted afresh, and the old key is forgotten.
 */
export function accountFor(
  baseUrl: string,
  apiKey: string,
  previous?: PreviousKey,
  options: { readonly clock?: Clock } = {},
): Account {
  const { clock = systemClock } = options;
  const registry = clock === systemClock ? openRegistry() : registryOf(clock);
  const { accounts, held } = registry;
  const idOf = (key: string) => bytesToHex(sha256(utf8ToBytes(`${registry.salt}\n${baseUrl}\n${key}`)));
  const id = idOf(apiKey);
  const account =
    accounts.get(id) ??
    held.get(id)?.deref() ??
    (isRegistered(previous?.account) ? previous.account : createAccount(clock));
  if (previous?.account === account) {
    accounts.delete(idOf(previous.apiKey));
    held.delete(idOf(previous.apiKey));
  }
  held.delete(id);
  // Taken out and put back at the end: the least recently used come first.
  accounts.delete(id);
  accounts.set(id, account);
  if (accounts.size > registry.pruneAt) prune(registry, account);
  return account;
}

function prune(registry: Registry, spared: RegisteredAccount): void {
  const { accounts, held } = registry;
  for (const [id, account] of accounts) {
    if (accounts.size <= KEPT_ACCOUNTS / 2) break;
    if (account === spared || account.busy) continue;
    accounts.delete(id);
    held.set(id, new WeakRef(account));
  }
  for (const [id, account] of held) if (account.deref() === undefined) held.delete(id);
  // Looking again only after as many more keeps the cost of a new account constant on average.
  registry.pruneAt = accounts.size + KEPT_ACCOUNTS / 2;
}

function createAccount(clock: Clock): RegisteredAccount {
  const things = new Map<string, object & MaybeBusy>();
  const limiter = new InProcessLimiter({}, clock);
  return {
    limiter,
    get busy() {
      const lanes = Object.values(limiter.snapshot());
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
  };
}

function isRegistered(account: Account | undefined): account is RegisteredAccount {
  return account !== undefined && 'busy' in account;
}

function openRegistry(): Registry {
  const home: typeof globalThis & { [REGISTRY]?: Registry } = globalThis;
  if (home[REGISTRY]) return home[REGISTRY];
  const value = createRegistry();
  Object.defineProperty(home, REGISTRY, { value });
  return value;
}

function registryOf(clock: Clock): Registry {
  const known = OF_CLOCKS.get(clock) ?? createRegistry();
  OF_CLOCKS.set(clock, known);
  return known;
}

function createRegistry(): Registry {
  return { salt: crypto.randomUUID(), accounts: new Map(), held: new Map(), pruneAt: KEPT_ACCOUNTS };
}
