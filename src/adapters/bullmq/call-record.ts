import type { Job as BullJob } from 'bullmq';
import type { CallKind } from '../../client/run-calls.js';
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
import { JOB_CALLS, type Job } from '../../schemas/job.js';
import { shortenKey } from '../../transport/idempotency.js';

/** BullMQ job of a queued call. */
export type GenQueueJob = BullJob<GenJobData, GenJobResult>;

/**
 * The engine processes jobs without a priority first. Calls have one until their job exists, so that workers poll running jobs
 * before they create new ones.
 */
export const CREATE_PRIORITY = 1000;

/** Version of the records that this package writes, and the newest that it can read. */
export const RECORD_VERSION = 1;

/**
 * The record of a queued call: its params and its run. It contains everything that another worker needs, because a
 * worker's client may have no store. Keys, owners, and reservations are the ledger's.
 */
export interface GenJobData {
  /** The version of the record. A worker leaves a newer one for another worker. @default 1 */
  readonly version?: number | undefined;
  /** The namespace of the create. */
  readonly call: CallKind;
  /** The body of the call. Once the service has accepted it, its uploads replace its files. */
  readonly params: Readonly<Record<string, unknown>>;
  /** If false, the call is sent without a check of the documented rules. */
  readonly preflight?: boolean;
  /** How to continue after a failed job, if the call specifies it. */
  readonly recover?: Recover;
  /** Identifies the account that the first create was for. Workers of other accounts leave the call alone. */
  readonly account?: string | undefined;
  /** The service's job that the call waits for. Stored before anything else is done with it. */
  readonly jobId?: string | undefined;
  /** The state of the call, without the worker's rules. Its format may change between versions. */
  readonly run?: Omit<JobRunState, 'rules'>;
  /** When `run` was stored, in milliseconds since the epoch. */
  readonly storedAt?: number;
  /** The scope of the budget that pays for the call. */
  readonly budgetScope?: string | undefined;
  /**
   * Consecutive failures that aren't the job's, for example of `onCompleted`: the time of the first one, in milliseconds since
   * the epoch, and their number.
   */
  readonly retryState?: { readonly since: number; readonly failures: number } | undefined;
  /** The error of a failed call, as JSON. */
  readonly failure?: Readonly<Record<string, unknown>> | undefined;
  /** Number of worker crashes during the call, when it failed. */
  readonly stalls?: number | undefined;
}

/** Result of a queue job: the completed job of the service. */
export type GenJobResult = Job;

const STEPS: readonly RunStep['type'][] = ['create', 'read', 'store', 'wait', 'end', 'fail'];

/** Returns false if something other than this package added the record. */
export function isCall(data: unknown): data is GenJobData {
  return isFields(data) && typeof data.call === 'string' && isFields(data.params);
}

/**
 * Throws a GenError for a record that somebody added without an ID. Its number is not unique, so it cannot be a key.
 */
export function checkKey({ id = '' }: Pick<GenQueueJob, 'id'>): void {
  if (!isBareNumber(id)) return;
  throw new GenError(
    `"${id}" is a number that BullMQ assigned to the record, so it cannot be an idempotency key. Pass a jobId to queue.queue.add, for example "order-17".`,
  );
}

/** The engine numbers records that have no ID, from 1 in each queue. */
export function isBareNumber(id: string): boolean {
  return /^-?\d+$/.test(id);
}

/** Returns false if a newer version of this package wrote the record. Its workers continue the call. */
export function isKnownRecord({ version = RECORD_VERSION, call, run }: GenJobData): boolean {
  const isKnown = version <= RECORD_VERSION && JOB_CALLS.includes(call);
  return isKnown && (run === undefined || (run.version === 1 && isKnownStep(run.step)));
}

/** Checks a step and every step that may follow it. */
function isKnownStep(step: RunStep | null | undefined): boolean {
  if (!step) return true;
  if (!STEPS.includes(step.type)) return false;
  if (step.type === 'wait') return isKnownStep(step.next) && isKnownStep(step.onTimeout);
  return (step.type !== 'end' && step.type !== 'fail') || isKnownStep(step.resumeStep);
}

/** Returns the state of a call, from its record and the worker's rules. A record with a failure was restarted by an operator. */
export function loadRun({ id = '', data }: Pick<GenQueueJob, 'id' | 'data'>, rules: RunRules): JobRunState {
  const own = { ...rules, recover: data.recover ?? rules.recover };
  const run = data.run ? { ...data.run, rules: own } : startRun({ key: id, shortKey: shortenKey(id), rules: own });
  return data.failure === undefined ? run : resumeRun(run);
}

/** Returns true if the call failed, but its worker crashed before it could end the engine's job. */
export function hasFailed({ data, stalledCounter }: Pick<GenQueueJob, 'data' | 'stalledCounter'>): boolean {
  const { failure, stalls } = data;
  return failure !== undefined && stalls !== undefined && stalledCounter > stalls;
}

/** Returns the record after a step of the run, which resets the failures. */
export function recordOf(data: GenJobData, { rules: _rules, ...run }: JobRunState, storedAt: number): GenJobData {
  const { retryState: _retries, failure: _failure, stalls: _stalls, jobId: _jobId, ...asked } = data;
  const jobId = liveJobOf(run);
  return { ...asked, version: RECORD_VERSION, ...(jobId !== undefined && { jobId }), run, storedAt };
}

/** Returns the job that a run waits for, or ended with. */
function liveJobOf({ step }: Pick<JobRunState, 'step'>): string | undefined {
  if (step.type === 'wait' || step.type === 'read') return step.jobId ?? undefined;
  if (step.type === 'end') return step.job.id;
  return step.type === 'fail' && step.resumeStep?.type === 'read' ? step.resumeStep.jobId : undefined;
}
