// Only importer of p-retry.
import pRetry from 'p-retry';
import { APIError, ConnectionError, ResponseError, TimeoutError } from '../errors/index.js';
import { documentedStatus } from './decode-error.js';

/** Milliseconds before the first retry; doubles with each. */
const FIRST_BACKOFF_MS = 500;
const LONGEST_BACKOFF_MS = 8_000;
/** A call gives up on 429s after waiting this many times `maxRetryAfterMs` in all: it must come to an end. */
const MOST_WAITS = 10;
const RETRIED_STATUS: readonly number[] = [408, 500, 502, 503, 504];

/** When a call is sent again. */
export interface RetryPolicy {
  readonly maxRetries: number;
  readonly maxRetryAfterMs: number;
  /** Whether the service's 429 is waited out. */
  readonly waits: boolean;
  /** Whether the same body can be sent again. */
  readonly repeatable: boolean;
  readonly signal: AbortSignal | undefined;
  /** Waits before a retry. */
  readonly pause: (plan: RetryPlan, error: Error) => Promise<void>;
}

/** What follows a failed attempt. */
export interface RetryPlan {
  readonly delayMs: number;
  /** A 429, which is not counted as a failure. */
  readonly limited: boolean;
}

/** How a call has gone so far. */
export interface RetryState {
  readonly failures: number;
  readonly limited: number;
  readonly limitedMs: number;
}

/** Runs the attempt until it succeeds or the policy gives up; then it rejects with the last attempt's error. */
export function withRetries<T>(attempt: (number: number) => Promise<T>, policy: RetryPolicy): Promise<T> {
  let state: RetryState = { failures: 0, limited: 0, limitedMs: 0 };
  return pRetry(attempt, {
    // Counted here: p-retry's own count would take a waited-out 429 for the last failure when maxRetries is 0.
    retries: Number.POSITIVE_INFINITY,
    minTimeout: 0,
    signal: policy.signal,
    async shouldRetry({ error }) {
      const plan = planRetry(error, state, policy);
      if (!plan) return false;
      state = plan.limited
        ? { ...state, limited: state.limited + 1, limitedMs: state.limitedMs + plan.delayMs }
        : { ...state, failures: state.failures + 1, limited: 0 };
      await policy.pause(plan, error);
      return true;
    },
  });
}

/** Whether and when to send again after this error; undefined to give up. */
function planRetry(error: Error, state: RetryState, policy: Limits): RetryPlan | undefined {
  if (!policy.repeatable) return undefined;
  const asked = APIError.isInstance(error) ? error.retryAfterMs : undefined;
  if (asked !== undefined && asked > policy.maxRetryAfterMs) return undefined;
  if (APIError.isInstance(error) && documentedStatus(error) === 429) return planWait(asked, state, policy);
  if (state.failures >= policy.maxRetries || !isTransient(error)) return undefined;
  return { delayMs: Math.max(asked ?? 0, backoff(state.failures)), limited: false };
}

type Limits = Pick<RetryPolicy, 'maxRetries' | 'maxRetryAfterMs' | 'waits' | 'repeatable'>;

function planWait(asked: number | undefined, state: RetryState, policy: Limits): RetryPlan | undefined {
  const waitMs = asked || backoff(state.limited);
  const mostMs = policy.maxRetryAfterMs * (asked === undefined ? 1 : MOST_WAITS);
  if (!policy.waits || state.limitedMs + waitMs > Math.max(mostMs, asked ?? 0)) return undefined;
  // Later than asked by up to a tenth, so that those who wait do not come back in one moment. Never earlier.
  return { delayMs: waitMs + Math.random() * Math.min(waitMs / 10, 1_000), limited: true };
}

function isTransient(error: Error): boolean {
  if (!APIError.isInstance(error)) {
    return ConnectionError.isInstance(error) || TimeoutError.isInstance(error) || ResponseError.isInstance(error);
  }
  if (error.code === 'dispatch_disabled' && error.retryAfterMs === undefined) return false;
  return RETRIED_STATUS.includes(documentedStatus(error));
}

function backoff(failures: number): number {
  return Math.min(FIRST_BACKOFF_MS * 2 ** failures, LONGEST_BACKOFF_MS) * (0.5 + Math.random() / 2);
}
