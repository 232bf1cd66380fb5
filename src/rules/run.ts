import { isSettled, type Job, type JobTry } from '../schemas/job.js';
import { type CreateEntry, entryJobId } from './create-entry.js';
import type { CallFailure } from './failure-kind.js';
import { DOCUMENTED_LIMITS } from './limits.js';
import {
  type CreateStep,
  type JobRunState,
  type LastStep,
  nextKey,
  type ReadStep,
  type RunEvent,
  type RunRules,
  type StoreStep,
  startRun,
  withoutHiding,
} from './run-state.js';

/** Maximum resubmissions after reviews, in case a review never ends. */
const MAX_RESUBMISSIONS = 20;
/** Default wait for a review, in milliseconds. The service doesn't document how long reviews take. */
const DEFAULT_REVIEW_WAIT_MS = 15_000;
/** Default wait for a rate-limit slot, in milliseconds: the mean time between two creates. */
export const DEFAULT_SLOT_WAIT_MS =
  DOCUMENTED_LIMITS['videos.create'].windowMs / DOCUMENTED_LIMITS['videos.create'].limit;
/** Minimum wait in milliseconds, so that a service that requests a wait of 0 isn't called in a tight loop. */
export const MIN_WAIT_MS = 1_000;
const FIRST_POLL_MS = 10_000;
export const MAX_POLL_MS = 5 * 60_000;
/** The time between two polls is this share of the elapsed time: 25 polls in half an hour. */
const POLL_GROWTH = 0.2;
/** Number of waits that a webhook may end early. Further waits count toward the timeout in full, so that every run ends. */
const FREE_WAKES = 50;

/**
 * Returns the state of a run after an event of a create or a wait, for `createAndWait`. For a run outside any process,
 * see {@link nextDetachedStep}. Pure, with JSON in and out.
 * - A create uses a new key only after the service has rejected the previous key. After a lost response, the same key
 *   is sent again.
 * - A wait that would exceed the timeout doesn't begin.
 */
export function nextStep(previousRun: JobRunState, event: RunEvent): JobRunState {
  const run = countTime(previousRun, event);
  const { step } = run;
  if (step.type === 'create') {
    if (event.type === 'job') return afterCreate(run, step, event);
    return event.type === 'failed' ? withoutHiding(afterCreateFailed(run, step, event.failure)) : run;
  }
  if (step.type !== 'wait') return run;
  // The driver may poll the job itself.
  if (event.type === 'job') return event.job.id === step.jobId ? afterJob(run, event) : run;
  return event.type === 'waited' ? afterWait(run, event) : run;
}

function afterCreate(run: JobRunState, { key }: CreateStep, event: JobRunEvent): JobRunState {
  const newTry: JobTry = { jobId: event.job.id, idempotencyKey: key, status: event.job.status };
  const resetFields = { refusedKeys: 0, refusal: null, failedCalls: 0, isAnnounced: false, filelessMs: null };
  return afterJob({ ...run, ...resetFields, tries: [...run.tries, newTry] }, event);
}

export function afterJob(previousRun: JobRunState, event: JobRunEvent): JobRunState {
  const { job } = event;
  const filelessMs = job.status === 'completed' ? (previousRun.filelessMs ?? previousRun.elapsedMs) : null;
  const run = { ...previousRun, tries: withJob(previousRun.tries, job), failedCalls: 0, pages: 0, filelessMs };
  if (!isSettled(job)) return { ...waitForPoll(run, job.id), isAnnounced: false };
  if (job.status !== 'completed') return afterFailure({ ...run, failedJobs: run.failedJobs + 1 }, event);
  const end: LastStep = { type: 'end', job, error: null, resumeStep: null };
  return { ...run, step: run.rules.stores ? { type: 'store', job } : end };
}

