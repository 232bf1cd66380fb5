import type { JobCall } from './job.js';

/** What a create is about to spend: what its price depends on, and the key that it is sent under. */
export interface BudgetOrder {
  /** The call and the params that a price depends on, as one text: see `priceClassOf`. */
  readonly priceClass: string;
  /** The key of the create. Under one key a budget is charged once. */
  readonly idempotencyKey: string;
  /** What the job is, for a price function. */
  readonly job: PricedCall;
  /** Ends the wait for the budget. */
  readonly signal?: AbortSignal | undefined;
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

/** What the answer to a create says of its cost. */
export interface SpentTokens {
  /** The service's job id. */
  readonly jobId: string;
  /** Tokens that were quoted. */
  readonly quotedTokens: number | undefined;
  /** Tokens left on the account. */
  readonly balanceTokens: number | undefined;
  /** When the service created the job, ISO 8601. */
  readonly createdAt: string | undefined;
  /** Whether the job has ended already and was not charged. */
  readonly isUncharged: boolean;
}

/** Why a create came to nothing. */
export interface FailedCreate {
  /** What the call is rejected with. */
  readonly error: unknown;
  /** Whether the request was sent at all. */
  readonly wasSent: boolean;
  /** Whether an earlier attempt of the call may have been accepted. */
  readonly wasRetried: boolean;
}

/** What a create has reserved. It is either answered or failed. */
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
  /** A job has ended and was not charged: its tokens are given back. A job of another budget changes nothing. */
  refund(jobId: string): Promise<void>;
}

/** What a create would cost, as far as it is known. */
export interface CostEstimate {
  /** Tokens; undefined where the price is unknown. */
  readonly tokens: number | undefined;
  /** `learned` from the last quote for the same price, or `unknown`. */
  readonly basis: 'learned' | 'unknown';
}
