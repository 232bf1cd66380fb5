// A create in the ledger: a union by phase, with one table of all transitions. The meaning of an entry depends on its
// phase, and on whether it has a live owner:
//
//   phase      with a live owner            without one
//   open       its price is reserved        nothing was sent: it reserves nothing, and resume() sends it
//   sent       a request is in flight       counts as lost
//   lost       a retry settles it           a job may exist: its price stays reserved until it is settled or expires
//   accepted   a call waits for the job     resume() waits for it
//   ended      a call handles the outcome   resume() yields it
//
// Pure.
import type { JobCall } from '../schemas/job.js';
import type { BudgetTerms, ExpectedPrice } from './budget.js';
import { DAY_MS } from './limits.js';
import type { JobRunState, RunRules } from './run-state.js';

export interface CountedBudget extends BudgetTerms {
  /** Start of the period in which the create was accepted. */
  readonly startMs?: number;
}

interface CreateFields extends ExpectedPrice {
  /** Idempotency key of the run's first create. */
  readonly key: string;
  readonly account: string;
  readonly call: JobCall;
  /** Body with upload IDs instead of files, or null until the files are uploaded. */
  readonly params: Readonly<Record<string, unknown>> | null;
  readonly atMs: number;
  readonly label?: string | undefined;
  /** The key of the current request: the entry's own, or one that the run derived from it. */
  readonly sentKey: string;
  /** Calls that own the entry, newest first. Each name consists of a process and a number. */
  readonly owners: readonly string[];
  readonly budgets: readonly CountedBudget[];
  /** When the entry began to count in its budgets, by the store's clock. */
  readonly sinceMs: number;
  readonly priceClass: string;
  /** If true, all creates of the class cost the same. */
  readonly hasFixedPrice: boolean;
  /** Digest of the params, if the caller chose the key. */
  readonly digest?: string | undefined;
  /** If true, the entry is retained until its file is stored. */
  readonly retainUntilStored: boolean;
  /** Rules of the `createAndWait` run, or null if no call waits for the job. */
  readonly rules: RunRules | null;
  /** State of the run, set when its first job ends. */
  readonly run?: JobRunState;
  /** The run's earlier jobs, by the key that was sent. */
  readonly earlierJobs?: Readonly<Record<string, string>>;
}

/** Not sent. */
export interface OpenCreate extends CreateFields {
  readonly phase: 'open';
  /** False while the run pauses between two creates, and after a claim. The next create must then reserve its price. */
  readonly isReserved: boolean;
}

/** Requests are in flight. */
export interface SentCreate extends CreateFields {
  readonly phase: 'sent';
  /** Calls with a request in flight. Each settles only its own request. */
  readonly senders: readonly string[];
}

/** The response was lost, or the process crashed after sending the request. A job may exist. */
export interface LostCreate extends CreateFields {
  readonly phase: 'lost';
}

/** The service created a job. */
export interface AcceptedCreate extends CreateFields {
  readonly phase: 'accepted';
  readonly jobId: string;
}

/** The job is final. */
export interface EndedCreate extends CreateFields {
  readonly phase: 'ended';
  readonly jobId: string;
  readonly status: string;
  /** When the file expires, by the store's clock. After that, only the key is retained. */
  readonly retainUntilMs: number;
}

export type CreateEntry = OpenCreate | SentCreate | LostCreate | AcceptedCreate | EndedCreate;
export type CreatePhase = CreateEntry['phase'];

/** The part of a closed entry that is retained to detect a reused key. */
export interface UsedKey {
  readonly jobId?: string | undefined;
  readonly digest?: string | undefined;
  /** All jobs of the run by the key that was sent, if there are several. */
  readonly earlierJobs?: Readonly<Record<string, string>> | undefined;
}

/** How long a create's key is retained after its entry is closed. */
export const KEY_TTL_MS = 7 * DAY_MS;
/** How long an unfinished entry is retained. */
export const ENTRY_TTL_MS = 70 * DAY_MS;
/** How long a completed job is retained if its link has no expiry. */
export const COMPLETED_TTL_MS = 7 * DAY_MS;

