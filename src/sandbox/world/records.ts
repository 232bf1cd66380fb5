// What a user of the sandbox reads back: logs, ledger and jobs.
import type { Job } from '../../schemas/job.js';

/** One request that reached the sandbox. */
export interface RequestRecord {
  /** The X-Request-Id of its answer. */
  readonly id: string;
  /** ISO 8601, in the sandbox's time. */
  readonly at: string;
  /** HTTP method. */
  readonly method: string;
  /** Path, without the base URL's prefix. */
  readonly path: string;
  /** The query string with its `?`, or empty. Signatures are cut out. */
  readonly query: string;
  /** The request's headers, with keys and signatures cut out. */
  readonly headers: Readonly<Record<string, string>>;
  /** The JSON body as text, up to 2,000 characters; null for other bodies. */
  readonly body: string | null;
  /** Whose key came along; null for none that is known. */
  readonly account: string | null;
  /** The Idempotency-Key header. */
  readonly idempotencyKey: string | null;
  /** The answer's status; null while it is under way and where the connection was dropped. */
  readonly status: number | null;
  /** The code of a refusal. */
  readonly code: string | null;
  /** What a fault rule did to it. */
  readonly fault: 'status' | 'reset' | 'commitThenDrop' | 'truncate' | 'stall' | 'latency' | null;
}

/** One attempt to deliver a webhook. */
export interface DeliveryRecord {
  /** Its own id, for `sandbox.redeliver`. */
  readonly id: string;
  /** The event's id, the same on every attempt and copy. */
  readonly eventId: string;
  /** The job the event is about. */
  readonly jobId: string;
  /** `job.completed`, say. */
  readonly type: string;
  /** Where it was sent. */
  readonly url: string;
  /** ISO 8601, in the sandbox's time. */
  readonly at: string;
  /** 1 for the first; a copy or a redelivery counts on. */
  readonly attempt: number;
  /** Why it was sent. */
  readonly reason: 'event' | 'retry' | 'copy' | 'redelivery';
  /** As they were sent, signature included. */
  readonly headers: Readonly<Record<string, string>>;
  /** The exact text that was signed. */
  readonly body: string;
  /** The receiver's status; null where none came. */
  readonly status: number | null;
  /** What went wrong on the way. */
  readonly error: string | null;
  /** Whether the receiver answered 2xx. */
  readonly ok: boolean;
}

/** One movement in an account's ledger. */
export interface LedgerEntry {
  /** ISO 8601, in the sandbox's time. */
  readonly at: string;
  /** `reserve` holds tokens for a job; `charge` spends them, `release` frees them. */
  readonly type: 'opening' | 'top_up' | 'reserve' | 'charge' | 'release';
  /** How many moved; never negative. */
  readonly tokens: number;
  /** For which job; null for what was paid in. */
  readonly jobId: string | null;
}

/** An account's money as it stands: `reservedTokens + spentTokens + balanceTokens` is always `paidTokens`. */
export interface LedgerView {
  /** Free tokens: what the next create may cost. */
  readonly balanceTokens: number;
  /** Tokens held for jobs under way. */
  readonly reservedTokens: number;
  /** Tokens charged for completed jobs. */
  readonly spentTokens: number;
  /** Tokens ever paid in, the opening balance included. */
  readonly paidTokens: number;
  /** Every movement, oldest first. */
  readonly entries: readonly LedgerEntry[];
}

/** A job as GET /v1/jobs/{id} shows it, with what a test wants to know beside it. */
export interface SandboxJob extends Job {
  /** The account it belongs to. */
  account: string;
  /** Which kind of create made it. */
  kind: 'image' | 'video' | 'edit' | 'speech';
  /** The prompt it was created with. */
  prompt: string;
  /** The uploads it refers to. */
  uploadIds: readonly string[];
}
