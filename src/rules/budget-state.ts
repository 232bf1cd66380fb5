// The periods of a budget, what it keeps, and the steps that change it. budget.ts has the rules.
import { DAY_MS } from './limits.js';

/** How long the tokens of a budget last: a UTC day or month, for ever, or a number of milliseconds from the first create. */
export type BudgetPeriod = 'day' | 'month' | 'total' | number;

/** A period. */
interface Period {
  /** 0 for one without a start: `total`, and a number of milliseconds that has not begun. */
  readonly startMs: number;
  /** Null for one without an end. */
  readonly endMs: number | null;
}

/** The period at a time. One that is a number of milliseconds goes on from `sinceMs`, 0 for one that has not begun. */
export function periodAt(per: BudgetPeriod, nowMs: number, sinceMs: number): Period {
  if (per === 'total') return { startMs: 0, endMs: null };
  if (per === 'day') {
    const day = Math.floor(nowMs / DAY_MS) * DAY_MS;
    return { startMs: day, endMs: day + DAY_MS };
  }
  if (per === 'month') {
    const now = new Date(nowMs);
    const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()];
    return { startMs: Date.UTC(year, month), endMs: Date.UTC(year, month + 1) };
  }
  const isRunning = sinceMs > 0 && nowMs < sinceMs + per;
  return isRunning ? { startMs: sinceMs, endMs: sinceMs + per } : { startMs: 0, endMs: null };
}

/** Until when a create that lost its answer stays reserved: the end of the next period, or a day where there is none. */
export function lostUntilMs(per: BudgetPeriod, nowMs: number, sinceMs: number): number {
  const endMs = periodAt(per, Math.max(nowMs, sinceMs), sinceMs).endMs;
  if (typeof per === 'number') return (endMs ?? nowMs) + per;
  if (endMs === null) return nowMs + DAY_MS;
  return periodAt(per, endMs, endMs).endMs ?? endMs;
}

/** How long a store keeps a budget after its last change. A total is kept for ten years. */
export function keptMs(per: BudgetPeriod): number {
  if (per === 'total') return 3_650 * DAY_MS;
  // The learned prices outlive the period.
  return 2 * (typeof per === 'number' ? per : 31 * DAY_MS) + 40 * DAY_MS;
}

/** A limit on what may be spent. */
export interface BudgetScope {
  /** Tokens that may be spent in each period. */
  readonly maxTokens: number;
  /** How long a period is. */
  readonly per: BudgetPeriod;
}

/** A create that has reserved tokens and is not answered. */
export interface PendingCreate {
  /** What it costs; null while that is unknown: it then reserves all that is left. */
  readonly tokens: number | null;
  readonly priceClass: string;
  /** Whether the price was learned. A price that was not learned may be any. */
  readonly isSure: boolean;
  /** The calls in flight under its key, and until when each is waited for without a renewal. */
  readonly holders: ReadonlyMap<string, number>;
  /** An answer was lost, so a job may exist: until when the tokens stay reserved for it. Null: no answer was lost. */
  readonly lostUntilMs: number | null;
  /** The key that the SDK has derived from this one and sent in its place: the user knows the create by it, too. */
  readonly derivedKey?: string | undefined;
}

/** A create that was answered. It is kept under its key for {@link REMEMBERED_MS}. */
export interface SettledCreate {
  readonly jobId: string;
  /** What it cost; null where no answer has told that. */
  readonly tokens: number | null;
  readonly priceClass: string;
  /** Whether its price is that of its class. */
  readonly teaches: boolean;
  /** The start of the period in which it counts. */
  readonly startMs: number;
}

/** A budget in its present period. */
export interface BudgetState {
  /** 0 for `total`, and before the first create of a number of ms. */
  readonly startMs: number;
  readonly spentTokens: number;
  /** By idempotency key, the oldest first. */
  readonly pending: ReadonlyMap<string, PendingCreate>;
  /** Creates of this period that were answered without a price, by idempotency key. */
  readonly unpriced: ReadonlyMap<string, SettledCreate>;
  /** The last quote of each price class. */
  readonly prices: ReadonlyMap<string, number>;
  /** The answered creates that the step is about, as far as they are remembered. */
  readonly settled: ReadonlyMap<string, SettledCreate>;
}

/** Takes the tokens of a create before it is sent. */
export interface ReserveStep {
  readonly op: 'reserve';
  readonly key: string;
  /** The call that reserves: several may have the same key. */
  readonly holder: string;
  readonly priceClass: string;
  /** Whether creates of the class cost the same. The price of an edit may depend on its source. */
  readonly teaches: boolean;
  /** The price that this process has learned elsewhere; null for none. */
  readonly knownTokens: number | null;
  /** What the user estimates; null for no estimate. */
  readonly guessedTokens: number | null;
  /** Whether a create of an unknown price is refused. */
  readonly refusesUnknown: boolean;
}

/** One change of a budget. The same step twice has the effect of one. */
export type BudgetStep =
  | ReserveStep
  /** The create was answered. */
  | {
      readonly op: 'settle';
      readonly key: string;
      readonly jobId: string;
      readonly priceClass: string;
      readonly teaches: boolean;
      /** What the answer quotes; null for no quote. */
      readonly quotedTokens: number | null;
      /** Whether the job has ended already, and was not charged. */
      readonly isUncharged: boolean;
    }
  /** The call came to nothing: see `fateOf`. A refusal says that no job exists under the key. */
  | {
      readonly op: 'fail';
      readonly key: string;
      readonly holder: string;
      readonly fate: 'refused' | 'unsent' | 'lost';
      readonly derivedKey?: string | undefined;
    }
  /** The service says what a job was charged in the end. */
  | { readonly op: 'charge'; readonly key: string; readonly jobId: string; readonly tokens: number }
  /** The calls are still running. */
  | { readonly op: 'renew'; readonly calls: readonly (readonly [key: string, holder: string])[] }
  /** The user knows what became of the key. */
  | { readonly op: 'release'; readonly key: string }
  /** Only shows the budget. */
  | { readonly op: 'look' };

/** A step, and what it depends on. */
export interface BudgetTurn {
  readonly scope: BudgetScope;
  readonly step: BudgetStep;
  readonly nowMs: number;
}

/** What a step leads to. */
export interface BudgetReply {
  /**
   * `reserved`, or `held` under the same key before. `wait`: a create in flight has to be answered first. `refused`: too
   * little is left. `unknown`: the price is unknown, and such a create cannot go. `unpriced`: settled without a price.
   * `done`: all other steps.
   */
  readonly outcome: 'reserved' | 'held' | 'wait' | 'refused' | 'unknown' | 'unpriced' | 'done';
  /** What the create is taken to cost; null where that is unknown. */
  readonly tokens: number | null;
  /** The key of the reservation that is held, where the key of the step was derived from it. */
  readonly heldKey?: string | undefined;
  readonly spentTokens: number;
  readonly reservedTokens: number;
  readonly leftTokens: number;
  /** When the period ends; null where it does not. */
  readonly endMs: number | null;
  /** How many creates have lost their answer. */
  readonly unresolved: number;
}

/** How long an answered create is remembered, so that a rerun under its key is not counted again. */
export const REMEMBERED_MS = 7 * DAY_MS;

/** A budget from which nothing is spent. */
export const EMPTY_BUDGET: BudgetState = {
  startMs: 0,
  spentTokens: 0,
  pending: new Map(),
  unpriced: new Map(),
  prices: new Map(),
  settled: new Map(),
};
