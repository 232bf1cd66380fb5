import type { JobCall } from './job.js';

/** The parts of a create that determine its price. */
export interface PricedCall {
  /** Namespace that creates the job. */
  readonly call: JobCall;
  /** Model alias. @default the service's own */
  readonly model?: string | undefined;
  /** Seconds of video. @default the service's own */
  readonly duration?: number | undefined;
  /** Resolution, for example `720p`. @default the service's own */
  readonly resolution?: string | undefined;
  /** `generate_audio` of the create. @default the service's own */
  readonly audio?: boolean | undefined;
}

/** Estimated price and duration of a create. */
export interface CostEstimate {
  /** Price in tokens, or undefined if it's unknown. */
  readonly tokens: number | undefined;
  /** `learned`: from the last quote for the same price. */
  readonly basis: 'learned' | 'unknown';
  /**
   * Expected milliseconds until the job ends: a mean of recent jobs with the same model, duration, and resolution.
   * Undefined until one has completed.
   */
  readonly durationMs: number | undefined;
}

/** A limit on what creates may spend. Create one with `createBudget`. */
export interface Budget {
  /** Returns the current usage. Rejects with a ConnectionError if the store is unavailable. */
  usage(): Promise<{
    /** Tokens of creates accepted in this period. */
    readonly spentTokens: number;
    /** Tokens reserved for creates in flight or without a response. A create with an unknown price reserves all tokens left. */
    readonly reservedTokens: number;
    /** Tokens left, or 0 if the limit is exceeded. */
    readonly leftTokens: number;
    /** Idempotency keys of creates without a response or a price. Send them again, or call `release`. */
    readonly unresolved: readonly string[];
    /** ISO timestamp when the next period begins, or null if there is none. */
    readonly resetsAt: string | null;
  }>;
  /**
   * Releases the tokens reserved for a create whose response was lost. Call it only if no job exists for the key, which
   * `usage().unresolved` lists. Rejects with a ConnectionError if the store is unavailable.
   *
   * @example
   * const budget = createBudget({ maxTokens: 2_000 });
   * for (const key of (await budget.usage()).unresolved) await budget.release(key);
   */
  release(idempotencyKey: string): Promise<void>;
  /**
   * Returns a budget with the same limit for another scope, for example one per tenant.
   *
   * @example
   * const budget = createBudget({ maxTokens: 2_000, per: 'month' });
   * await client.videos.create({ prompt: 'a fox at dawn' }, { budget: budget.scoped('tenant-7') });
   */
  scoped(scope: string): Budget;
}

export type BudgetUsage = Awaited<ReturnType<Budget['usage']>>;
