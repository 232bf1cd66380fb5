import type { Job as BullJob } from 'bullmq';
import { GenError } from '../../errors/index.js';
import {
  type JobRunState,
  type Recover,
  type RunRules,
  type RunStep,
  resumeRun,
  startRun,
} from '../../rules/run-state.js';
import { isFields } from '../../schemas/envelope.js';
import { JOB_CALLS, type Job, type JobCall } from '../../schemas/job.js';
import { shortenKey } from '../../transport/idempotency.js';

/** BullMQ job that represents a queued call. */
export type GenQueueJob = BullJob<GenJobData, GenJobResult>;

/**
 * Priority of calls that have no job yet. BullMQ processes jobs without a priority first, so workers poll running jobs before
 * they create new ones.
 */
export const CREATE_PRIORITY = 1000;

/** Version of the records that this package writes, and the newest version that it can read. */
export const RECORD_VERSION = 1;

/**
 * Record of a queued call: its params and its state. Contains everything that another worker needs to continue the call, even
 * if its client has no store.
 */
export interface GenJobData {
  /** Version of the record. A worker leaves newer records to other workers. @default 1 */
  readonly version?: number | undefined;
  /** Namespace of the create. */
  readonly call: JobCall;
  /** Body of the create. Once the service accepts it, upload IDs replace the files. */
  readonly params: Readonly<Record<string, unknown>>;
  /** If false, the params aren't validated against the documented rules. */
  readonly preflight?: boolean;
  /** Retries for failed jobs, if the call specifies them. */
  readonly recover?: Recover;
  /** Account of the first create. Workers of other accounts ignore the call. */
  readonly account?: string | undefined;
  /** ID of the service's job that the call waits for. */
  readonly jobId?: string | undefined;
  /** State of the call. Its format may change between versions. */
  readonly run?: Omit<JobRunState, 'rules'>;
  /** Time at which `run` was stored, in milliseconds since the epoch. */
  readonly storedAt?: number;
  /** Scope of the budget that pays for the call. */
  readonly budgetScope?: string | undefined;
  /**
   * Consecutive failures other than the job's, for example of `onCompleted`: their number, and the time of the first one in
   * milliseconds since the epoch.
   */
  readonly retryState?: { readonly since: number; readonly failures: number } | undefined;
  /** Error of a failed call, as JSON. */
  readonly failure?: Readonly<Record<string, unknown>> | undefined;
  /** Number of worker crashes during the call, set when it fails. */
  readonly stalls?: number | undefined;
}

/** Result of a queue job: the completed job of the service. */
export type GenJobResult = Job;

const STEPS: readonly RunStep['type'][] = ['create', 'read', 'store', 'wait', 'end', 'fail'];

/** Returns false if the record wasn't added by this package. */
export function isCall(data: unknown): data is GenJobData {
  return isFields(data) && typeof data.call === 'string' && isFields(data.params);
}

/**
 * Throws a GenError for a record that was added without an ID. BullMQ's number isn't unique, so it can't be an
 * idempotency key.
 */
export function checkKey({ id = '' }: Pick<GenQueueJob, 'id'>): void {
  if (!isBareNumber(id)) return;
  throw new GenError(
    `"${id}" is a number that BullMQ assigned to the record, so it cannot be an idempotency key. Pass a jobId to queue.queue.add, for example "order-17".`,
  );
}

/** Returns true for a bare number. BullMQ assigns such IDs, from 1 in each queue, to records without one. */
export function isBareNumber(id: string): boolean {
  return /^-?\d+$/.test(id);
}

/** Returns false if a newer version of this package wrote the record. */
export function isKnownRecord({ version = RECORD_VERSION, call, run }: GenJobData): boolean {
  const isKnown = version <= RECORD_VERSION && JOB_CALLS.includes(call);
  return isKnown && (run === undefined || (run.version === 1 && isKnownStep(run.step)));
}

/** Returns true if this version knows the step and the steps that it contains. */
function isKnownStep(step: RunStep | null | undefined): boolean {
  if (!step) return true;
  if (!STEPS.includes(step.type)) return false;
  if (step.type === 'wait') return isKnownStep(step.next) && isKnownStep(step.onTimeout);
  return (step.type !== 'end' && step.type !== 'fail') || isKnownStep(step.resumeStep);
}

/** Builds a call's state from its record and the worker's rules. A record with a failure was restarted by an operator. */
export function loadRun({ id = '', data }: Pick<GenQueueJob, 'id' | 'data'>, rules: RunRules): JobRunState {
  const callRules = { ...rules, recover: data.recover ?? rules.recover };
  const run = data.run
    ? { ...data.run, rules: callRules }
    : startRun({ key: id, shortKey: shortenKey(id), rules: callRules });
  return data.failure === undefined ? run : resumeRun(run);
}

/** Returns true if the call failed but its worker crashed before it could end the BullMQ job. */
export function hasFailed({ data, stalledCounter }: Pick<GenQueueJob, 'data' | 'stalledCounter'>): boolean {
  const { failure, stalls } = data;
  return failure !== undefined && stalls !== undefined && stalledCounter > stalls;
}

/** Returns the record after a step. Each step resets the failures. */
export function recordOf(data: GenJobData, { rules: _rules, ...run }: JobRunState, storedAt: number): GenJobData {
  const { retryState: _retries, failure: _failure, stalls: _stalls, jobId: _jobId, ...input } = data;
  const jobId = jobIdOf(run);
  return { ...input, version: RECORD_VERSION, ...(jobId !== undefined && { jobId }), run, storedAt };
}

/** Returns the ID of the job that a run waits for or ended with. */
function jobIdOf({ step }: Pick<JobRunState, 'step'>): string | undefined {
  if (step.type === 'wait' || step.type === 'read') return step.jobId ?? undefined;
  if (step.type === 'end') return step.job.id;
  return step.type === 'fail' && step.resumeStep?.type === 'read' ? step.resumeStep.jobId : undefined;
}
