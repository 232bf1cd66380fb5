import { reasonOf } from '../runtime/callbacks.js';
import type { Clock } from '../runtime/clock.js';

/** How long a store that failed is not asked again. */
const AWAY_MS = 5_000;

type TellOutage = (message: string) => void;

/** Whether the store that a limiter uses is unavailable, as all lanes of the limiter know it. */
export interface Outage {
  /** The store failed, and is not asked before this time. */
  readonly untilMs: number;
  /** The store failed. */
  began(error: unknown): void;
  /** The store answered. */
  ended(): void;
  /** Warns a client whose call keeps its limits without the store: once for each outage. */
  warn(warn: TellOutage | undefined): void;
}

/** Makes the one record of a limiter. */
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
      if (warn === undefined || warned.has(warn)) return;
      warned.add(warn);
      warn(`The shared store is unavailable (${reason}). Until it answers, this process keeps the limits by itself.`);
    },
  };
}
