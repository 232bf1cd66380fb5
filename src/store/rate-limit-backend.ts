import { newRateLimit, type RateLimitState } from '../rules/rate-limit.js';
import { decodeRateLimit, encodeRateLimit } from '../rules/stored-rate-limit.js';
import { reasonOf } from '../runtime/callbacks.js';
import type { Clock } from '../runtime/clock.js';
import { isSetupError, type StoreGroup, setupError, updateGroup } from './store.js';

export interface ChangeTime {
  /** The time in the state's clock: the store's, if the state is in one. */
  readonly nowMs: number;
  /** When this process began to read the state, by its own clock. */
  readonly askedMs: number;
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
  /** Reads the state as this process last saw it. */
  look<T>(see: (state: RateLimitState, nowMs: number) => T): T;
  update<T>(change: Change<T>): T | Promise<T>;
  /** Calls `listener` after each change by this process. */
  subscribe(listener: () => void): void;
}

export function memoryBackend(clock: Clock): RateLimitBackend {
  const state = newRateLimit();
  const listeners: (() => void)[] = [];
  return {
    look: (see) => see(state, clock.now()),
    update(change) {
      const { isChanged, result } = change(state, { nowMs: clock.now(), askedMs: clock.now(), isLocal: false });
      if (isChanged) for (const listener of listeners) listener();
      return result;
    },
    subscribe: (listener) => void listeners.push(listener),
  };
}

const KEY = 'limit';

/** Keeps the state in a store. During an outage, this process uses its last known state. */
export function storeBackend(where: StoreGroup, outage: Outage): RateLimitBackend {
  const { group, clock } = where;
  let known = newRateLimit();
  /** How far the store's clock is ahead of this process's. */
  let aheadMs = 0;
  const locally = <T>(change: Change<T>) =>
    change(known, { nowMs: clock.now() + aheadMs, askedMs: clock.now(), isLocal: true }).result;
  return {
    look: (see) => see(known, clock.now() + aheadMs),
    async update(change) {
      if (clock.now() < outage.untilMs) return locally(change);
      try {
        const [state, ahead, result] = await updateGroup(where, [KEY], ({ values, nowMs }, askedMs) => {
          const stored = decodeRateLimit(values[KEY]);
          if (stored === undefined) {
            throw setupError(
              `The store has data of another program under "${group}". Pass a prefix that only gen-client uses.`,
            );
          }
          const changed = change(stored, { nowMs, askedMs, isLocal: false });
          const value = encodeRateLimit(stored);
          const isWritten = changed.isChanged && (value !== null || values[KEY] !== undefined);
          const seen = [stored, nowMs - clock.now(), changed.result] as const;
          return { changes: isWritten ? { [KEY]: value } : {}, result: seen };
        });
        known = state;
        aheadMs = ahead;
        outage.ended();
        return result;
      } catch (error) {
        if (isSetupError(error)) throw error;
        outage.began(error);
        return locally(change);
      }
    },
    // Each client polls the store itself.
    subscribe() {},
  };
}

/** How long to wait after a failure before using the store again. */
const RETRY_MS = 5_000;

type Warn = (message: string) => void;

/** An outage of the store, shared by all rate limits in it. */
export interface Outage {
  /** The store is not used again before this time. */
  readonly untilMs: number;
  began(error: unknown): void;
  ended(): void;
  /** Warns a client that its rate limits are local, once per outage. */
  warn(warn: Warn): void;
}

export function createOutage(clock: Clock): Outage {
  let untilMs = Number.NEGATIVE_INFINITY;
  let reason = '';
  let warned = new WeakSet<Warn>();
  return {
    get untilMs() {
      return untilMs;
    },
    began(error) {
      untilMs = clock.now() + RETRY_MS;
      reason = reasonOf(error);
    },
    ended() {
      untilMs = Number.NEGATIVE_INFINITY;
      warned = new WeakSet();
    },
    warn(warn) {
      if (clock.now() >= untilMs || warned.has(warn)) return;
      warned.add(warn);
      warn(`The store is unavailable (${reason}). Until it recovers, this process enforces its rate limits locally.`);
    },
  };
}
