import type { Clock } from '../clock.js';
import { Sleeper } from '../sleeper.js';
import type { LaneSnapshot, LaneWait, Release } from './rate-limiter.js';

/** How many calls a lane takes in each window. */
export interface LaneLimit {
  /** Calls per window; `Infinity` for no limit. */
  readonly limit: number;
  /** The window in milliseconds. */
  readonly windowMs: number;
}

/** A call in the queue. */
interface Ticket {
  readonly sleeper: Sleeper;
  /** When the call last looked whether it may go. */
  seenMs: number;
}

/** A call under way. */
interface OpenSlot {
  readonly takenMs: number;
}

/** On Workers a request may end without a word. A queued call that has not looked for so long has ended with it. */
const TICKET_LOST_MS = 5_000;
/** So has a call that has been under way for so long. */
const SLOT_LOST_MS = 120_000;

/**
 * One lane: `limit` slots, each free again only one window after the answer of its call came.
 *
 * The service counts a call at some unknown moment between its sending and its answer. Two calls that use one slot in turn
 * are therefore counted more than a window apart whatever the network does, so no window, fixed or sliding, holds more
 * calls than there are slots. Measuring from the sending instead would let a slow call and its successor meet in one window.
 *
 * Each queued call sleeps in a context of its own and is only woken from outside. So no call needs a timer of another,
 * and on Workers, where nothing of another request may be used, each looks for itself.
 */
export class LaneState {
  readonly #name: string;
  readonly #limit: LaneLimit;
  readonly #restMs: number;
  readonly #clock: Clock;
  readonly #queue = new Set<Ticket>();
  readonly #open = new Set<OpenSlot>();
  /** When each resting slot is free again, in order, because answers come in order of time. */
  #freeAt: number[] = [];
  #first = 0;
  #pausedUntil = 0;

  constructor(name: string, limit: LaneLimit, clock: Clock) {
    this.#name = name;
    this.#limit = limit;
    // Half a per mille and a millisecond on top: two clocks drift, and `now` is cut off to whole milliseconds.
    this.#restMs = limit.windowMs * 1.0005 + 1;
    this.#clock = clock;
  }

  tryAcquire(): Release | number {
    this.#forgetLost();
    const waitMs = this.#queue.size > 0 ? Math.max(1, this.#waitMs(this.#queue.size)) : this.#waitMs(0);
    return waitMs > 0 ? waitMs : this.#take();
  }

  async acquire(signal?: AbortSignal, onWait?: (wait: LaneWait) => void): Promise<Release> {
    signal?.throwIfAborted();
    const taken = this.tryAcquire();
    if (typeof taken === 'function') return taken;
    const ticket: Ticket = { sleeper: new Sleeper(this.#clock), seenMs: this.#clock.now() };
    this.#queue.add(ticket);
    try {
      const reason = this.#pausedUntil > this.#clock.now() ? 'pause' : 'limit';
      onWait?.({ lane: this.#name, waitMs: taken, queued: this.#queue.size, reason });
      for (;;) {
        const waitMs = this.#turnMs(ticket);
        if (waitMs === 0) return this.#take();
        await ticket.sleeper.sleep(waitMs, signal);
      }
    } finally {
      this.#queue.delete(ticket);
      this.#wakeFirst();
    }
  }

  pause(ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, this.#clock.now() + ms);
    this.#wakeFirst();
  }

  snapshot(): LaneSnapshot {
    this.#forgetLost();
    const nextFreeMs = this.#waitMs(0);
    const { limit, windowMs } = this.#limit;
    return { inUse: this.#open.size + this.#resting(), queued: this.#queue.size, nextFreeMs, limit, windowMs };
  }

  /** Milliseconds until the ticket has to look again; 0 when it may go. Only the first in the queue waits for a time. */
  #turnMs(ticket: Ticket): number {
    ticket.seenMs = this.#clock.now();
    this.#forgetLost();
    const [first] = this.#queue;
    if (first !== ticket) return Number.POSITIVE_INFINITY;
    const waitMs = this.#waitMs(0);
    // With every slot under way there is no time to wait for but a release, which wakes the first.
    const isKnown = this.#resting() > 0 || this.#pausedUntil > this.#clock.now();
    return waitMs > 0 && !isKnown ? Number.POSITIVE_INFINITY : waitMs;
  }

  #wakeFirst(): void {
    const [first] = this.#queue;
    first?.sleeper.wake();
  }

  /** How long a call waits that has `ahead` others before it. An estimate where it depends on calls that are under way. */
  #waitMs(ahead: number): number {
    const now = this.#clock.now();
    while ((this.#freeAt[this.#first] ?? now + 1) <= now) this.#first++;
    if (this.#first > 1000) {
      this.#freeAt = this.#freeAt.slice(this.#first);
      this.#first = 0;
    }
    const { limit } = this.#limit;
    const short = this.#open.size + this.#resting() + ahead - limit;
    const rounds = Math.floor(short / limit);
    const freeAt = this.#freeAt[this.#first + (short % limit)] ?? now + this.#restMs;
    const slotMs = short < 0 ? 0 : freeAt - now + rounds * this.#restMs;
    return Math.max(0, this.#pausedUntil - now, slotMs);
  }

  #resting(): number {
    return this.#freeAt.length - this.#first;
  }

  #take(): Release {
    const slot: OpenSlot = { takenMs: this.#clock.now() };
    this.#open.add(slot);
    return (outcome) => {
      if (!this.#open.delete(slot)) return;
      if (outcome !== 'unused' && this.#limit.limit < Number.POSITIVE_INFINITY) {
        this.#freeAt.push(this.#clock.now() + this.#restMs);
      }
      this.#wakeFirst();
    };
  }

  /** Where a request may end without a word, what it held is not held for ever. */
  #forgetLost(): void {
    if (!this.#clock.perRequest) return;
    const now = this.#clock.now();
    for (const ticket of this.#queue) if (ticket.seenMs < now - TICKET_LOST_MS) this.#queue.delete(ticket);
    for (const slot of this.#open) if (slot.takenMs < now - SLOT_LOST_MS) this.#open.delete(slot);
  }
}
