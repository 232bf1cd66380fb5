// Interfaces of the ledger for the code that sends and runs creates.

import type { CreatePhase } from '../rules/create-entry.js';
import type { RequestOptions } from '../rules/options.js';
import type { JobRunState, RunRules } from '../rules/run-state.js';
import type { Job, JobCall } from '../schemas/job.js';

/** Records how jobs ended. One object per store. */
export interface JobRecords {
  /**
   * Records a job's end, and waits briefly for the store. Calls `recorded` with true if this call ended the entry, with
   * false if it had already ended, or with undefined if there is none. Reports a failure to `warn`.
   */
  recordEnd(
    jobId: string,
    end: {
      readonly status: string;
      readonly chargedTokens: number | undefined;
      readonly expiresMs: number | undefined;
    },
    report: { recorded(isNew: boolean | undefined): void; warn(message: string): void },
  ): Promise<void>;
}

/** A create's entry in one store. Its call owns the entry. */
export interface LedgerCreate {
  readonly records: JobRecords;
  readonly owner: string;
  /** Records the run's state before a pause, so that a crashed run resumes from it. */
  save(state: JobRunState, signal?: AbortSignal): Promise<void>;
  /** Ends the run. `isDelivered` is true if the program has the outcome. With `caller`, waits briefly for the store. */
  end(isDelivered: boolean, caller?: Pick<RequestOptions, 'signal'>): Promise<void>;
}

/** The creates of one `createAndWait`. They share one entry, under the key of the first. */
export interface CreateRun {
  readonly key: string;
  readonly rules: RunRules | null;
  /** If true, the caller chose the key, so the call can be repeated with it. */
  readonly hasOwnKey: boolean;
  readonly creates: LedgerCreate[];
  readonly isResumed?: boolean;
}

export async function saveRun({ creates }: CreateRun, state: JobRunState, signal?: AbortSignal): Promise<void> {
  await Promise.all(creates.map((create) => create.save(state, signal)));
}

export async function endRun(
  { creates }: CreateRun,
  isDelivered: boolean,
  caller?: Pick<RequestOptions, 'signal'>,
): Promise<void> {
  await Promise.all(creates.map((create) => create.end(isDelivered, caller)));
}

/** A run that `resume()` has claimed. */
export interface ClaimedRun {
  readonly call: JobCall;
  readonly params: Readonly<Record<string, unknown>>;
  readonly label: string | undefined;
  readonly run: CreateRun;
  /** State from which the run continues. */
  readonly state: JobRunState;
}

/** A resumed job and its create. */
export interface ResumedJob {
  /** Final job. */
  readonly job: Job;
  /** Namespace of the create. */
  readonly call: JobCall;
  /** Idempotency key of the run's first create. */
  readonly idempotencyKey: string;
  /** Label of the create, if it had one. */
  readonly label?: string | undefined;
}

/** An unfinished create. */
export interface UnfinishedCreate {
  /** Idempotency key of the run's first create. */
  readonly idempotencyKey: string;
  /** Namespace of the create. */
  readonly call: JobCall;
  /** Body with upload IDs instead of files, or null until the files are uploaded. */
  readonly params: Readonly<Record<string, unknown>> | null;
  /** Time of the call, as an ISO timestamp. */
  readonly at: string;
  /** Label of the create, if it had one. */
  readonly label?: string | undefined;
  /**
   * `open`: not sent; `sent`: in flight; `lost`: sent without a response, so a job may exist; `accepted`: the job exists;
   * `ended`: the job is final.
   */
  readonly phase: CreatePhase;
  /** Job ID. Undefined until the service has accepted the create. */
  readonly jobId?: string | undefined;
  /** Final status of the job. Undefined until it has ended. */
  readonly status?: string | undefined;
}