/** Handles a failed job. The only place that creates another job, because the failure is certain. */
function afterFailure(previousRun: JobRunState, { job, error }: JobRunEvent): JobRunState {
  const run: JobRunState = { ...previousRun, failed: { job, error: error ?? null } };
  const end: LastStep = { type: 'end', job, error: error ?? null, resumeStep: createStep({ ...run, model: null }) };
  const seconds = Number(job.errorData?.retry_after);
  const requestedMs = seconds > 0 ? seconds * 1000 : null;
  if (job.status === 'failed' && job.errorCode === 'reference_asset_pending') {
    return resubmit(run, { waitMs: requestedMs ?? DEFAULT_REVIEW_WAIT_MS, onTimeout: end });
  }
  const recovery = job.status === 'failed' ? recover(run, job) : undefined;
  if (recovery === undefined) return { ...run, step: end };
  const isUnavailable = job.errorCode === 'generation_unavailable' && recovery.model === run.model;
  const ms = requestedMs ?? (isUnavailable ? DEFAULT_REVIEW_WAIT_MS : 0);
  return pauseBefore(recovery, { ms, next: createStep(recovery), onTimeout: end });
}

/** Returns the run with another recovery used, or undefined if its rules allow none. */
function recover(run: JobRunState, { errorCode }: Job): JobRunState | undefined {
  const code = errorCode ?? '';
  const rules: Readonly<Record<string, unknown>> = run.rules.recover;
  const rule = Object.hasOwn(rules, code) ? run.rules.recover[code as keyof typeof run.rules.recover] : undefined;
  if (rule === undefined) return undefined;
  const used = Object.hasOwn(run.recovered, code) ? (run.recovered[code] ?? 0) : 0;
  const recovered = { ...run.recovered, [code]: used + 1 };
  if (typeof rule === 'number') return used < rule ? { ...run, recovered } : undefined;
  const model = rule.models[used];
  return model === undefined ? undefined : { ...run, recovered, model };
}

/** Handles a create that has no job, or whose outcome is unknown. */
function afterCreateFailed(run: JobRunState, step: CreateStep, failure: CallFailure): JobRunState {
  const { kind: reason, retryAfterMs, error } = failure;
  const onTimeout: LastStep = { type: 'fail', reason, error, resumeStep: step };
  if (reason === 'review') return afterReviewRejection(run, step, failure);
  if (reason === 'refused') {
    // The key stays the same, because the service didn't check it, and an earlier response may have been lost.
    if (failure.keyIsUnused) return { ...run, step: onTimeout };
    return afterRejection(run, step, failure);
  }
  if (reason === 'throttled' && run.refusal !== null && step.isSecondKey) {
    // A run must not wait between its two keys, so it starts over with its own key.
    const withOwnKey = { ...onTimeout, resumeStep: createStep(run) };
    return resubmit(run, { waitMs: retryAfterMs ?? DEFAULT_SLOT_WAIT_MS, onTimeout: withOwnKey });
  }
  return { ...run, step: onTimeout };
}

/**
 * Ends a run whose create was rejected. When it is resumed, the run sends its own key first, so that it finds a job that
 * the key has created meanwhile. If the service repeats the rejection, a new key is sent immediately.
 */
function afterRejection(run: JobRunState, step: CreateStep, failure: CallFailure): JobRunState {
  const { kind, error } = failure;
  const refusedRun: JobRunState = step.isSecondKey
    ? { ...run, refusedKeys: run.refusedKeys + 1 }
    : { ...run, refusal: refusalOf(failure) };
  if (!step.isSecondKey && isRepeated(run, failure))
    return { ...refusedRun, step: createStep(refusedRun, refusedRun.refusedKeys + 1) };
  return { ...refusedRun, step: { type: 'fail', reason: kind, error, resumeStep: createStep(refusedRun) } };
}

/**
 * Handles a create whose character is under review. The spec requires a new key, but doesn't say if the rejected key
 * remains usable. The run's own key is sent first: otherwise, a run that is repeated from its start could get two keys
 * accepted. If the service repeats the rejection, a new key is sent immediately.
 */
