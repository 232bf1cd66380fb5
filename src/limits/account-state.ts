// Holds the one piece of mutable module state there is: a limit is the account's, not a client's, so every client of an
// account must count together, also when the ESM and the CommonJS copy of this package are both loaded.
import { InProcessLimiter } from './in-process-limiter.js';
import type { LaneLimiter } from './rate-limiter.js';

/** What every client of one account (base URL and key) in this process shares, whichever copy of the package made it. */
export interface Account {
  /** The in-process limiter of the account's lanes. */
  readonly limiter: LaneLimiter;
  /** The one thing of this name for the account, made on first use: the poll scheduler, say. */
  shared<T extends object>(name: string, make: () => T): T;
}

/** Something shared may say that it is in use, which keeps its account from being forgotten. */
interface MaybeBusy {
  readonly busy?: boolean;
}

interface Registered extends Account {
  readonly busy: boolean;
}

interface Registry {
  readonly salt: string;
  readonly accounts: Map<string, Registered>;
  pruneAt: number;
}

/** The number is the protocol's: copies that share the symbol must agree on what stands behind it. */
const REGISTRY = Symbol.for('gen-client.accounts/1');
/** A service for many tenants may see any number of keys; only idle accounts are forgotten. */
const KEPT_ACCOUNTS = 1000;

/**
 * The account behind a base URL and key, the same object for all who ask in this process. `previous` is the account the
 * same client had under its last key: a rotated key goes on with it, so that its limits are not counted afresh.
 */
export function accountFor(baseUrl: string, apiKey: string, previous?: Account): Account {
  const registry = registered();
  const { accounts } = registry;
  const id = hash(`${registry.salt}\n${baseUrl}\n${apiKey}`);
  const account = accounts.get(id) ?? (isRegistered(previous) ? previous : createAccount());
  // Taken out and put back at the end: the least recently used stand first.
  accounts.delete(id);
  accounts.set(id, account);
  if (accounts.size > registry.pruneAt) prune(registry, account);
  return account;
}

function prune(registry: Registry, spared: Registered): void {
  const { accounts } = registry;
  for (const [id, account] of accounts) {
    if (accounts.size <= KEPT_ACCOUNTS / 2) break;
    if (account !== spared && !account.busy) accounts.delete(id);
  }
  // Looking again only after as many more keeps the cost of a new account constant on average.
  registry.pruneAt = accounts.size + KEPT_ACCOUNTS / 2;
}

function createAccount(): Registered {
  const things = new Map<string, object & MaybeBusy>();
  const limiter = new InProcessLimiter();
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

function isRegistered(account: Account | undefined): account is Registered {
  return account !== undefined && 'busy' in account;
}

function registered(): Registry {
  const home: typeof globalThis & { [REGISTRY]?: Registry } = globalThis;
  if (!home[REGISTRY]) {
    const value: Registry = { salt: crypto.randomUUID(), accounts: new Map(), pruneAt: KEPT_ACCOUNTS };
    Object.defineProperty(home, REGISTRY, { value });
    return value;
  }
  return home[REGISTRY];
}

/**
 * 128 bits, at once (WebCrypto's digest is a promise). The key cannot be read back from it, and without the salt, which
 * never leaves the process, not even a guess can be tried; so the registry gives no key away.
 */
function hash(text: string): string {
  return [1, 2, 3, 4].map((seed) => hash32(text, Math.imul(seed, 0x9e3779b1)).toString(36)).join('.');
}

function hash32(text: string, seed: number): number {
  let mixed = seed;
  for (let at = 0; at < text.length; at++) {
    mixed = Math.imul(mixed ^ text.charCodeAt(at), 0x5bd1e995);
    mixed ^= mixed >>> 15;
  }
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  return (mixed ^ (mixed >>> 13)) >>> 0;
}
