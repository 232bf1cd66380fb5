import { onAbort } from './abort.js';
import type { Clock } from './clock.js';

/** On Workers a sleeping call looks again this often, because no other request may wake it. */
const LOOK_AGAIN_MS = 250;

/** Lets one call sleep until it is woken. It sleeps by a timer of its own, made in the context of that call. */
export class Sleeper {
  readonly #clock: Clock;
  #isWoken = false;
  #end: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Ends the sleep, or the next one at once when none is under way. */
  wake(): void {
    this.#isWoken = true;
    // Where promises belong to requests, the sleeping call finds out by itself.
    if (!this.#clock.perRequest) this.#end?.();
  }

  /**
   * Resolves when woken, or after `ms` milliseconds. It may resolve earlier, so look again at what you wait for. An abort
   * rejects at once with the signal's own reason.
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const longest = this.#clock.perRequest ? Math.min(ms, LOOK_AGAIN_MS) : ms;
      let stopTimer: (() => void) | undefined;
      let forgetAbort: (() => void) | undefined;
      const finish = () => {
        this.#isWoken = false;
        this.#end = undefined;
        stopTimer?.();
        forgetAbort?.();
        resolve();
      };
      if (this.#isWoken) return finish();
      this.#end = finish;
      if (longest < Number.POSITIVE_INFINITY) stopTimer = this.#clock.after(longest, finish);
      if (signal === undefined) return;
      forgetAbort = onAbort(signal, () => {
        this.#end = undefined;
        stopTimer?.();
        reject(signal.reason);
      });
    });
  }
}