function afterReviewRejection(run: JobRunState, step: CreateStep, failure: CallFailure): JobRunState {
  const { kind, retryAfterMs, error } = failure;
  const onTimeout: LastStep = { type: 'fail', reason: kind, error, resumeStep: createStep(run) };
  const waitMs = retryAfterMs ?? DEFAULT_REVIEW_WAIT_MS;
  if (step.isSecondKey) return resubmit({ ...run, refusedKeys: run.refusedKeys + 1 }, { waitMs, onTimeout });
  const refusedRun: JobRunState = { ...run, refusal: refusalOf(failure), failedCalls: 0 };
  if (isRepeated(run, failure) && run.rules.resubmitPending) {
    return { ...refusedRun, step: createStep(refusedRun, refusedRun.refusedKeys + 1) };
  }
  return resubmit(refusedRun, { waitMs, onTimeout });
}

function refusalOf({ kind, retryAfterMs, error }: CallFailure): NonNullable<JobRunState['refusal']> {
  return { kind, askedMs: retryAfterMs, code: error.code ?? error.name };
}

/** Returns true if the service rejected the current key before with the same kind, wait, and code. */
function isRepeated({ refusal }: JobRunState, failure: CallFailure): boolean {
  const { kind, askedMs, code } = refusalOf(failure);
  return refusal?.kind === kind && refusal.askedMs === askedMs && refusal.code === code;
}

/** Sends the create again after the wait, if the rules allow it. */
function resubmit(
  run: JobRunState,
  { waitMs, onTimeout }: { readonly waitMs: number; readonly onTimeout: LastStep },
): JobRunState {
  if (!run.rules.resubmitPending || run.resubmissions >= MAX_RESUBMISSIONS) return { ...run, step: onTimeout };
  const next = { ...run, resubmissions: run.resubmissions + 1 };
  return pauseBefore(next, { ms: Math.max(waitMs, MIN_WAIT_MS), next: createStep(next), onTimeout });
}

function afterWait(run: JobRunState, { woken }: { readonly woken: boolean }): JobRunState {
  const { step } = run;
  if (step.type !== 'wait') return run;
  if (step.jobId !== null) return { ...run, isAnnounced: run.isAnnounced || woken, step: step.next };
  // No webhook announces the end of a review, so continue to wait.
  if (woken && run.wakes <= FREE_WAKES) return { ...run, step: { ...step, leftMs: leftMs(run) } };
  return { ...run, step: step.onTimeout !== null && leftMs(run) === 0 ? step.onTimeout : step.next };
}

/** Waits for the next poll. The last poll happens at the timeout. */
export function waitForPoll(run: JobRunState, jobId: string, ms = pollIntervalMs(run)): JobRunState {
  const remainingMs = leftMs(run);
  const next: ReadStep = { type: 'read', jobId };
  if (remainingMs === 0) return { ...run, step: timeoutStep(run, next) };
  const waitMs = Math.max(1, Math.ceil(remainingMs === null ? ms : Math.min(ms, remainingMs)));
  return { ...run, step: { type: 'wait', jobId, ms: waitMs, leftMs: remainingMs, next, onTimeout: null } };
}

/** Waits before `next`. If the wait would exceed the timeout, ends with `onTimeout` immediately. */
export function pauseBefore(
  run: JobRunState,
  { ms, next, onTimeout }: { readonly ms: number; readonly next: CreateStep | StoreStep; readonly onTimeout: LastStep },
): JobRunState {
  const remainingMs = leftMs(run);
  if (remainingMs !== null && ms >= remainingMs) return { ...run, step: onTimeout };
  if (ms === 0) return { ...run, step: next };
  return { ...run, step: { type: 'wait', jobId: null, ms: Math.ceil(ms), leftMs: remainingMs, next, onTimeout } };
}

function timeoutStep({ rules }: JobRunState, resumeStep: ReadStep): LastStep {
  const { jobId } = resumeStep;
  const message = `Job ${jobId} did not end within ${rules.timeoutMs} ms (timeoutMs). It continues: wait again, or raise timeoutMs.`;
  return { type: 'fail', reason: 'timeout', error: { name: 'WaitTimeoutError', message, jobId }, resumeStep };
}

