import type { Budget } from './budget.js';

/** What every call takes as its last argument. */
export interface RequestOptions {
  /** Ends the call at once, in every phase; it rejects with the signal's own reason. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds for one attempt: connect, headers and the whole JSON body. @default the client's (60_000) */
  readonly timeoutMs?: number | undefined;
  /** How many failures are retried; a waited-out 429 is none. @default the client's (3) */
  readonly maxRetries?: number | undefined;
  /** The key under which a creating call makes one job at most. @default a fresh UUID per call */
  readonly idempotencyKey?: string | undefined;
  /** Extra headers for this call. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Whether a call that breaks a documented rule is refused before it is sent; `'strict'` refuses undocumented fields too. @default the client's (true) */
  readonly preflight?: boolean | 'strict' | undefined;
  /** A limit on what the call may spend, on top of the client's. Only a create spends. */
  readonly budget?: Budget | undefined;
}
