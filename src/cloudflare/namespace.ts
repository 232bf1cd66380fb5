import * as workers from 'cloudflare:workers';
import type { BudgetReply, BudgetScope, BudgetStep } from '../budget/budget-store.js';
import { callObserver } from '../callbacks.js';
import { type Clock, sleep } from '../clock.js';
import { Deadline } from '../deadline.js';
import { GenError } from '../errors/gen-error.js';
import type { WebhookClaim } from '../webhooks/stores.js';
import type { SlotCall, SlotOutcome, SlotTurn } from './account-lane.js';
import type { EventClaim } from './event-table.js';

/** The object as another isolate sees it. */
export interface GenAccountStub {
  takeTurn(call: SlotCall): Promise<SlotTurn>;
  settleSlot(call: SlotCall, outcome: SlotOutcome): Promise<void>;
  pauseLane(lane: string, ms: number): Promise<void>;
  claimEvent(claim: EventClaim): Promise<WebhookClaim>;
  completeEvent(event: string, ttlMs: number): Promise<void>;
  releaseEvent(event: string, owner: string): Promise<void>;
  applyBudget(scope: BudgetScope, step: BudgetStep): Promise<BudgetReply>;
}

/** What is used of the binding of a {@link GenAccount}. `env.ACCOUNT` has it. */
export interface GenAccountNamespace {
  /** The id of the object with a name. */
  idFromName(name: string): unknown;
  /** The object with an id. */
  get(id: never): unknown;
}

/** How an object is asked. */
export interface AskOptions {
  readonly namespace: GenAccountNamespace;
  readonly name: string;
  /** Longest wait for one answer, in milliseconds. */
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** How often an object is asked in all, when it does not answer. */
const TRIES = 5;
/** Milliseconds before the second try. Each further one waits twice as long. */
const FIRST_PAUSE_MS = 20;

/**
 * Asks the object, and asks again when that fails: an object may be moved, restarted or updated at any time, and every
 * step is safe to repeat.
 */
export async function askObject<T>(options: AskOptions, ask: (stub: GenAccountStub) => Promise<T>): Promise<T> {
  const { namespace, name, timeoutMs, clock } = options;
  const late = () => new GenError(`The Durable Object "${name}" did not answer within ${timeoutMs} ms.`);
  for (let pauseMs = FIRST_PAUSE_MS, tries = 1; ; pauseMs *= 2, tries++) {
    const deadline = new Deadline({ clock, ms: timeoutMs, signal: undefined, late });
    try {
      // A stub is broken once it has failed.
      const stub = namespace.get(namespace.idFromName(name) as never) as GenAccountStub;
      return await deadline.race(ask(stub));
    } catch (error) {
      if (tries >= TRIES || isOverloaded(error)) throw error;
    } finally {
      deadline.end();
    }
    await sleep(clock, pauseMs * (0.5 + Math.random()));
  }
}

/** An object that has too much to do must not be asked more often for it. */
function isOverloaded(error: unknown): boolean {
  return typeof error === 'object' && error !== null && Reflect.get(error, 'overloaded') === true;
}

/** Lets work go on when its request has been answered. What it rejects with goes to `failed`. */
export function inBackground(work: Promise<unknown>, failed: (error: unknown) => void): void {
  const done = work.catch(failed);
  callObserver(() => workers.waitUntil?.(done));
}
