/** What a store contains of a group: see {@link Store.read}. */
export interface StoredValues {
  /** Changes with each write to the group. */
  readonly version: string;
  /** The store's time, in milliseconds since the epoch. */
  readonly nowMs: number;
  /** The values of the keys that exist. */
  readonly values: Readonly<Record<string, string>>;
}

/** What a write does to the keys of a group: sets a value for `ttlMs` milliseconds, or deletes the key. */
export type StoreChanges = Readonly<Record<string, { readonly value: string; readonly ttlMs: number } | null>>;

/**
 * State that processes share: creates, budgets, rate limits, and handled events. A store only compares and swaps; the rules
 * are code of this package. For a database of your own, pass two functions to `createStore`.
 */
export interface Store {
  /** Reads keys of a group, with a version that changes with each write to the group. */
  read(group: string, keys: readonly string[]): Promise<StoredValues>;
  /**
   * Writes all changes or none. Resolves with false, and writes nothing, when the group has changed since `version`.
   * Each key expires by itself after its `ttlMs`.
   */
  write(group: string, version: string, changes: StoreChanges): Promise<boolean>;
  /** Sends a message to every process that listens to the topic. Without it, waits are not notified across processes. */
  publish?(topic: string, message: string): Promise<void>;
  /** Calls the listener with each message of the topic, until the returned function is called. */
  subscribe?(topic: string, listener: (message: string) => void): () => void;
  /** Milliseconds after which a store that neither answers nor fails counts as unavailable. @default 2000 */
  readonly timeoutMs?: number | undefined;
}

/** The name under which a store offers {@link ProcessLeases}. */
export const LEASES: unique symbol = Symbol.for('gen-client.leases');

/**
 * Leases that the operating system releases when a process exits, however it exits. The ledger of a store with leases knows
 * at once that a process has crashed. The ledger of any other store waits until a lease of 30 seconds expires.
 */
export interface ProcessLeases {
  /** Returns the name of this process's lease, without `/` or `#`. Acquires it if the process has none. */
  own(): string;
  /** Returns true while a process holds the lease of that name, this process included. */
  isHeld(name: string): boolean;
}

export function leasesOf(store: Store): ProcessLeases | undefined {
  return (store as { readonly [LEASES]?: ProcessLeases })[LEASES];
}
