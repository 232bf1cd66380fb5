import type { Clock } from '../clock.js';
import { nextStep } from '../polling/next-step.js';
import { nextKey, type RunRules, type RunState, resumeRun, startRun } from '../polling/run-state.js';
import { shortenKey } from '../resources/run-calls.js';
import { type GenQueueJob, UNMADE_PRIORITY } from './gen-queue.js';
import type { GenJobData } from './job-data.js';
import type { Notes } from './notes.js';

/**
 * Where a call stands, from its record. A call that had failed is here because an operator had it tried again: it goes on
 * with its job, or with a new key.
 */
export function loadRun({ id, data }: Pick<GenQueueJob, 'id' | 'data'>, rules: RunRules): RunState {
  const run: RunState = data.run ? { ...data.run, rules } : runOfVersion01(id ?? '', data, rules);
  return data.failure === undefined ? run : resumeRun(run);
}

/**
 * Stores where a call stands. The engine takes calls whose job is made before the others, and notes of a job that the call
 * has left are forgotten.
 */
export async function storeRun(
  { at, queueJob }: { readonly at: Place; readonly queueJob: GenQueueJob },
  run: RunState,
  failure?: GenJobData['failure'],
): Promise<void> {
  const { jobId: before } = queueJob.data;
  const data = recordOf(queueJob.data, run, at.clock.now());
  await queueJob.updateData(failure === undefined ? data : { ...data, failure });
  const isOver = failure !== undefined;
  if (before !== undefined && (isOver || before !== data.jobId)) await at.notes.forget(before);
  const priority = data.jobId === undefined ? queueJob.opts.priority || UNMADE_PRIORITY : 0;
  if (queueJob.priority !== priority) await queueJob.changePriority({ priority });
}

interface Place {
  readonly clock: Clock;
  readonly notes: Notes;
}

/** The record of a call that stands where `run` says. */
function recordOf(data: GenJobData, run: RunState, now: number): GenJobData {
  const { rules: _, ...stored } = run;
  const { call, params, preflight, recover, cleanup, files, uploads } = data;
  const jobId = liveJobOf(run);
  return {
    call,
    params,
    ...(preflight !== undefined && { preflight }),
    ...(recover !== undefined && { recover }),
    ...(cleanup !== undefined && { cleanup }),
    // Needed again only while the service has made no job of them.
    ...(files !== undefined && run.tries.length === 0 && { files }),
    ...(uploads !== undefined && { uploads }),
    ...(jobId !== undefined && { jobId }),
    run: stored,
    storedAt: now,
  };
}

/** The job that a run waits for, or has ended with. */
function liveJobOf({ step }: RunState): string | undefined {
  if (step.type === 'wait' || step.type === 'read') return step.jobId ?? undefined;
  if (step.type === 'end') return step.job.id;
  return step.type === 'fail' && step.again?.type === 'read' ? step.again.jobId : undefined;
}

/**
 * A call as version 0.1 has left it, whose record counts resubmissions and refusals. A key that it may have sent is sent
 * again before any other.
 */
function runOfVersion01(key: string, data: GenJobData, rules: RunRules): RunState {
  const { jobId, resubmissions = 0, refusals = 0, failure } = data;
  const fresh = { ...startRun({ key, shortKey: shortenKey(key), rules }), failedJobs: resubmissions };
  if (jobId === undefined && resubmissions === 0 && refusals === 0 && failure === undefined) return fresh;
  const lastKey = nextKey(fresh, refusals > 0 ? refusals : undefined);
  const run: RunState = {
    ...fresh,
    elapsedMs: 0,
    refusedKeys: Math.max(0, refusals - 1),
    tries: jobId === undefined ? [] : [{ jobId, idempotencyKey: lastKey, status: 'processing' }],
    step:
      jobId === undefined
        ? { type: 'create', key: lastKey, model: null, isSecondKey: refusals > 0 }
        : { type: 'read', jobId },
  };
  return failure === undefined ? run : failedRun(run, failure);
}

/** A run of version 0.1 that had failed, as the rules see it. Where nothing was decided, it goes on as it stood. */
function failedRun(run: RunState, { name, message, code, status }: NonNullable<GenJobData['failure']>): RunState {
  const strict = { ...run, rules: { ...run.rules, resubmitPending: false, recover: {} } };
  const jobStatus = { JobFailedError: 'failed', JobCanceledError: 'canceled', JobBlockedError: 'blocked' }[
    String(name)
  ];
  if (run.step.type === 'read' && jobStatus !== undefined) {
    const job = { id: run.step.jobId, status: jobStatus, errorCode: typeof code === 'string' ? code : null };
    return { ...nextStep(strict, { type: 'job', job }), rules: run.rules };
  }
  if (run.step.type !== 'create' || typeof status !== 'number' || status < 400 || status >= 500) return run;
  const error = { name: String(name), message: String(message) };
  const failure = { kind: 'refused', retryAfterMs: null, error } as const;
  return { ...nextStep(strict, { type: 'failed', failure }), rules: run.rules };
}
