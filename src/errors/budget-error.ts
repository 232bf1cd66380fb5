import { GenError } from './gen-error.js';

/** What is known of a create that a budget refuses. */
export interface BudgetRefusal {
  /** Tokens that the create would cost; undefined where the price is unknown. */
  readonly estimateTokens: number | undefined;
  /** Tokens that are left of the budget. */
  readonly leftTokens: number;
  /** ISO timestamp at which the next period begins; null for a budget without periods. */
  readonly resetsAt: string | null;
  /** The name of the budget. */
  readonly scope: string;
  /** What it was caused by. */
  readonly cause?: unknown;
}

/** A create would pass a budget, so it was not sent. */
export class BudgetExceededError extends GenError {
  protected static override get family() {
    return 'GenError/BudgetExceededError';
  }

  /** Always `budget_exceeded`. */
  readonly code = 'budget_exceeded';
  /** Tokens that the create would cost; undefined where the price is unknown. */
  readonly estimateTokens: number | undefined;
  /** Tokens that are left of the budget. */
  readonly leftTokens: number;
  /** ISO timestamp at which the next period begins; null for a budget without periods. */
  readonly resetsAt: string | null;
  /** The name of the budget. */
  readonly scope: string;
  constructor(message: string, details: BudgetRefusal) {
    super(message, { ...details, recovery: 'top_up' });
    this.estimateTokens = details.estimateTokens;
    this.leftTokens = details.leftTokens;
    this.resetsAt = details.resetsAt;
    this.scope = details.scope;
  }
}
