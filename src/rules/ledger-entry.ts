// The entries of the ledger.
import type { JobCall } from '../schemas/job.js';
import type { BudgetTerms, ExpectedPrice } from './budget.js';
import { DAY_MS } from './limits.js';
import type { JobRunState, RunRules } from './run-state.js';

/**
 * How far a create has come. `open`: noted, and not sent. `sent`: it may have made a job. `accepted`: it has a job. `ended`:
 * its job is final. An entry that made no job, or has done its work, is gone.
 */
export type CreatePhase = 'open' | 'sent' | 'accepted' | 'ended';

/** A budget that counts a create, and the period in which it does. */
export interface CountedBudget extends BudgetTerms {
  /** The start of the period in which the create was accepted. */
  readonly startMs?: number;
}

/** What has become of a create. Its key is the idempotency key of the first create of its run. */
export interface CreateEntry extends ExpectedPrice {
  readonly key: string;
  /** The account that it belongs to. */
  readonly account: string;
  readonly call: JobCall;
  /** The body, with upload ids in the place of files; null until its files are uploaded. */
  readonly params: Readonly<Record<string, unknown>> | null;
  readonly atMs: number;
  readonly label?: string | undefined;
  readonly phase: CreatePhase;
  /** The key that is sent now: that of the entry, or one that the run has derived from it. */
  readonly sentKey: string;
  /** The calls that work on it: the process, and a number. */
  readonly holders: readonly string[];
  /** Whether an answer was lost, so that a job may exist. */
  readonly isLost?: true;
  /** Whether it counts in no budget now: its run pauses before it asks again. */
  readonly isAside?: true;
  /** Whether a read has shown the end of its job, with the charge. */
  readonly isCharged?: true;
  /** Whether its file is stored, so that only its budgets wait for the charge. */
  readonly isStored?: true;
  readonly budgets: readonly CountedBudget[];
  /** Since when it is reserved, by the store's time. */
  readonly sinceMs?: number;
  /** Creates of one class have one price. */
  readonly priceClass: string;
  /** Whether the class says what the create costs. */
  readonly teaches: boolean;
  /** Tells params that differ. */
  readonly digest?: string | undefined;
  /** Whether the entry stays until its file is stored, because it outlives the process. */
  readonly keeps: boolean;
  /** How `createAndWait` goes on; null for a create that is not waited for. */
  readonly rules: RunRules | null;
  /** Where the run stands, once its first job is over. */
  readonly run?: JobRunState;
  readonly jobId?: string;
  readonly status?: string;
  /** The earlier jobs of its run, by the key that was sent. */
  readonly tries?: Readonly<Record<string, string>>;
}

/** What is kept of an entry that has done its work, so that its key is known. */
export interface DoneEntry {
  readonly jobId?: string | undefined;
  readonly digest?: string | undefined;
  /** All jobs of its run, where there is more than one. */
  readonly tries?: Readonly<Record<string, string>> | undefined;
}

/** A process counts as alive for so long after it has last said so. */
export const HOLD_MS = 30_000;
/** How long the key of a create is known after its entry is gone. */
export const DONE_KEPT_MS = 7 * DAY_MS;
/** How long an entry is kept that nobody takes up. */
export const ENTRY_KEPT_MS = 70 * DAY_MS;

/** The name of an entry within its store. */
export function entryId(account: string, key: string): string {
  return `${account}/${key}`;
}

/** The process of a call. */
export function processOf(holder: string): string {
  return holder.slice(0, holder.lastIndexOf('#'));
}
