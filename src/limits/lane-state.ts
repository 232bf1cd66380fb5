import type { Clock } from '../clock.js';
import type { AbortFan } from './abort-fan.js';
import { Fifo } from './fifo.js';
import type { LaneSnapshot, LaneWait } from './rate-limiter.js';

/** How many calls a lane takes in each window. */
export interface LaneLimit {
  /** Calls per window; `Infinity` for none. */
  readonly limit: number;
  /** The window in milliseconds. */
  readonly windowMs: number;
}

/** What all lanes of a limiter share. */
export interface LanePorts {
  readonly clock: Clock;
  readonly aborts: AbortFan;
}

type Release = () => void;

/**
 * One lane: `limit` slots, each free again only one window after its call's answer came.
 *
 * The service counts a call at some unknown moment between its sending and its answer. Two calls that use one slot in turn
 * are therefore counted more than a window apart whatever the network does, so no window, fixed or sliding, holds more
 * calls than there are slots. Measuring from the sending instead would let a slow call and its successor meet in one window.
 */
export class LaneState {
  readonly #name: string;
  readonly #limit: number;
  readonly #restMs: number;
  readonly #clock: Clock;
  readonly #aborts: AbortFan;
  readonly #queue = new Fifo<(release: Release) => void>();
  /** When each resting slot is free again, in order, because answers come in order of time. */
  #freeAt: number[] = [];
  #first = 0;
  #open = 0;
  #pausedUntil = 0;
  #disarm: (() => void) | undefined;

  constructor(name: string, { limit, windowMs }: LaneLimit, { clock, aborts }: LanePorts) {
    this.#name = name;
    this.#aborts = aborts;
    this.#limit = limit;
    // Half a per mille and a millisecond on top: two clocks drift, and `now` is cut off to whole milliseconds.
    this.#restMs = windowMs * 1.0005 + 1;
    this.#clock = clock;
  }

  tryAcquire(): Release | number {
    const wait = this.#queue.size > 0 ? Math.max(1, this.#waitMs(this.#queue.size)) : this.#waitMs(0);
    return wait > 0 ? wait : this.#take();
  }

  acquire(signal?: AbortSignal, onWait?: (wait: LaneWait) => void): Promise<Release> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    const taken = this.tryAcquire();
    if (typeof taken === 'function') return Promise.resolve(taken);
    return new Promise((resolve, reject) => {
      const link = this.#queue.push((release) => {
        forget();
        resolve(release);
      });
      const forget = this.#aborts.on(signal, () => {
        forget();
        this.#queue.remove(link);
        this.#arm();
        reject(signal?.reason);
      });
      this.#arm();
      onWait?.({
        lane: this.#name,
        waitMs: taken,
        queued: this.#queue.size,
        reason: this.#pausedUntil > this.#clock.now() ? 'pause' : 'limit',
      });
    });
  }

  pause(ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, this.#clock.now() + ms);
    this.#arm();
  }

  snapshot(): LaneSnapshot {
    const nextFreeMs = this.#waitMs(0);
    return { inUse: this.#open + this.#resting(), queued: this.#queue.size, nextFreeMs };
  }

  /** How long a call waits that has `ahead` others before it; a guess where it hangs on calls that are still under way. */
  #waitMs(ahead: number): number {
    const now = this.#clock.now();
    while ((this.#freeAt[this.#first] ?? now + 1) <= now) this.#first++;
    if (this.#first > 1000) {
      this.#freeAt = this.#freeAt.slice(this.#first);
      this.#first = 0;
    }
    const short = this.#open + this.#resting() + ahead - this.#limit;
    const rounds = Math.floor(short / this.#limit);
    const freeAt = this.#freeAt[this.#first + (short % this.#limit)] ?? now + this.#restMs;
    const slotMs = short < 0 ? 0 : freeAt - now + rounds * this.#restMs;
    return Math.max(0, this.#pausedUntil - now, slotMs);
  }

  #resting(): number {
    return this.#freeAt.length - this.#first;
  }

  #take(): Release {
    this.#open++;
    let open = true;
    return () => {
      if (!open) return;
      open = false;
      this.#open--;
      if (this.#limit < Number.POSITIVE_INFINITY) this.#freeAt.push(this.#clock.now() + this.#restMs);
      this.#arm();
    };
  }

  /** Lets in whoever may go and sets the one timer, which exists only while somebody waits. */
  #arm(): void {
    this.#disarm?.();
    this.#disarm = undefined;
    while (this.#queue.size > 0) {
      const wait = this.#waitMs(0);
      if (wait > 0) {
        // With every slot under way there is nothing to wait for but a release, which calls again.
        const known = this.#resting() > 0 || this.#pausedUntil > this.#clock.now();
        if (known) this.#disarm = this.#clock.after(wait, () => this.#arm());
        return;
      }
      this.#queue.shift()?.(this.#take());
    }
  }
}
