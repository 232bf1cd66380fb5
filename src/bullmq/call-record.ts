import type { Job as BullJob } from 'bullmq';
import type { CallKind } from '../resources/run-calls.js';
import type { JobRunState, Recover } from '../rules/run-state.js';
import type { Job } from '../schemas/job.js';

/** A queued call as the engine holds it. */
export type GenQueueJob = BullJob<GenJobData, GenJobResult>;

/**
 * The engine takes jobs without a priority first. Calls get one until their job is made, so that running jobs are read
 * before new ones are created.
 */
export const UNMADE_PRIORITY = 1000;

/** The version of the records that this version of the package writes, and the newest that it reads. */
export const RECORD_VERSION = 1;

/** Where a call stands, without the rules, which are the worker's. Its form may change between versions. */
export type StoredRun = Omit<JobRunState, 'rules'>;

/** A file as the record of a call keeps it: its path, or all of its bytes. */
export type KeptFile =
  | { readonly path: string }
  | { readonly base64: string; readonly type: string; readonly name?: string };

/** What a queue job carries: the call, and what has become of it. Everything needed to go on after a crash is here. */
export interface GenJobData {
  /** The version of the record. A worker leaves a newer one for another worker. @default 1 */
  readonly version?: number | undefined;
  /** Which `create` it is. */
  readonly call: CallKind;
  /** The body of the call, as the service takes it. */
  readonly params: Readonly<Record<string, unknown>>;
  /** The files of the call, until the service has accepted it. `params` refers to them as `{ $file: 0 }`. */
  readonly files?: readonly KeptFile[] | undefined;
  /** The uploads that were made of them, in the same order. */
  readonly uploads?: readonly string[] | undefined;
  /** `after-job` where the uploads are deleted when the call has ended. */
  readonly cleanup?: 'after-job' | undefined;
  /** `false` where the call is made without the check of the documented rules. */
  readonly preflight?: boolean;
  /** How to go on after a failed job, where the call says it. */
  readonly recover?: Recover;
  /** The service's job that the call waits for. Stored before anything else is done with it. */
  readonly jobId?: string | undefined;
  /** Where the call stands. */
  readonly run?: StoredRun;
  /** When `run` was stored, in milliseconds since the epoch. */
  readonly storedAt?: number;
  /** Whose budget the call is for. */
  readonly budgetScope?: string | undefined;
  /** What keeps the call from going on, for example an `onCompleted` that throws. */
  readonly trouble?: Trouble | undefined;
  /** Why the call failed, as the error's JSON form. */
  readonly failure?: Readonly<Record<string, unknown>> | undefined;
  /** How often a worker had died with the call when it failed. */
  readonly stalls?: number | undefined;
}

/** Failures in a row that say nothing about the job: an upload, a callback, the connection. */
export interface Trouble {
  /** When the first of them was, in milliseconds since the epoch. */
  readonly since: number;
  /** How many there were. */
  readonly failures: number;
}

/** The progress of a queue job: where the service's job stands, and what it costs. */
export interface GenJobProgress {
  /** The service's job id. */
  readonly jobId: string;
  /** Its status. */
  readonly status: string;
  /** Tokens reserved for the job. */
  readonly quotedTokenCost?: number;
  /** Tokens charged, once the job has ended. */
  readonly finalTokenCost?: number;
}

/** The result of a queue job: the completed job of the service. */
export type GenJobResult = Job;

/** The progress that a job amounts to. */
export function jobProgress({ id, status, quotedTokenCost, finalTokenCost }: Job): GenJobProgress {
  return {
    jobId: id,
    status,
    ...(typeof quotedTokenCost === 'number' && { quotedTokenCost }),
    ...(typeof finalTokenCost === 'number' && { finalTokenCost }),
  };
}
