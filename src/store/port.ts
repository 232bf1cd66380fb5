/** Values of a group in a store, as returned by {@link Store.read}. */
export interface StoredValues {
  /** Changes with each write to the group. */
  readonly version: string;
  /** The store's time, in milliseconds since the epoch. */
  readonly nowMs: number;
  /** The values of the keys that exist. */
  readonly values: Readonly<Record<string, string>>;
}

/** Changes to the keys of a group. Each sets a value for `ttlMs` milliseconds, or deletes the key if null. */
export type StoreChanges = Readonly<Record<string, { readonly value: string; readonly ttlMs: number } | null>>;

/**
 * Storage that processes share: creates, budgets, rate limits, and handled events. A store only compares and swaps;
 * this package contains the logic. To use your own database, pass two functions to `createStore`.
 */
export interface Store {
  /** Reads keys of a group, and its version, which changes with each write. */
  read(group: string, keys: readonly string[]): Promise<StoredValues>;
  /**
   * Writes all changes, or none. Resolves with false and writes nothing if the group has changed since `version`. Each
   * key expires automatically after its `ttlMs`.
   */
  write(group: string, version: string, changes: StoreChanges): Promise<boolean>;
  /** Sends a message to all subscribers of the topic. Without it, waits in other processes aren't notified. */
  publish?(topic: string, message: string): Promise<void>;
  /** Calls the listener with each message of the topic. Returns a function that unsubscribes it. */
  subscribe?(topic: string, listener: (message: string) => void): () => void;
  /** Timeout of a store operation, in milliseconds. After it, the store counts as unavailable. @default 2000 */
  readonly timeoutMs?: number | undefined;
}

/** The property of a store that contains its {@link ProcessLeases}. */
export const LEASES: unique symbol = Symbol.for('gen-client.leases');

/**
 * Leases that the operating system releases when a process exits or crashes. With them, a ledger detects a crash
 * immediately. Otherwise, it waits until a lease of 30 seconds expires.
 */
export interface ProcessLeases {
  /** Returns the name of this process's lease, without `/` and `#`. Acquires the lease on the first call. */
  own(): string;
  /** Returns true if a process, including this one, holds the lease. */
  isHeld(name: string): boolean;
}

export function leasesOf(store: Store): ProcessLeases | undefined {
  return (store as { readonly [LEASES]?: ProcessLeases })[LEASES];
}
