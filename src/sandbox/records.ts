// What a user of the sandbox reads back: logs, ledger and jobs.
import type { Job } from '../schemas/job.js';

/** A request that came; times are ISO 8601 (in the sandbox's time). Keys and signatures are cut out. */
export interface RequestRecord {
  /** @remarks The X-Request-Id of its answer. */
  readonly id: string;
  readonly at: string;
  readonly method: string;
  /** @remarks Path, without the base URL's prefix. */
  readonly path: string;
  /** @remarks The query string with its `?`, or empty. Signatures are cut out. */
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
  /** @remarks The JSON body as text, up to 2,000 characters; null for other bodies. */
  readonly body: string | null;
  /** @remarks Whose key came along; null for none that is known. */
  readonly account: string | null;
  readonly idempotencyKey: string | null;
  /** @remarks The answer's status; null while it is under way and where the connection was dropped. */
  readonly status: number | null;
  /** @remarks The code of a refusal. */
  readonly code: string | null;
  /** @remarks What a fault rule did to it. */
  readonly fault: 'status' | 'reset' | 'commitThenDrop' | 'truncate' | 'stall' | 'latency' | null;
}

/** An attempt to deliver a webhook (times are ISO 8601, in the sandbox's time). */
export interface DeliveryRecord {
  readonly id: string;
  /** @remarks The event's id, the same on every attempt and copy. */
  readonly eventId: string;
  readonly jobId: string;
  /** @remarks `job.completed`, say. */
  readonly type: string;
  readonly url: string;
  readonly at: string;
  /** @remarks 1 for the first; a copy or a redelivery counts on. */
  readonly attempt: number;
  readonly reason: 'event' | 'retry' | 'copy' | 'redelivery';
  /** @remarks As they were sent, signature included. */
  readonly headers: Readonly<Record<string, string>>;
  /** @remarks The exact text that was signed. */
  readonly body: string;
  /** @remarks The receiver's status; null where none came. */
  readonly status: number | null;
  readonly error: string | null;
  /** @remarks Whether the receiver answered 2xx. */
  readonly ok: boolean;
}

/** A movement of tokens (its time is ISO 8601, in the sandbox's time). */
export interface LedgerEntry {
  readonly at: string;
  /** @remarks `reserve` holds tokens for a job; `charge` spends them, `release` frees them. */
  readonly type: 'opening' | 'top_up' | 'reserve' | 'charge' | 'release';
  /** @remarks How many moved; never negative. */
  readonly tokens: number;
  /** @remarks For which job; null for what was paid in. */
  readonly jobId: string | null;
}

/** Reserved, spent and balance add up to paid (at any time). */
export interface LedgerView {
  /** @remarks Free tokens: what the next create may cost. */
  readonly balanceTokens: number;
  /** @remarks Tokens held for jobs under way. */
  readonly reservedTokens: number;
  /** @remarks Tokens charged for completed jobs. */
  readonly spentTokens: number;
  /** @remarks Tokens ever paid in, the opening balance included. */
  readonly paidTokens: number;
  /** @remarks Every movement, oldest first. */
  readonly entries: readonly LedgerEntry[];
}

/** A job, with what a test wants to know (as GET /v1/jobs/{id} shows it). */
export interface SandboxJob extends Job {
  account: string;
  /** @remarks Which kind of create made it. */
  kind: 'image' | 'video' | 'edit' | 'speech';
  prompt: string;
  /** @remarks The uploads it refers to. */
  uploadIds: readonly string[];
}
