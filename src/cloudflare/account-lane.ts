import type { SlotTable, StoredSlot, StoredTicket } from './slot-table.js';

/** A call that asks for a slot of its lane. */
export interface SlotCall {
  /** Its own id. The same call may ask any number of times. */
  readonly id: string;
  /** The rate limit that it counts against. */
  readonly lane: string;
  /** Calls per window. */
  readonly limit: number;
  /** Milliseconds for which a slot rests after the answer of its call. */
  readonly restMs: number;
  /** Milliseconds for which its isolate knows the lane to be paused. So no slot passes a pause that is still on its way. */
  readonly pauseMs: number;
}

/** What a call is told. */
export interface SlotTurn {
  /** Whether it has its slot. */
  readonly granted: boolean;
  /** Milliseconds after which it asks again. */
  readonly askMs: number;
  /** Milliseconds until it has a slot, as far as is known. */
  readonly waitMs: number;
  /** Calls that wait on the lane, this one included. */
  readonly queued: number;
  /** Whether it waits because the service said so. */
  readonly isPaused: boolean;
}

/** What became of a slot: `kept`, the call is still under way; `used`, it was answered; `unused`, it was not counted. */
export type SlotOutcome = 'kept' | 'used' | 'unused';

/** A call that waits. */
interface Ticket {
  readonly id: string;
  readonly place: number;
  /** When its place is given up, because its request has ended without a word. */
  lostMs: number;
}

/** A call that is under way and not heard of for so long is taken for answered. */
const LEASE_MS = 15_000;
/** A call that waits asks at least this often, so that it learns that others gave up. */
const LONGEST_ASK_MS = 5_000;
/** A call that is this late to ask has ended with its request, and gives up its place. */
const LATE_MS = 2_000;
/** Calls that are late are looked for this often. */
const PRUNE_MS = 500;

/**
 * One lane of an account, as its Durable Object keeps it: `limit` slots, each free again one window after the answer of
 * its call came. Every step is safe to repeat. What a restart must not forget is written to the table.
 */
export class AccountLane {
  readonly #name: string;
  readonly #table: SlotTable;
  readonly #slots = new Map<string, StoredSlot>();
  readonly #tickets = new Map<string, Ticket>();
  /** By place. */
  readonly #queue: Ticket[] = [];
  #paused = { untilMs: 0, ms: 0 };
  #prunedMs = 0;

  constructor(name: string, table: SlotTable) {
    this.#name = name;
    this.#table = table;
  }

  /** Puts back a slot that the table knows. */
  restore(slot: StoredSlot): void {
    this.#slots.set(slot.id, slot);
  }

  /** Puts back a call that waits; in the order of places. */
  restoreTicket({ id, place }: StoredTicket, nowMs: number): void {
    this.#join({ id, place, lostMs: nowMs + LONGEST_ASK_MS + LATE_MS });
  }

  /** Puts back the pause that the table knows. */
  restorePause(untilMs: number, ms: number): void {
    this.#paused = { untilMs, ms };
  }

