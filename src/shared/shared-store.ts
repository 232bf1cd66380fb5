import { ConnectionError } from '../errors/client-errors.js';
import { GenError } from '../errors/gen-error.js';
import { reasonOf } from '../runtime/callbacks.js';
import { type Clock, sleep } from '../runtime/clock.js';
import type { Random } from '../runtime/random.js';
import { mustBe } from '../schemas/show.js';

/** What a store contains of a group: see {@link SharedStore.read}. */
export interface SharedValues {
  /** Changes with each write to the group. */
  readonly version: string;
  /** The store's time, in milliseconds since the epoch. */
  readonly nowMs: number;
  /** The values of the keys that exist. */
  readonly values: Readonly<Record<string, string>>;
}

/** What a write does to the keys of a group: sets a value for `ttlMs` milliseconds, or deletes the key. */
export type SharedChanges = Readonly<Record<string, { readonly value: string; readonly ttlMs: number } | null>>;

/**
 * What many processes share: limits, budgets, prices, handled events. A store only compares and swaps; the rules are code
 * of this package. `memoryShared`, `redisShared` and `durableObjectShared` make one. Your own needs two functions.
 */
export interface SharedStore {
  /** Reads keys of a group, with a version that changes with each write to the group. */
  read(group: string, keys: readonly string[]): Promise<SharedValues>;
  /**
   * Writes all changes or none. Resolves with false, and writes nothing, when the group has changed since `version`.
   * Each key expires by itself after its `ttlMs`.
   */
  write(group: string, version: string, changes: SharedChanges): Promise<boolean>;
  /** Sends a message to every process that listens to the topic. Without it, waits are not notified across processes. */
  publish?(topic: string, message: string): Promise<void>;
  /** Calls the listener with each message of the topic, until the returned function is called. */
  subscribe?(topic: string, listener: (message: string) => void): () => void;
  /**
   * Your name for the account whose calls the store counts. All clients that use the store then count together, also with
   * several keys, as during a rotation. @default clients with the same base URL and key count together
   */
  readonly account?: string | undefined;
  /** Milliseconds after which a store that neither answers nor fails counts as unavailable. @default 2000 */
  readonly timeoutMs?: number | undefined;
}

/** What a rule decides: what is written, and what the caller gets. Without changes, nothing is written. */
export interface Decision<T> {
  readonly changes: SharedChanges;
  readonly result: T;
}

/** Where and how a group is updated. */
export interface SharedGroup {
  readonly store: SharedStore;
  readonly group: string;
  readonly clock: Clock;
  readonly random: Random;
}

/** After a lost swap, the most milliseconds before the group is read again. They grow with each loss. */
const LOST_SWAP_MS = 32;
const MOST_LOST_SWAP_MS = 250;

/**
 * Reads the keys, lets the rule decide, and swaps; again from the read while another process was faster. The rule may run
 * several times, so it must be pure. An abort ends the loop before the next read. A store that fails or does not answer in
 * time rejects with a ConnectionError.
 */
export async function updateShared<T>(
  { store, group, clock, random }: SharedGroup,
  keys: readonly string[],
  rule: (seen: SharedValues) => Decision<T>,
  signal?: AbortSignal,
): Promise<T> {
  const bounded = boundedStore(store, clock);
  for (let lost = 0; ; lost++) {
    signal?.throwIfAborted();
    const seen = await bounded.read(group, keys);
    const { changes, result } = rule(seen);
    if (Object.keys(changes).length === 0) return result;
    if (await bounded.write(group, seen.version, changes)) return result;
    const mostMs = Math.min(LOST_SWAP_MS * 2 ** Math.min(lost, 10), MOST_LOST_SWAP_MS);
    await sleep(clock, 1 + random.next() * mostMs, signal);
  }
}

const TIMEOUT_MS = 2_000;

/** The store, with answers that come within its `timeoutMs` and are checked. Where it fails, it rejects with a ConnectionError. */
export function boundedStore(store: SharedStore, clock: Clock): SharedStore {
  const { timeoutMs = TIMEOUT_MS } = store;
  const bounded = <T>(ask: () => Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      const late = () => reject(new ConnectionError(`The shared store did not answer within ${timeoutMs} ms`));
      const cancel = clock.after(timeoutMs, late);
      (async () => ask())()
        .finally(cancel)
        .then(resolve, (error) => reject(storeError(error)));
    });
  return {
    read: async (group, keys) => checkedValues(await bounded(() => store.read(group, keys))),
    write: (group, version, changes) => bounded(() => store.write(group, version, changes)),
  };
}

/** What a store throws by itself may pass. What is set up wrongly is an error of this package. */
function storeError(cause: unknown): GenError {
  return GenError.isInstance(cause) ? cause : new ConnectionError(reasonOf(cause), { cause });
}

function checkedValues(answer: SharedValues): SharedValues {
  const { version, nowMs, values } = answer ?? {};
  if (typeof version === 'string' && Number.isFinite(nowMs) && typeof values === 'object' && values !== null)
    return answer;
  const shape = 'an object { version, nowMs, values } with a string, a number and an object';
  throw setupError(mustBe('The answer of shared.read', shape, answer));
}

/** An error that says that something is set up wrongly, and that waiting does not help. */
export function setupError(message: string, cause?: unknown): GenError {
  return Object.assign(new GenError(message, { cause }), { recovery: 'fix_setup' as const });
}

/** Whether a store failed because of how it is set up: see {@link setupError}. */
export function isSetupError(error: unknown): error is GenError {
  return GenError.isInstance(error) && 'recovery' in error && error.recovery === 'fix_setup';
}

/** The name under which a client shows its store to what is made with it. */
export const SHARED: unique symbol = Symbol.for('gen-client.shared');

/** The store of a client, if it has one. */
export function sharedOf(client: object): SharedStore | undefined {
  return (client as { readonly [SHARED]?: SharedStore })[SHARED];
}
