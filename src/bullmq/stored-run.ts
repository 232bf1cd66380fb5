import { shortenKey } from '../resources/run-calls.js';
import { type JobRunState, nextKey, type RunRules, resumeRun, startRun } from '../rules/run-state.js';
import type { Clock } from '../runtime/clock.js';
import { JOB_CALLS } from '../schemas/job.js';
import { type GenJobData, type GenQueueJob, RECORD_VERSION, type StoredRun, UNMADE_PRIORITY } from './job-data.js';
import type { Notes } from './notes.js';

/** The version of a run in a record. */
const RUN_VERSION: JobRunState['version'] = 1;

/** Whether this version of the package knows the record. A newer one may have written another, and goes on with it. */
export function isKnownRecord({ version = RECORD_VERSION, call, run }: GenJobData): boolean {
  return version <= RECORD_VERSION && JOB_CALLS.includes(call) && (run === undefined || run.version === RUN_VERSION);
}

/**
 * Where a call stands, from its record. A call that had failed is here because an operator had it tried again: it goes on
 * with its job, or with a new key.
 */
export function loadRun({ id = '', data }: Pick<GenQueueJob, 'id' | 'data'>, rules: RunRules): JobRunState {
  const run: JobRunState = data.run ? { ...data.run, rules } : startRun({ key: id, shortKey: shortenKey(id), rules });
  return data.failure === undefined ? run : resumeRun(run);
}

/** Whether a call has failed, and its worker died before the engine knew: nobody has had it tried again. */
export function hasFailed({ data, stalledCounter }: Pick<GenQueueJob, 'data' | 'stalledCounter'>): boolean {
  const { failure, stalls } = data;
  return failure !== undefined && stalls !== undefined && stalledCounter > stalls;
}

/** The run of a call that has completed and is asked for anew: it creates under the next key. */
export function anotherRun(run: StoredRun): StoredRun {
  const { key, shortKey, tries, version } = run;
  const failedJobs = run.failedJobs + 1;
  const step = {
    type: 'create',
    key: nextKey({ key, shortKey, failedJobs }),
    model: null,
    isSecondKey: false,
  } as const;
  return {
    ...{ version, key, shortKey, tries, failedJobs, step },
    ...{ refusedKeys: 0, refusal: null, resubmissions: 0, recovered: {}, model: null },
    ...{ elapsedMs: null, misses: 0, wakes: 0, isAnnounced: false },
  };
}

/**
 * Stores where a call stands. The engine takes calls whose job is made before the others, and notes of a job that the call
 * has left are forgotten.
 */
export async function storeRun(
  { at, queueJob }: { readonly at: CallPlace; readonly queueJob: GenQueueJob },
  run: JobRunState,
  failure?: GenJobData['failure'],
): Promise<void> {
  const { jobId: before } = queueJob.data;
  const data = runRecord(queueJob.data, run, at.clock.now());
  await queueJob.updateData(failure === undefined ? data : { ...data, failure, stalls: queueJob.stalledCounter });
  const isOver = failure !== undefined;
  if (before !== undefined && (isOver || before !== data.jobId)) await at.notes.forget(before);
  const priority = data.jobId === undefined ? queueJob.opts.priority || UNMADE_PRIORITY : 0;
  if (queueJob.priority !== priority) await queueJob.changePriority({ priority });
}

interface CallPlace {
  readonly clock: Clock;
  readonly notes: Notes;
}

/** The record of a call that stands where `run` says. Whatever went wrong before is over. */
function runRecord(data: GenJobData, run: JobRunState, now: number): GenJobData {
  const { rules: _, ...stored } = run;
  const { files, uploads, trouble: _trouble, failure: _failure, stalls: _stalls, jobId: _jobId, ...asked } = data;
  const jobId = liveJobOf(run);
  return {
    ...asked,
    version: RECORD_VERSION,
    // Needed again only while the service has made no job of them.
    ...(files !== undefined && run.tries.length === 0 && { files }),
    ...(uploads !== undefined && { uploads }),
    ...(jobId !== undefined && { jobId }),
    run: stored,
    storedAt: now,
  };
}

/** The job that a run waits for, or has ended with. */
function liveJobOf({ step }: JobRunState): string | undefined {
  if (step.type === 'wait' || step.type === 'read') return step.jobId ?? undefined;
  if (step.type === 'end') return step.job.id;
  return step.type === 'fail' && step.again?.type === 'read' ? step.again.jobId : undefined;
}
