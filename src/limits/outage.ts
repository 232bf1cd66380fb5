import type { Clock } from '../clock.js';

/** How long a store is left alone after it did not answer. */
const AWAY_MS = 5_000;

/** Whether the store that a limiter shares is away, as all lanes of the limiter know it. */
export interface Outage {
  /** Whether the store failed a moment ago, so that it is not asked now. */
  isFresh(): boolean;
  /** The store failed. Told once, until it answers again. */
  began(error: unknown): void;
  /** The store answered. */
  ended(): void;
}

/** Makes the one record of a limiter. `tell` hears of each outage once. */
export function createOutage(clock: Clock, tell: (error: unknown) => void): Outage {
  let until = Number.NEGATIVE_INFINITY;
  let isTold = false;
  return {
    isFresh: () => clock.now() < until,
    began(error) {
      until = clock.now() + AWAY_MS;
      if (isTold) return;
      isTold = true;
      tell(error);
    },
    ended() {
      isTold = false;
    },
  };
}