export type EntryEvent =
  /** The create's price was reserved. */
  | { readonly type: 'reserved'; readonly nowMs: number }
  | { readonly type: 'sent'; readonly owner: string }
  /** No request reached the service, or the service created no job. */
  | { readonly type: 'unsent'; readonly isReserved: boolean }
  /** The service confirmed that no job exists under the key. */
  | { readonly type: 'rejected'; readonly isReserved: boolean }
  /** The response to a request was lost, or the process crashed. */
  | { readonly type: 'responseLost' }
  | { readonly type: 'accepted'; readonly jobId: string; readonly nowMs: number }
  | { readonly type: 'final'; readonly jobId: string; readonly status: string; readonly retainUntilMs: number }
  /** The user confirmed that no job exists under the key, while a call works on the create. */
  | { readonly type: 'released' };

/**
 * All transitions: `NEXT_PHASE[phase][event]`. An event that the table doesn't list has no effect. For example, an
 * `unsent` retry doesn't prove that a lost create created no job.
 */
export const NEXT_PHASE: Readonly<Record<CreatePhase, Partial<Record<EntryEvent['type'], CreatePhase>>>> = {
  open: {
    reserved: 'open',
    sent: 'sent',
    unsent: 'open',
    rejected: 'open',
    responseLost: 'lost',
    accepted: 'accepted',
  },
  sent: { sent: 'sent', unsent: 'open', rejected: 'open', responseLost: 'lost', accepted: 'accepted' },
  lost: { rejected: 'open', accepted: 'accepted', released: 'sent' },
  accepted: { reserved: 'open', accepted: 'accepted', final: 'ended' },
  ended: { reserved: 'open', accepted: 'accepted', final: 'ended' },
};

/** Applies an event to an entry. Returns the same entry if the event has no effect in its phase. */
export function transition(entry: CreateEntry, event: EntryEvent): CreateEntry {
  if (NEXT_PHASE[entry.phase][event.type] === undefined) return entry;
  const fields = fieldsOf(entry);
  switch (event.type) {
    case 'reserved':
      return { ...fields, phase: 'open', isReserved: true, sinceMs: event.nowMs };
    case 'unsent':
    case 'rejected':
      return { ...fields, phase: 'open', isReserved: event.isReserved };
    case 'sent':
      return { ...fields, phase: 'sent', senders: withFirst(event.owner, sendersOf(entry)) };
    case 'released':
      return { ...fields, phase: 'sent', senders: entry.owners };
    case 'responseLost':
      return { ...fields, phase: 'lost' };
    case 'accepted':
      return { ...fields, phase: 'accepted', jobId: event.jobId, sinceMs: event.nowMs };
    case 'final': {
      const { jobId, status, retainUntilMs } = event;
      return { ...fields, phase: 'ended', jobId, status, retainUntilMs };
    }
  }
}

/** Returns the fields common to all phases. */
function fieldsOf(entry: CreateEntry): CreateFields {
  switch (entry.phase) {
    case 'open': {
      const { phase: _, isReserved: __, ...fields } = entry;
      return fields;
    }
    case 'sent': {
      const { phase: _, senders: __, ...fields } = entry;
      return fields;
    }
    case 'lost': {
      const { phase: _, ...fields } = entry;
      return fields;
    }
    case 'accepted': {
      const { phase: _, jobId: __, ...fields } = entry;
      return fields;
    }
    case 'ended': {
      const { phase: _, jobId: __, status: ___, retainUntilMs: ____, ...fields } = entry;
      return fields;
    }
  }
}

export function withFirst(owner: string, owners: readonly string[]): readonly string[] {
  return [owner, ...owners.filter((other) => other !== owner)];
}

export function sendersOf(entry: CreateEntry): readonly string[] {
  return entry.phase === 'sent' ? entry.senders : [];
}

/** Returns true if the service has a job for the create. */
export function isAccepted(entry: CreateEntry): entry is AcceptedCreate | EndedCreate {
  return entry.phase === 'accepted' || entry.phase === 'ended';
}

export function entryJobId(entry: CreateEntry | undefined): string | undefined {
  return entry && isAccepted(entry) ? entry.jobId : undefined;
}

/** Returns true if the job ended without a file. */
export function isFailedJob(entry: CreateEntry): boolean {
  return entry.phase === 'ended' && entry.status !== 'completed';
}

export function entryId(account: string, key: string): string {
  return `${account}/${key}`;
}

/** Returns the process of a call. */
export function processOf(owner: string): string {
  return owner.includes('#') ? owner.slice(0, owner.lastIndexOf('#')) : owner;
}