function createStep(run: JobRunState, secondKey?: number): CreateStep {
  const isSecondKey = secondKey !== undefined;
  return { type: 'create', key: nextKey(run, secondKey), model: run.model, isSecondKey };
}

/** Returns the milliseconds between two polls. */
export function pollIntervalMs({ rules, elapsedMs, isAnnounced }: JobRunState): number {
  const growingMs = Math.min(Math.round((elapsedMs ?? 0) * POLL_GROWTH), MAX_POLL_MS);
  return rules.pollMs ?? Math.max(FIRST_POLL_MS, isAnnounced ? 0 : growingMs);
}

/** Returns the milliseconds until the timeout. Null without one, and before the service's first response. */
function leftMs({ rules, elapsedMs }: JobRunState): number | null {
  return rules.timeoutMs === null || elapsedMs === null ? null : Math.max(0, rules.timeoutMs - elapsedMs);
}

export type JobRunEvent = Extract<RunEvent, { readonly type: 'job' }>;

/**
 * Adds the elapsed time, which counts from the service's first response, so that time in a rate limit's queue doesn't
 * shorten a wait. A clock that was set back adds nothing, and a complete wait adds at least its duration.
 */
export function countTime(previousRun: JobRunState, event: RunEvent): JobRunState {
  const run = event.type === 'waited' && event.woken ? { ...previousRun, wakes: previousRun.wakes + 1 } : previousRun;
  const { step, elapsedMs, wakes } = run;
  if (elapsedMs === null) {
    const hasResponse = event.type === 'job' || (event.type === 'failed' && !isUnsent(event.failure));
    // An upload has already waited for its slot, so its failure starts the timeout.
    const isUpload = event.type === 'failed' && event.failure.error.name === 'UploadError';
    return hasResponse || isUpload ? { ...run, elapsedMs: 0 } : run;
  }
  const measuredMs = Math.max(0, event.passedMs ?? 0);
  const isEarly = event.type === 'waited' && event.woken && wakes <= FREE_WAKES;
  const minMs = event.type === 'waited' && step.type === 'wait' && !isEarly ? step.ms : 0;
  return { ...run, elapsedMs: elapsedMs + Math.max(measuredMs, minMs) };
}

function isUnsent({ kind }: CallFailure): boolean {
  return kind === 'throttled' || kind === 'unsent';
}

/** Updates the last job of `tries`. */
function withJob(tries: readonly JobTry[], job: Job): readonly JobTry[] {
  const last = tries.at(-1);
  if (last === undefined) return tries;
  const { modelId, status, errorCode } = job;
  return [
    ...tries.slice(0, -1),
    { ...last, status, ...(modelId && { model: modelId }), ...(errorCode && { errorCode }) },
  ];
}

/** Rules of a create without a run: it ends with its job, even if the job fails. */
const NO_RUN: Pick<RunRules, 'resubmitPending' | 'recover'> = { resubmitPending: false, recover: {} };

/** Returns the state of an entry's run, with a new timeout. `shortKey` replaces a key that is too long for a suffix. */
export function resumedRun(entry: CreateEntry, shortKey: string, timeoutMs: number | null): JobRunState {
  const { key, sentKey, phase, rules, run } = entry;
  const jobId = entryJobId(entry);
  const runRules: RunRules = { ...NO_RUN, ...rules, timeoutMs };
  const initial = startRun({ key, shortKey, rules: runRules });
  const firstState: JobRunState = {
    ...initial,
    step: { type: 'create', key: sentKey, model: null, isSecondKey: false },
  };
  let state: JobRunState = run ? { ...run, rules: runRules, elapsedMs: 0 } : firstState;
  const isPaused = phase === 'open' || (jobId !== undefined && state.tries.some((it) => it.jobId === jobId));
  if (isPaused && run) return state;
  // The stored pause is over, because the create after it was sent.
  if (state.step.type === 'wait') state = nextStep(state, { type: 'waited', woken: false });
  if (jobId === undefined) return state;
  return nextStep(state, { type: 'job', job: { id: jobId, status: 'queued' } });
}