  /** Gives the call its slot, or the time after which to ask again. */
  turn(call: SlotCall, nowMs: number): SlotTurn {
    this.#tidy(call, nowMs);
    this.pause(call.pauseMs, nowMs);
    // It was granted before, and the answer was lost.
    if (this.#slots.has(call.id)) return this.#granted();
    const ticket = this.#tickets.get(call.id);
    const ahead = ticket ? this.#aheadOf(ticket.place) : this.#queue.length;
    const pauseMs = this.#paused.untilMs - nowMs;
    // Each call before it has a free slot to itself.
    const behind = ahead - (call.limit - this.#slots.size);
    if (pauseMs <= 0 && behind < 0) {
      this.#leave(call.id);
      this.#put({ id: call.id, lane: this.#name, state: 'flight', untilMs: nowMs + LEASE_MS });
      return this.#granted();
    }
    const waitMs = Math.max(1, pauseMs, this.#slotMs(call, { nowMs, behind }));
    const askMs = Math.min(waitMs, LONGEST_ASK_MS);
    const lostMs = nowMs + askMs + LATE_MS;
    if (ticket) ticket.lostMs = lostMs;
    else {
      const place = (this.#queue.at(-1)?.place ?? 0) + 1;
      this.#join({ id: call.id, place, lostMs });
      this.#table.putTicket({ id: call.id, lane: this.#name, place });
    }
    return { granted: false, askMs, waitMs, queued: this.#queue.length, isPaused: pauseMs > 0 };
  }

  /** Notes what became of a call. */
  settle(call: SlotCall, { outcome, nowMs }: { readonly outcome: SlotOutcome; readonly nowMs: number }): void {
    const { id, restMs, pauseMs } = call;
    this.pause(pauseMs, nowMs);
    const isKnown = this.#leave(id) || this.#slots.has(id);
    const slot = this.#slots.get(id);
    if (outcome === 'unused') {
      if (isKnown) this.#remove(id);
    } else if (outcome === 'kept') {
      if (slot?.state === 'flight') this.#put({ ...slot, untilMs: nowMs + LEASE_MS });
    } else {
      // Also for a call that was taken for answered, or is not known: the service has counted it all the same.
      const restsUntilMs = slot?.state === 'rest' ? slot.untilMs : 0;
      this.#put({ id, lane: this.#name, state: 'rest', untilMs: Math.max(restsUntilMs, nowMs + restMs) });
    }
  }

  /** Grants nothing for `ms` milliseconds. */
  pause(ms: number, nowMs: number): void {
    const untilMs = nowMs + Math.ceil(ms);
    if (!(ms > 0) || untilMs <= this.#paused.untilMs) return;
    this.#paused = { untilMs, ms: Math.ceil(ms) };
    this.#table.putPause(this.#name, untilMs, Math.ceil(ms));
  }

  /** Forgets what is over. No time can be further away than its own length: one that is was set before the clock went back. */
  #tidy({ restMs }: SlotCall, nowMs: number): void {
    let isSwept = false;
    for (const [id, slot] of this.#slots) {
      const untilMs = Math.min(slot.untilMs, nowMs + (slot.state === 'rest' ? restMs : LEASE_MS));
      if (slot.state === 'flight' && untilMs <= nowMs) this.#put({ ...slot, state: 'rest', untilMs: untilMs + restMs });
      else if (untilMs < slot.untilMs) this.#put({ ...slot, untilMs });
      else if (untilMs <= nowMs) {
        this.#slots.delete(id);
        isSwept = true;
      }
    }
    if (isSwept) this.#table.sweep(this.#name, nowMs);
    this.#paused.untilMs = Math.min(this.#paused.untilMs, nowMs + this.#paused.ms);
    if (Math.abs(nowMs - this.#prunedMs) < PRUNE_MS) return;
    this.#prunedMs = nowMs;
    const latestMs = nowMs + LONGEST_ASK_MS + LATE_MS;
    const lost = this.#queue.filter(({ lostMs }) => lostMs <= nowMs || lostMs > latestMs);
    for (const { id } of lost) {
      this.#leave(id);
      this.#table.remove(id);
    }
  }

  /** When the slot after those before the call is free. One under way rests a whole window from now at least. */
  #slotMs({ limit, restMs }: SlotCall, { nowMs, behind }: { nowMs: number; behind: number }): number {
    if (behind < 0) return 0;
    const freeAt = [...this.#slots.values()]
      .map(({ state, untilMs }) => (state === 'rest' ? untilMs : nowMs + restMs))
      .sort((a, b) => a - b);
    const rounds = Math.floor(behind / limit);
    return (freeAt[behind % limit] ?? nowMs + restMs) - nowMs + rounds * restMs;
  }

  #put(slot: StoredSlot): void {
    this.#slots.set(slot.id, slot);
    this.#table.put(slot);
  }

  #remove(id: string): void {
    this.#slots.delete(id);
    this.#table.remove(id);
  }

  #granted(): SlotTurn {
    return { granted: true, askMs: 0, waitMs: 0, queued: this.#queue.length, isPaused: false };
  }

  #join(ticket: Ticket): void {
    this.#tickets.set(ticket.id, ticket);
    this.#queue.push(ticket);
  }

  /** Whether it was there. */
  #leave(id: string): boolean {
    const ticket = this.#tickets.get(id);
    if (!ticket) return false;
    this.#tickets.delete(id);
    this.#queue.splice(this.#aheadOf(ticket.place), 1);
    return true;
  }

  /** How many wait before this place. */
  #aheadOf(place: number): number {
    let [low, high] = [0, this.#queue.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#queue[middle]?.place ?? place) < place) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
