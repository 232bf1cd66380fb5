import { ConnectionError } from '../errors/client-errors.js';
import { GenError } from '../errors/gen-error.js';
import { reasonOf } from '../runtime/callbacks.js';
import { type Clock, clockOf, type Random } from '../runtime/clock.js';
import { sleep } from '../runtime/deadline.js';
import { invalidValueMessage } from '../schemas/format-value.js';
import { MemoryGroups } from './groups.js';
import type { Store, StoreChanges, StoredValues } from './port.js';

export type { Store, StoreChanges, StoredValues };

/** A rule's decision: the changes to write, and the result for the caller. Without changes, nothing is written. */
export interface Decision<T> {
  readonly changes: StoreChanges;
  readonly result: T;
}

export interface StoreGroup {
  readonly store: Store;
  readonly group: string;
  readonly clock: Clock;
  readonly random: Random;
}

/** Maximum delay after the first lost swap. It doubles with each further loss, up to `MAX_LOST_SWAP_MS`. */
const LOST_SWAP_MS = 32;
const MAX_LOST_SWAP_MS = 250;
/** Consecutive lost swaps, over about a minute, after which the store counts as unavailable. Real contention ends sooner. */
const MAX_LOST_SWAPS = 400;

/**
 * Reads the keys, runs the rule, and swaps. Retries from the read if another process wrote first, so the rule must be
 * pure. `startMs` is when the read began, by this process's clock.
 *
 * An abort ends the loop before the next read. Rejects with a ConnectionError if the store fails, times out, or rejects
 * every swap.
 */
export async function updateGroup<T>(
  { store, group, clock, random }: StoreGroup,
  keys: readonly string[],
  rule: (storedValues: StoredValues, startMs: number) => Decision<T>,
  signal?: AbortSignal,
): Promise<T> {
  const bounded = boundedStore(store, clock);
  const time = storeClock(store, clock);
  const { timeoutMs = TIMEOUT_MS } = store;
  let version: string | undefined;
  let sinceMs = time.now();
  for (let lostSwaps = 0; ; lostSwaps++) {
    signal?.throwIfAborted();
    const [startMs, readMs] = [clock.now(), time.now()];
    const storedValues = await bounded.read(group, keys);
    // A new version means that another process was faster. The same version means that the store rejected the swap.
    if (storedValues.version !== version) sinceMs = readMs;
    else if (readMs - sinceMs >= timeoutMs) {
      throw new ConnectionError(
        `The store rejected every write for ${timeoutMs} ms, although nothing else changed its data`,
      );
    }
    if (lostSwaps === MAX_LOST_SWAPS) throw new ConnectionError(`The store rejected ${lostSwaps} writes in a row`);
    version = storedValues.version;
    const { changes, result } = rule(storedValues, startMs);
    if (Object.keys(changes).length === 0) return result;
    if (await bounded.write(group, storedValues.version, changes)) return result;
    const maxMs = Math.min(LOST_SWAP_MS * 2 ** Math.min(lostSwaps, 10), MAX_LOST_SWAP_MS);
    await sleep(time, 1 + random.next() * maxMs, signal);
  }
}

const TIMEOUT_MS = 2_000;

/**
 * Wraps a store: applies its `timeoutMs`, validates what it returns, and rejects with a ConnectionError if it fails.
 */
export function boundedStore(store: Store, clock: Clock): Store {
  const time = storeClock(store, clock);
  const { timeoutMs = TIMEOUT_MS } = store;
  const withTimeout = <T>(operation: () => Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      const timeOut = () =>
        reject(
          new ConnectionError(
            `The store did not respond within ${timeoutMs} ms (timeoutMs). Check the connection, or raise timeoutMs.`,
          ),
        );
      const cancel = time.after(timeoutMs, timeOut);
      (async () => operation())()
        .finally(cancel)
        .then(resolve, (error) => reject(storeError(error)));
    });
  return {
    read: async (group, keys) => validValues(await withTimeout(() => store.read(group, keys))),
    write: (group, version, changes) => withTimeout(() => store.write(group, version, changes)),
  };
}

/** Converts an error of the store to a ConnectionError, because it may be temporary. Returns a GenError unchanged. */
function storeError(cause: unknown): GenError {
  return GenError.isInstance(cause) ? cause : new ConnectionError(reasonOf(cause), { cause });
}

function validValues(response: StoredValues): StoredValues {
  const { version, nowMs, values } = response ?? {};
  if (typeof version === 'string' && Number.isFinite(nowMs) && typeof values === 'object' && values !== null)
    return response;
  const shape = 'an object { version, nowMs, values } with a string, a number, and an object';
  throw setupError(invalidValueMessage('The result of store.read', shape, response));
}

/** Creates an error for a misconfiguration, which a retry can't fix. */
export function setupError(message: string, cause?: unknown): GenError {
  return Object.assign(new GenError(message, { cause }), { recovery: 'fix_setup' as const });
}

/** Returns true if the store failed because of its setup: see {@link setupError}. */
export function isSetupError(error: unknown): error is GenError {
  return GenError.isInstance(error) && 'recovery' in error && error.recovery === 'fix_setup';
}

/** The property of a client that contains its store. Shared by copies of the package. */
export const STORE: unique symbol = Symbol.for('gen-client.store');

export function storeOf(client: object): Store | undefined {
  return (client as { readonly [STORE]?: Store })[STORE];
}

const IN_PROCESS = new WeakSet<Store>();

/** Returns true if the store is in this process's memory, so that its data may follow a client's clock. */
export function isInProcess(store: Store): boolean {
  return IN_PROCESS.has(store);
}

/** Returns the clock for a store's timeouts. A persistent store works in real time. */
export function storeClock(store: Store, clock: Clock): Clock {
  return isInProcess(store) ? clock : clockOf(store);
}

/** A {@link Store} with notifications between processes. */
export type NotifyingStore = Store & Required<Pick<Store, 'publish' | 'subscribe'>>;

const PROCESS = Symbol.for('gen-client.process-stores');

/** Returns the process's default store for a clock, which all copies of the package share. */
export function processStore(clock: Clock): Store {
  const globals: typeof globalThis & { [PROCESS]?: WeakMap<Clock, Store> } = globalThis;
  globals[PROCESS] ??= new WeakMap();
  const store = globals[PROCESS].get(clock) ?? memoryStoreOn(clock);
  globals[PROCESS].set(clock, store);
  return store;
}

/** Creates a {@link Store} in memory, which retains its newest `max` values. */
export function memoryStoreOn(clock: Clock, max = Number.POSITIVE_INFINITY): NotifyingStore {
  const groups = new MemoryGroups(() => clock.now(), max);
  const store: NotifyingStore = {
    read: async (group, keys) => groups.read(group, keys),
    write: async (group, version, changes) => groups.write(group, version, changes),
    ...openTopics(),
  };
  IN_PROCESS.add(store);
  return store;
}

export function openTopics(): Pick<NotifyingStore, 'publish' | 'subscribe'> {
  const listeners = new Map<string, Set<(message: string) => void>>();
  return {
    async publish(topic: string, message: string): Promise<void> {
      for (const listener of [...(listeners.get(topic) ?? [])]) listener(message);
    },
    subscribe(topic: string, listener: (message: string) => void): () => void {
      const subscribers = listeners.get(topic) ?? new Set();
      listeners.set(topic, subscribers);
      // Wrapped, so that a listener that subscribes twice is called twice.
      const subscriber = (message: string) => listener(message);
      subscribers.add(subscriber);
      return () => {
        subscribers.delete(subscriber);
        if (subscribers.size === 0) listeners.delete(topic);
      };
    },
  };
}
