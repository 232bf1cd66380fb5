import * as workers from 'cloudflare:workers';
import type { BudgetReply, BudgetScope, BudgetStep } from '../budget/budget-store.js';
import { systemClock } from '../clock.js';
import type { WebhookClaim } from '../webhooks/stores.js';
import { AccountLane, type SlotCall, type SlotOutcome, type SlotTurn } from './account-lane.js';
import { type BudgetTable, openBudgetTable } from './budget-table.js';
import { type EventClaim, type EventTable, openEventTable } from './event-table.js';
import { openSlotTable, type SlotTable } from './slot-table.js';
import type { SqlStorageLike } from './sql.js';

/** What is used of the state of a Durable Object. */
export interface DurableObjectStateLike {
  /** What the object keeps. */
  readonly storage: {
    /** Its SQLite. */
    readonly sql: SqlStorageLike;
    /** Writes all or nothing. */
    transactionSync<T>(write: () => T): T;
  };
}

/** What every Durable Object class has, as the types of Cloudflare's tools see it. */
export interface DurableObjectBase {
  /** Tells the types of Cloudflare's tools that this is a Durable Object. There is no such member at run time. */
  readonly __DURABLE_OBJECT_BRAND: never;
}

const DurableObject: abstract new (ctx: DurableObjectStateLike, env: unknown) => DurableObjectBase =
  workers.DurableObject as never;

/**
 * A Durable Object that keeps what all isolates of one account share: rate limits, handled webhooks and budgets. Export it
 * from the Worker's main module, bind it, and list it under `new_sqlite_classes` of a migration. It answers every call at
 * once. What a restart must not forget is in its storage.
 *
 * @example
 * export { GenAccount } from 'gen-client/cloudflare';
 */
export class GenAccount extends DurableObject {
  readonly #lanes = new Map<string, AccountLane>();
  readonly #slots: SlotTable;
  readonly #events: EventTable;
  readonly #budgets: BudgetTable;
  readonly #storage: DurableObjectStateLike['storage'];

  /** Called by the runtime. */
  constructor(ctx: DurableObjectStateLike, env: unknown) {
    super(ctx, env);
    const { sql } = ctx.storage;
    this.#storage = ctx.storage;
    this.#slots = openSlotTable(sql);
    const nowMs = systemClock.now();
    for (const ticket of this.#slots.tickets()) this.#lane(ticket.lane).restoreTicket(ticket, nowMs);
    for (const slot of this.#slots.slots()) this.#lane(slot.lane).restore(slot);
    for (const { lane, untilMs, ms } of this.#slots.pauses()) this.#lane(lane).restorePause(untilMs, ms);
    this.#events = openEventTable(sql, () => systemClock.now());
    this.#budgets = openBudgetTable(sql, () => systemClock.now());
  }

  /** Gives a call its slot, or the time after which to ask again. Safe to repeat. */
  takeTurn(call: SlotCall): SlotTurn {
    return this.#lane(call.lane).turn(call, systemClock.now());
  }

  /** Notes what became of a call. Safe to repeat. */
  settleSlot(call: SlotCall, outcome: SlotOutcome): void {
    this.#lane(call.lane).settle(call, { outcome, nowMs: systemClock.now() });
  }

  /** Lets nothing out on a lane for `ms` milliseconds. Safe to repeat. */
  pauseLane(lane: string, ms: number): void {
    this.#lane(lane).pause(ms, systemClock.now());
  }

  /** Takes a webhook event. Safe to repeat with the same claim. */
  claimEvent(claim: EventClaim): WebhookClaim {
    return this.#events.claim(claim);
  }

  /** Notes that an event was handled. Safe to repeat. */
  completeEvent(event: string, ttlMs: number): void {
    this.#events.complete(event, ttlMs);
  }

  /** Gives an event back, when the owner still holds it. Safe to repeat. */
  releaseEvent(event: string, owner: string): void {
    this.#events.release(event, owner);
  }

  /** Makes a step of a budget, whole or not at all. Safe to repeat. */
  applyBudget(scope: BudgetScope, step: BudgetStep): BudgetReply {
    return this.#storage.transactionSync(() => this.#budgets.apply(scope, step));
  }

  #lane(name: string): AccountLane {
    const lane = this.#lanes.get(name) ?? new AccountLane(name, this.#slots);
    this.#lanes.set(name, lane);
    return lane;
  }
}
