import type { RequestErrorCode } from './codes.js';
import { GenError } from './gen-error.js';

/** What is known of a call that got no usable answer. */
export interface CallDetails {
  /** The HTTP method of the request. */
  readonly method?: string;
  /** The URL of the request, without its query. */
  readonly url?: string;
  /** The key of the create. A create without an answer may have made its job: repeat it under this key. */
  readonly idempotencyKey?: string | undefined;
  /** How many attempts were made. */
  readonly attempts?: number;
  /** What was thrown underneath. */
  readonly cause?: unknown;
}

/** Refused before any call: the documented rules say that the service would refuse it. */
export class PreflightError extends GenError {
  protected static override get family() {
    return 'GenError/PreflightError';
  }

  /** The code that the service itself would give. */
  readonly code: RequestErrorCode;
  /** The parameter at fault. */
  readonly param: string;
  /** The HTTP status to answer the sender of the params with. */
  readonly status: 400;

  constructor(
    message: string,
    details: { readonly code: RequestErrorCode; readonly param: string; readonly cause?: unknown },
  ) {
    super(message, { ...details, recovery: 'change_request' });
    this.status = 400;
    this.code = details.code;
    this.param = details.param;
  }
}

/** A call that got no usable answer: what was sent, how often, and under which key. */
class CallError extends GenError {
  /** The HTTP method of the request. */
  readonly method: string | undefined;
  /** The URL of the request, without its query. */
  readonly url: string | undefined;
  /** The Idempotency-Key that was sent: calling again with it never makes a second job. */
  override readonly idempotencyKey: string | undefined;
  /** How many times the request was sent. */
  readonly attempts: number;

  constructor(message: string, details: CallDetails = {}) {
    super(message, { ...details, recovery: 'retry' });
    this.method = details.method;
    this.url = details.url;
    this.idempotencyKey = details.idempotencyKey;
    this.attempts = details.attempts ?? 1;
  }
}

/** The service could not be reached, or the connection broke before the answer was whole. */
export class ConnectionError extends CallError {
  protected static override get family() {
    return 'GenError/ConnectionError';
  }
}

/** No whole answer within `timeoutMs`. */
export class TimeoutError extends CallError {
  protected static override get family() {
    return 'GenError/TimeoutError';
  }

  /** The limit that was passed, in milliseconds. */
  readonly timeoutMs: number | undefined;

  constructor(message: string, details: CallDetails & { readonly timeoutMs?: number } = {}) {
    super(message, details);
    this.timeoutMs = details.timeoutMs;
  }
}

/** The service answered with success, but not in the documented shape. */
export class ResponseError extends CallError {
  protected static override get family() {
    return 'GenError/ResponseError';
  }

  /** Where in the body the essential is missing or mistyped, for example `data.job.id`. */
  readonly path: string | undefined;

  constructor(message: string, details: CallDetails & { readonly path?: string | undefined } = {}) {
    super(message, details);
    this.path = details.path;
  }
}

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
  /**
   * `spent`: there is no room in this period. `unresolved`: the budget is full only of creates whose outcome or price is not
   * known yet.
   */
  readonly reason: 'spent' | 'unresolved';
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
  /** `spent`, or `unresolved` while creates without an answer or a price hold the rest: ask again soon. */
  readonly reason: 'spent' | 'unresolved';
  constructor(message: string, details: BudgetRefusal) {
    super(message, { ...details, recovery: details.reason === 'spent' ? 'top_up' : 'retry_later' });
    this.estimateTokens = details.estimateTokens;
    this.leftTokens = details.leftTokens;
    this.resetsAt = details.resetsAt;
    this.scope = details.scope;
    this.reason = details.reason;
  }
}
