// What a user of the sandbox reads: logs, ledger and jobs.
import type { Job } from '../../schemas/job.js';

/** One request that reached the sandbox. */
export interface RequestRecord {
  /** The id that its answer carries. */
  readonly id: string;
  /** ISO 8601, in the sandbox's time. */
  readonly at: string;
  /** The HTTP method. */
  readonly method: string;
  /** The path, without the prefix of the base URL. */
  readonly path: string;
  /** The query string with its `?`, or an empty string. Signatures are removed. */
  readonly query: string;
  /** The request's headers. Keys are removed. */
  readonly headers: Readonly<Record<string, string>>;
  /** The JSON body as text, up to 2,000 characters; null for other bodies. */
  readonly body: string | null;
  /** The account of the key; null for an unknown key and for none. */
  readonly account: string | null;
  /** The Idempotency-Key header; null where it is missing. */
  readonly idempotencyKey: string | null;
  /** The status of the answer; null while the request is under way and where the connection was dropped. */
  readonly status: number | null;
  /** The error code of the answer; null for a success. */
  readonly code: string | null;
  /** What a fault rule did to it; null where none applied. */
  readonly fault: 'status' | 'reset' | 'commitThenDrop' | 'truncate' | 'stall' | 'latency' | null;
}

/** One attempt to deliver a webhook. */
export interface DeliveryRecord {
  /** The id of this attempt. */
  readonly id: string;
  /** The event's id, the same on every attempt and copy. */
  readonly eventId: string;
  /** The job the event is about. */
  readonly jobId: string;
  /** The type of the event, for example `job.completed`. */
  readonly type: string;
  /** The URL it was sent to. */
  readonly url: string;
  /** ISO 8601, in the sandbox's time. */
  readonly at: string;
  /** Counted from 1, copies and redeliveries included. */
  readonly attempt: number;
  /** Why it was sent. */
  readonly reason: 'event' | 'retry' | 'copy' | 'redelivery';
  /** The headers as they were sent, signature included. */
  readonly headers: Readonly<Record<string, string>>;
  /** The exact text that was signed. */
  readonly body: string;
  /** The status that the receiver answered; null where no answer came. */
  readonly status: number | null;
  /** Why no answer came; null where one came. */
  readonly error: string | null;
  /** Whether the receiver answered 2xx. */
  readonly ok: boolean;
}

/** One movement in an account's ledger. */
export interface LedgerEntry {
  /** ISO 8601, in the sandbox's time. */
  readonly at: string;
  /** `reserve` holds tokens for a job, `charge` spends them, `release` frees them. */
  readonly type: 'opening' | 'top_up' | 'reserve' | 'charge' | 'release';
  /** How many tokens moved; never negative. */
  readonly tokens: number;
  /** The job it is about; null for what was paid in. */
  readonly jobId: string | null;
  /** Free tokens after this movement. */
  readonly balanceTokens: number;
}

/** An account's money: `reservedTokens + spentTokens + balanceTokens` is always `paidTokens`. */
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

/** A job as GET /v1/jobs/{job_id} shows it, and what a test wants to know about it. */
export interface SandboxJob extends Job {
  /** The account it belongs to. */
  account: string;
  /** The kind of call that created it. */
  kind: 'image' | 'video' | 'edit' | 'speech';
  /** The prompt it was created with. */
  prompt: string;
  /** The ids of the uploads that it refers to. */
  uploadIds: readonly string[];
}
