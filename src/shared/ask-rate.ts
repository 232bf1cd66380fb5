import type { Clock } from '../runtime/clock.js';

/** While calls wait, a process may ask the store so often in a second, and as often again for each slot. */
const PER_S = 2;
const MOST_SAVED = 4;

/** How often a process may ask the store while its calls wait. */
export class AskRate {
  readonly #clock: Clock;
  #left = MOST_SAVED;
  #atMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#atMs = clock.now();
  }

  /** The store was asked. */
  asked(): void {
    this.#add(-1);
  }

  /** Slots were granted. */
  earned(slots: number): void {
    this.#add(slots * PER_S);
  }

  /** Milliseconds until the store may be asked. */
  waitMs(): number {
    this.#add(0);
    return this.#left >= 1 ? 0 : Math.ceil(((1 - this.#left) * 1000) / PER_S);
  }

  #add(asks: number): void {
    const nowMs = this.#clock.now();
    this.#left = Math.min(MOST_SAVED, this.#left + ((nowMs - this.#atMs) * PER_S) / 1000) + asks;
    this.#atMs = nowMs;
  }
}
