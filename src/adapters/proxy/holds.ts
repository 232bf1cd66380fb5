// What a user holds open, counted together: requests that wait, and the waits on the service that they have left behind.
import { Refused } from './answers.js';

/** One thing that a user holds open. */
export interface Hold {
  /** It is over. Calling it again has no effect. */
  release(): void;
}

/** Most that one user holds open at once. */
const MOST_HELD = 64;
/** After so long one that was never released counts no more: on Workers, a request that is broken off ends without a word. */
const LONGEST_HOLD_MS = 600_000;

/** Counts what each user of one proxy holds open. */
export class Holds {
  readonly #now: () => number;
  /** By user: when each began. */
  readonly #held = new Map<string, Map<Hold, number>>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Counts one more. Refused with 429 where that is too much. `instead` is what this one takes the place of. */
  take(user: string, instead?: Hold): Hold {
    const own = this.#held.get(user) ?? new Map<Hold, number>();
    const isFull = () => own.size - (instead && own.has(instead) ? 1 : 0) >= MOST_HELD;
    if (isFull()) {
      for (const [hold, beganMs] of own) if (this.#now() - beganMs >= LONGEST_HOLD_MS) own.delete(hold);
    }
    if (isFull()) {
      throw new Refused(429, 'rate_limited', 'Too many open requests. Try again later.', { 'retry-after': '5' });
    }
    instead?.release();
    const hold: Hold = {
      release: () => {
        own.delete(hold);
        if (own.size === 0 && this.#held.get(user) === own) this.#held.delete(user);
      },
    };
    own.set(hold, this.#now());
    this.#held.set(user, own);
    return hold;
  }
}
