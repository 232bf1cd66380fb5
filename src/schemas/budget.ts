import type { Clock } from '../runtime/clock.js';
import type { JobCall } from './job.js';

/** What a create is about to spend: what its price depends on, and the key that it is sent under. */
export interface BudgetOrder {
  /** What the job is, for a price function. */
  readonly job: PricedCall;
  /** Creates of one class have one price: see `rules/price`. */
  readonly priceClass: string;
  /** Whether the class says what a create costs. The price of an edit may depend on its source. */
  readonly isFixedPrice: boolean;
  /** The last quote of the class that this process has seen. */
  readonly learnedTokens?: number | undefined;
  /** The key of the create. Under one key a budget is charged once. */
  readonly idempotencyKey: string;
  /** Ends the wait for the budget. */
  readonly signal?: AbortSignal | undefined;
  /** The most milliseconds that the create waits for the budget while nothing moves. @default 60_000 */
  readonly timeoutMs?: number | undefined;
  /** Whether the create has been sent: before that it may queue for its rate limit. @default always */
  readonly isSent?: (() => boolean) | undefined;
  /** The clock of the client. @default the system's */
  readonly clock?: Clock | undefined;
  /** Takes what the user should know of. */
  readonly warn?: ((message: string) => void) | undefined;
}

/** What the price of a job depends on. */
export interface PricedCall {
  /** The namespace that creates the job. */
  readonly call: JobCall;
  /** Model alias. @default the service's own */
  readonly model?: string | undefined;
  /** Seconds of video. @default the service's own */
  readonly duration?: number | undefined;
  /** `720p`, `high`. @default the service's own */
  readonly resolution?: string | undefined;
  /** `generate_audio` of the create. @default the service's own */
  readonly audio?: boolean | undefined;
}

/** What the answer to a create says about its cost. */
export interface SpentTokens {
  /** The service's job id. */
  readonly jobId: string;
  /** Tokens that were quoted. */
  readonly quotedTokens: number | undefined;
  /** Tokens left on the account. */
  readonly balanceTokens: number | undefined;
  /** Whether the job has ended already and was not charged. */
  readonly isUncharged: boolean;
}

/** Why a create came to nothing. */
export interface FailedCreate {
  /** What the call is rejected with. */
  readonly error: unknown;
  /** Whether the request was sent at all. */
  readonly wasSent: boolean;
  /** The key that the SDK has derived from the one of the order and sent in its place; the error names it. */
  readonly derivedKey?: string | undefined;
}

/** What a create has reserved. It is either answered or failed, and both return within two seconds. */
export interface BudgetReservation {
  /** The service has accepted the job: the reservation is settled at the quote. */
  answered(spent: SpentTokens): Promise<void>;
  /** The create failed: what was surely not accepted is given back, and what may have been is kept. */
  failed(failure: FailedCreate): Promise<void>;
}

/** A limit on what creates may spend. `createBudget` makes one. */
export interface Budget {
  /** Reserves what a create may cost. Rejects with a BudgetExceededError where that is not left. */
  reserve(order: BudgetOrder): Promise<BudgetReservation>;
  /**
   * The service says what a job was charged in the end, 0 for a failed one. Every budget of the same store that has counted
   * the job is corrected. Returns within two seconds. `clock` is the client's.
   */
  refund(jobId: string, chargedTokens: number, clock?: Clock): Promise<void>;
  /** The same limit for another scope, with tokens of its own. */
  scoped?(scope: string): Budget;
}

/** What a create would cost and how long its job would take, as far as they are known. */
export interface CostEstimate {
  /** Tokens; undefined where the price is unknown. */
  readonly tokens: number | undefined;
  /** `learned` from the last quote for the same price, or `unknown`. */
  readonly basis: 'learned' | 'unknown';
  /**
   * Milliseconds from the create to the end, a mean of the last jobs of the same model, duration and resolution; undefined
   * while none of them has completed.
   */
  readonly durationMs: number | undefined;
}
