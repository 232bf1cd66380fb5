// A create in the ledger: a union by phase, and one table of every change of phase. What an entry means follows from its
// phase and from whether one of its owners is alive:
//
//   phase      an owner is alive               no owner is alive
//   open       its price is reserved           nothing was sent: it reserves nothing, and resume() sends it
//   sent       a request is in flight          counts as lost
//   lost       a retry settles it              a job may exist: it is reserved until its key is answered, or expires
//   accepted   somebody waits for the job      resume() waits for it
//   ended      the outcome is being handled    resume() yields it
//
// Pure.
import type { JobCall } from '../schemas/job.js';
import type { BudgetTerms, ExpectedPrice } from './budget.js';
import { DAY_MS } from './limits.js';
import type { JobRunState, RunRules } from './run-state.js';

export interface CountedBudget extends BudgetTerms {
  /** The start of the period in which the create was accepted. */
  readonly startMs?: number;
}

interface CreateFields extends ExpectedPrice {
  /** The idempotency key of the first create of the run. */
  readonly key: string;
  readonly account: string;
  readonly call: JobCall;
  /** The body, with upload IDs in the place of files; null until the files are uploaded. */
  readonly params: Readonly<Record<string, unknown>> | null;
  readonly atMs: number;
  readonly label?: string | undefined;
  /** The key that is sent now: that of the entry, or one that the run has derived from it. */
  readonly sentKey: string;
  /** The calls that work on the entry, the newest first. A call is a process and a number. */
  readonly owners: readonly string[];
  readonly budgets: readonly CountedBudget[];
  /** Since when the entry counts in its budgets, by the store's clock. */
  readonly sinceMs: number;
  readonly priceClass: string;
  /** True if creates of the class always cost the same. */
  readonly hasFixedPrice: boolean;
  /** A digest of the params, if the caller has chosen the key. */
  readonly digest?: string | undefined;
  /** True if the entry stays until its file is stored, because it outlives the process. */
  readonly retainUntilStored: boolean;
  /** How `createAndWait` continues; null for a create that is not waited for. */
  readonly rules: RunRules | null;
  /** The state of the run, once its first job is over. */
  readonly run?: JobRunState;
  /** The earlier jobs of the run, by the key that was sent. */
  readonly earlierJobs?: Readonly<Record<string, string>>;
}

/** Not sent. */
export interface OpenCreate extends CreateFields {
  readonly phase: 'open';
  /** False while its run pauses between two creates, and after it was claimed: it asks for room before it is sent. */
  readonly isReserved: boolean;
}

/** Requests are in flight. */
export interface SentCreate extends CreateFields {
  readonly phase: 'sent';
  /** The calls that have sent it. One that leaves says nothing about what the others have sent. */
  readonly senders: readonly string[];
}

/** The response was lost, or the process crashed after it had sent the request. A job may exist. */
export interface LostCreate extends CreateFields {
  readonly phase: 'lost';
}

/** The service has a job. */
export interface AcceptedCreate extends CreateFields {
  readonly phase: 'accepted';
  readonly jobId: string;
}

/** The job is final. */
export interface EndedCreate extends CreateFields {
  readonly phase: 'ended';
  readonly jobId: string;
  readonly status: string;
  /** When only the key stays, by the store's clock: nobody can store the file any more. */
  readonly retainUntilMs: number;
}

export type CreateEntry = OpenCreate | SentCreate | LostCreate | AcceptedCreate | EndedCreate;
export type CreatePhase = CreateEntry['phase'];

/** What is retained of an entry that is over, so that its key is known. */
export interface UsedKey {
  readonly jobId?: string | undefined;
  readonly digest?: string | undefined;
  /** All jobs of the run, by the key that was sent, if there is more than one. */
  readonly earlierJobs?: Readonly<Record<string, string>> | undefined;
}

/** How long the key of a create is known after its entry is over. */
export const KEY_TTL_MS = 7 * DAY_MS;
/** How long an entry is retained that nobody resumes. */
export const ENTRY_TTL_MS = 70 * DAY_MS;
/** How long a completed job is retained whose link has no expiry. */
export const COMPLETED_TTL_MS = 7 * DAY_MS;

/** What happens to an entry. */
export type EntryEvent =
  /** Its price is reserved: it is going to be sent. */
  | { readonly type: 'reserved'; readonly nowMs: number }
  | { readonly type: 'sent'; readonly owner: string }
  /** No request under the key has reached the service, or the service has created no job for it. */
  | { readonly type: 'unsent'; readonly isReserved: boolean }
  /** The service says that no job exists under the key. */
  | { readonly type: 'rejected'; readonly isReserved: boolean }
  /** A request got no response, or its process crashed. */
  | { readonly type: 'unanswered' }
  | { readonly type: 'accepted'; readonly jobId: string; readonly nowMs: number }
  | { readonly type: 'final'; readonly jobId: string; readonly status: string; readonly retainUntilMs: number }
  /** The user knows that no job exists under the key, and a call works on it. */
  | { readonly type: 'released' };

/**
 * Every change of phase: `NEXT_PHASE[phase][event]`. An event that is missing means nothing in that phase: "unsent" says nothing about a create whose
 * response was lost, and the end of a job nothing about the next create of its run.
 */
export const NEXT_PHASE: Readonly<Record<CreatePhase, Partial<Record<EntryEvent['type'], CreatePhase>>>> = {
  open: { reserved: 'open', sent: 'sent', unsent: 'open', rejected: 'open', unanswered: 'lost', accepted: 'accepted' },
  sent: { sent: 'sent', unsent: 'open', rejected: 'open', unanswered: 'lost', accepted: 'accepted' },
  lost: { rejected: 'open', accepted: 'accepted', released: 'sent' },
  accepted: { reserved: 'open', accepted: 'accepted', final: 'ended' },
  ended: { reserved: 'open', accepted: 'accepted', final: 'ended' },
};

/** Applies an event to an entry. Returns the same entry if the event means nothing in its phase. */
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
    case 'unanswered':
      return { ...fields, phase: 'lost' };
    case 'accepted':
      return { ...fields, phase: 'accepted', jobId: event.jobId, sinceMs: event.nowMs };
    case 'final': {
      const { jobId, status, retainUntilMs } = event;
      return { ...fields, phase: 'ended', jobId, status, retainUntilMs };
    }
  }
}

/** The fields that an entry has in every phase. */
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
  return [owner, ...owners.filter((it) => it !== owner)];
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

/** Returns true if the job has ended without a file. */
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
