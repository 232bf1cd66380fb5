import type { JobCall } from './job.js';

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

/** A limit on what creates may spend. `createBudget` makes one. */
export interface Budget {
  /** How the budget stands now. Rejects where its store does not answer. */
  usage(): Promise<{
    /** Tokens of creates that were answered in this period. */
    readonly spentTokens: number;
    /** Tokens of creates that are in flight, or whose answer was lost. One of an unknown price reserves all that is left. */
    readonly reservedTokens: number;
    /** Tokens that are left; 0 where the limit is passed. */
    readonly leftTokens: number;
    /** The idempotency keys of creates whose answer or price is not known. Send them again, or call `release`. */
    readonly unresolved: readonly string[];
    /** ISO timestamp at which the next period begins; null without one. */
    readonly resetsAt: string | null;
  }>;
  /**
   * Gives back what is reserved for a create whose answer was lost. Call it when you know that the service has made no job
   * under the key, which `usage().unresolved` lists. It does not free a create that is in flight. Rejects where the store
   * does not answer.
   */
  release(idempotencyKey: string): Promise<void>;
  /** The same limit for another scope, with tokens of its own. */
  scoped(scope: string): Budget;
}

export type BudgetUsage = Awaited<ReturnType<Budget['usage']>>;
