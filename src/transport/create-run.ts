// Ports of the ledger for the code that sends and runs creates.

import type { CreatePhase } from '../rules/create-entry.js';
import type { RequestOptions } from '../rules/options.js';
import type { JobRunState, RunRules } from '../rules/run-state.js';
import type { Job, JobCall } from '../schemas/job.js';

/** Records the ends of jobs. One object per store. */
export interface JobRecords {
  /**
   * Waits briefly. Calls `recorded`: true if this step ended the entry, undefined without an entry. A failure becomes a
   * warning.
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

/** The entry of a create in one store. Its call owns it. */
export interface LedgerCreate {
  readonly records: JobRecords;
  readonly owner: string;
  /** Records the state of the run before a pause, so that a crashed process is resumed there. */
  save(state: JobRunState, signal?: AbortSignal): Promise<void>;
  /** Ends the run. `isDelivered`: the program has its outcome. Waits briefly for the store if there is a `caller`. */
  end(isDelivered: boolean, caller?: Pick<RequestOptions, 'signal'>): Promise<void>;
}

/** The creates of one `createAndWait`: they have one entry, under the key of the first. */
export interface CreateRun {
  readonly key: string;
  readonly rules: RunRules | null;
  /** Whether the caller has chosen the key, so that it may come again. */
  readonly hasOwnKey: boolean;
  readonly opened: LedgerCreate[];
  readonly isResumed?: boolean;
}

export async function saveRun({ opened }: CreateRun, state: JobRunState, signal?: AbortSignal): Promise<void> {
  await Promise.all(opened.map((create) => create.save(state, signal)));
}

export async function endRun(
  { opened }: CreateRun,
  isDelivered: boolean,
  caller?: Pick<RequestOptions, 'signal'>,
): Promise<void> {
  await Promise.all(opened.map((create) => create.end(isDelivered, caller)));
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

/** A job that was resumed, and the order that it belongs to. */
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

/** A create that is not finished. */
export interface UnfinishedCreate {
  /** Idempotency key of the run's first create. */
  readonly idempotencyKey: string;
  /** Namespace of the create. */
  readonly call: JobCall;
  /** Body with upload IDs in place of files, or null until the files are uploaded. */
  readonly params: Readonly<Record<string, unknown>> | null;
  /** ISO timestamp of the call. */
  readonly at: string;
  /** Label of the create, if it had one. */
  readonly label?: string | undefined;
  /**
   * `open` is not sent, `sent` is in flight, `lost` had no response and may have a job, `accepted` has a job, and the
   * job of `ended` is final.
   */
  readonly phase: CreatePhase;
  /** Job ID. Undefined until the service has accepted the create. */
  readonly jobId?: string | undefined;
  /** Final status of the job. Undefined until it has ended. */
  readonly status?: string | undefined;
}
