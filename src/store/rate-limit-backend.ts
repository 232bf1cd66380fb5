import type { Rate } from '../rules/limits.js';
import { SHARING } from '../rules/options.js';
import { newRateLimit, type RateLimitState } from '../rules/rate-limit.js';
import type { Clock, Random } from '../runtime/clock.js';
import type { Store } from './store.js';

export interface ChangeTime {
  /** The time by the store's clock if the state is in a store, otherwise by this process's clock. */
  readonly nowMs: number;
  /** Start of the read, by this process's clock. */
  readonly startMs: number;
  /** If true, the store is unavailable, so the change applies only to this process. */
  readonly isLocal: boolean;
}

/** Updates the state. A store may run it again on a newer state, so it must be repeatable. */
export type Change<T> = (
  state: RateLimitState,
  time: ChangeTime,
) => { readonly isChanged: boolean; readonly result: T };

/** Stores the state of one rate limit, in this process or in a shared store. */
export interface RateLimitBackend {
  /** Reads the state as last known to this process. */
  peek<T>(select: (state: RateLimitState, nowMs: number) => T): T;
  update<T>(change: Change<T>): T | Promise<T>;
  /** Calls `listener` after each change by this process. */
  subscribe(listener: () => void): void;
}

export function memoryBackend(clock: Clock, documented?: Rate): RateLimitBackend {
  const state = newRateLimit(documented);
  const listeners: (() => void)[] = [];
  return {
    peek: (select) => select(state, clock.now()),
    update(change) {
      const { isChanged, result } = change(state, { nowMs: clock.now(), startMs: clock.now(), isLocal: false });
      if (isChanged) for (const listener of listeners) listener();
      return result;
    },
    subscribe: (listener) => void listeners.push(listener),
  };
}

/** An outage of the store, shared by all rate limits in it. */
export interface Outage {
  /** The store is not used again before this time. */
  readonly untilMs: number;
  /** Warns a client that its rate limits are local, once per outage. */
  warn(warn: (message: string) => void): void;
}

/** An account's rate limits in a store. */
export interface SharedLimits {
  readonly outage: Outage;
  open(name: string): RateLimitBackend;
}

export interface LimitsInStore {
  readonly store: Store;
  /** The account's ID. */
  readonly account: string;
  readonly clock: Clock;
  readonly random: Random;
}

export type OpenSharedLimits = (options: LimitsInStore) => SharedLimits;

/** Opens rate limits with the store's own code, so that it isn't bundled with a client without a store. */
export function sharedLimits(options: LimitsInStore): SharedLimits {
  const { [SHARING]: sharing }: { readonly [SHARING]?: { readonly openLimits: OpenSharedLimits } } =
    options.store as object;
  if (!sharing) throw new TypeError('The store shares no rate limits.');
  return sharing.openLimits(options);
}
