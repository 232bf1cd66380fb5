/** How long the tokens of a budget last: a UTC day or month, for ever, or a number of milliseconds from the first create. */
export type BudgetPeriod = 'day' | 'month' | 'total' | number;

/** Which budget a step is about. */
export interface BudgetScope {
  /** The name of the budget. Budgets of one name share one account of tokens. */
  readonly name: string;
  /** Tokens that may be spent in each period. */
  readonly maxTokens: number;
  /** How long they last. */
  readonly per: BudgetPeriod;
}

/** One change of a budget. A store makes each as one atomic step, and the same step twice is the same as once. */
export type BudgetStep =
  /** Takes the tokens of a create before it is sent. */
  | {
      readonly op: 'reserve';
      /** The idempotency key of the create. */
      readonly key: string;
      /** Marks the call that reserves, because several calls may have the same key. */
      readonly holder: string;
      readonly priceClass: string;
      /** What the caller says that the price is, where none is learned; null where it does not say. */
      readonly guessedTokens: number | null;
      /** Whether a create of an unknown price is refused. */
      readonly refusesUnknown: boolean;
      /** Milliseconds after which a create that has not been answered counts as lost; four times that for an unknown price. */
      readonly leaseMs: number;
    }
  /** The create was answered. */
  | {
      readonly op: 'settle';
      readonly key: string;
      readonly jobId: string;
      readonly priceClass: string;
      /** What the job costs; null where the service does not say. */
      readonly tokens: number | null;
      /** The price that is learned from it; null for none. */
      readonly quotedTokens: number | null;
      /** The job was created before the present period, and belongs to the one before. */
      readonly isEarlier: boolean;
    }
  /** The create was refused, or never sent. With a holder, only that call's own unanswered reservation is released. */
  | { readonly op: 'release'; readonly key: string; readonly holder: string | null }
  /** The answer was lost: the reservation stays, and nobody waits for it any longer. */
  | { readonly op: 'keep'; readonly key: string }
  /** The job ended uncharged. */
  | { readonly op: 'refund'; readonly jobId: string }
  /** Changes nothing. */
  | { readonly op: 'look' };

/** What a step has led to. */
export interface BudgetReply {
  /**
   * `reserved`, or `held` under the same key before. `wait`: an unanswered create comes first. `refused`: too little is
   * left. `unknown`: the price is unknown, and such creates are refused. `done`: all other steps.
   */
  readonly outcome: 'reserved' | 'held' | 'wait' | 'refused' | 'unknown' | 'done';
  /** What the create is taken to cost; null where that is unknown. */
  readonly tokens: number | null;
  /** Tokens of settled creates in this period. */
  readonly spentTokens: number;
  /** Tokens of creates that are not settled. */
  readonly reservedTokens: number;
  /** When the period began, in milliseconds since the epoch; 0 for `total`, and before the first create of a number of ms. */
  readonly startMs: number;
  /** When it ends; null where it does not. */
  readonly endMs: number | null;
}

/** Where budgets are kept. Share one between processes to share their budgets. */
export interface BudgetStore {
  /** Makes a step atomically, by a clock that all who share the store agree on. */
  apply(scope: BudgetScope, step: BudgetStep): Promise<BudgetReply>;
}
