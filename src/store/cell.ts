import { decodeRateLimit, encodeRateLimit, newRateLimit, type RateLimitState } from '../rules/rate-limit.js';
import { reasonOf } from '../runtime/callbacks.js';
import type { Clock } from '../runtime/clock.js';
import { isSetupError, type StoreGroup, setupError, updateGroup } from './store.js';

export interface ChangeTime {
  /** The time of the state: the store's, where it is in one. */
  readonly nowMs: number;
  /** When this process asked for it, by its own clock. The former is not before the latter. */
  readonly askedMs: number;
  /** Whether the store is away: only this process sees the change. */
  readonly isAlone: boolean;
}

/** A step of a rule: it changes the state. It may run again, on the state as it is then. */
export type Change<T> = (
  state: RateLimitState,
  time: ChangeTime,
) => { readonly isChanged: boolean; readonly result: T };

/** The state of a rate limit: in the memory of this process, or in a store that processes share. */
export interface Cell {
  /** Shows the state as far as this process knows it. */
  look<T>(see: (state: RateLimitState, nowMs: number) => T): T;
  update<T>(change: Change<T>): T | Promise<T>;
}

export function memoryCell(clock: Clock): Cell {
  const state = newRateLimit();
  const time = () => ({ nowMs: clock.now(), askedMs: clock.now(), isAlone: false });
  return {
    look: (see) => see(state, clock.now()),
    update: (change) => change(state, time()).result,
  };
}

const KEY = 'limit';

/** A state in a store. While that is away, this process goes on from what it knows. */
export function storedCell(where: StoreGroup, outage: Outage): Cell {
  const { group, clock } = where;
  let known = newRateLimit();
  /** By how much the store's clock is ahead. */
  let aheadMs = 0;
  const alone = <T>(change: Change<T>) =>
    change(known, { nowMs: clock.now() + aheadMs, askedMs: clock.now(), isAlone: true }).result;
  return {
    look: (see) => see(known, clock.now() + aheadMs),
    async update(change) {
      if (clock.now() < outage.untilMs) return alone(change);
      try {
        const [state, ahead, result] = await updateGroup(where, [KEY], ({ values, nowMs }, askedMs) => {
          const stored = decodeRateLimit(values[KEY]);
          if (stored === undefined) {
            throw setupError(`The store has something else under "${group}". Give gen-client a prefix of its own.`);
          }
          const changed = change(stored, { nowMs, askedMs, isAlone: false });
          const value = encodeRateLimit(stored);
          const isWritten = changed.isChanged && (value !== null || values[KEY] !== undefined);
          const shown = [stored, nowMs - clock.now(), changed.result] as const;
          return { changes: isWritten ? { [KEY]: value } : {}, result: shown };
        });
        known = state;
        aheadMs = ahead;
        outage.ended();
        return result;
      } catch (error) {
        if (isSetupError(error)) throw error;
        outage.began(error);
        return alone(change);
      }
    },
  };
}

/** How long a store that failed is not asked again. */
const AWAY_MS = 5_000;

type TellOutage = (message: string) => void;

/** Whether a store is away, as all rate limits that are kept in it know it. */
export interface Outage {
  /** The store failed, and is not asked before this time. */
  readonly untilMs: number;
  began(error: unknown): void;
  ended(): void;
  /** Warns a client whose call keeps its limits without the store: once for each outage. */
  warn(warn: TellOutage): void;
}

/** Makes the record of a store. */
export function createOutage(clock: Clock): Outage {
  let untilMs = Number.NEGATIVE_INFINITY;
  let reason = '';
  let warned = new WeakSet<TellOutage>();
  return {
    get untilMs() {
      return untilMs;
    },
    began(error) {
      untilMs = clock.now() + AWAY_MS;
      reason = reasonOf(error);
    },
    ended() {
      untilMs = Number.NEGATIVE_INFINITY;
      warned = new WeakSet();
    },
    warn(warn) {
      if (clock.now() >= untilMs || warned.has(warn)) return;
      warned.add(warn);
      warn(`The store is unavailable (${reason}). Until it answers, this process keeps the limits by itself.`);
    },
  };
}
