import type { Job, JobTry } from '../schemas/job.js';
import type { CallFailure, GenErrorJson } from './failure-kind.js';

/** Job error codes after which the same create may succeed. */
export type RecoverableCode = 'generation_timeout' | 'generation_failed' | 'generation_unavailable';

/** Retries a failed job: a number of times, or once with each of the models. */
export type RecoverRule = number | { readonly models: readonly string[] };

/** Rules for retrying failed jobs, by error code. Only failures that a poll returned are retried. */
export type Recover = { readonly [Code in RecoverableCode]?: RecoverRule | undefined };

/** Returns the models that the rules may switch to. */
export function fallbackModels(recover: Recover = {}): readonly string[] {
  return Object.values(recover).flatMap((rule) => (typeof rule === 'object' ? rule.models : []));
}

export interface RunRules {
  /** Timeout in milliseconds from the service's first response, or null for none. */
  readonly timeoutMs: number | null;
  /** If true, resubmits a create that waits for a review when the service requests it. */
  readonly resubmitPending: boolean;
  readonly recover: Recover;
  /** If true, a detached run stores the file before it ends. */
  readonly stores?: boolean;
  /** Milliseconds between two polls of a detached run. Null: grows with the run, from 10 seconds to 5 minutes. */
  readonly pollMs?: number | null;
  /** Longest pause of a detached run after a lost response, in milliseconds. Null: the time between two polls. */
  readonly retryMs?: number | null;
}

/** Sends the create with a key. */
export interface CreateStep {
  readonly type: 'create';
  readonly key: string;
  /** Replaces the call's model. Null for the call's own. */
  readonly model: string | null;
  /** If true, the service rejected the run's own key, and this key must be sent without waiting for a rate limit. */
  readonly isSecondKey: boolean;
}

export interface ReadStep {
  readonly type: 'read';
  readonly jobId: string;
}

/** Stores the file of a completed job. */
export interface StoreStep {
  readonly type: 'store';
  readonly job: Job;
}

/** Waits for `ms`, or for a job's webhook. */
export interface WaitStep {
  readonly type: 'wait';
  /** The job whose webhook ends the wait early, or null for none. */
  readonly jobId: string | null;
  readonly ms: number;
  /** Milliseconds until the run's timeout, or null for none. */
  readonly leftMs: number | null;
  readonly next: CreateStep | ReadStep | StoreStep;
  /** Replaces `next` if the run has timed out meanwhile. Null if the timeout doesn't apply. */
  readonly onTimeout: LastStep | null;
}

/** Ends the run. A retry by an operator continues with `resumeStep`, which is null if nothing is left to do. */
export type LastStep = { readonly resumeStep: CreateStep | ReadStep | null } & (
  | {
      /** With a final job. */
      readonly type: 'end';
      readonly job: Job;
      /** The failure of the job, or null if it completed. */
      readonly error: GenErrorJson | null;
      /** The error of the create that should have replaced the failed job. */
      readonly refusal?: GenErrorJson;
    }
  | {
      /** Without a final job, because the last call failed or the run timed out. */
      readonly type: 'fail';
      readonly reason: CallFailure['kind'] | 'timeout';
      readonly error: GenErrorJson;
    }
);

export type EndStep = Extract<LastStep, { readonly type: 'end' }>;

/** The next step of a run. Its driver executes the step and reports the event. */
export type RunStep = CreateStep | ReadStep | StoreStep | WaitStep | LastStep;

/** The result of a step. */
export type RunEvent = {
  /** Milliseconds since the previous event, if known. */
  readonly passedMs?: number | undefined;
} & (
  | {
      /** A create or a poll returned a job. */
      readonly type: 'job';
      readonly job: Job;
      /** The failure of a final job. */
      readonly error?: GenErrorJson | undefined;
    }
  /** A create, a poll, or storing the file failed. */
  | { readonly type: 'failed'; readonly failure: CallFailure }
  /** A wait ended. `woken`: because of a webhook, which is only a hint. */
  | { readonly type: 'waited'; readonly woken: boolean }
  | { readonly type: 'stored' }
);

/** State of a run, as plain data that can be stored and replayed. */
export interface JobRunState {
  readonly version: 1;
  readonly key: string;
  /** Replaces a key that is too long for a suffix. */
  readonly shortKey: string;
  readonly rules: RunRules;
  readonly step: RunStep;
  /** All jobs that the run created, the current one last. */
  readonly tries: readonly JobTry[];
  /** The failed job that the next create replaces. */
  readonly failed?: { readonly job: Job; readonly error: GenErrorJson | null };
  /** Number of failed jobs. The key of the next create ends in `:r<failedJobs + 1>`. */
  readonly failedJobs: number;
  /** Number of rejected second keys. The next one ends in `:w<refusedKeys + 1>`. */
  readonly refusedKeys: number;
  /** The last rejection of the current key. */
  readonly refusal: {
    readonly kind: CallFailure['kind'];
    readonly askedMs: number | null;
    readonly code: string;
  } | null;
  /** Number of resubmissions after reviews. */
  readonly resubmissions: number;
  /** Number of recoveries used, by error code. */
  readonly recovered: Readonly<Record<string, number>>;
  /** The current model, or null for the call's own. */
  readonly model: string | null;
  /** Milliseconds since the service's first response, or null until then. */
  readonly elapsedMs: number | null;
  /** Consecutive calls without a usable response. */
  readonly failedCalls: number;
  /** Consecutive polls that returned a page. */
  readonly pages: number;
  /** `elapsedMs` when the job was first completed without a file, or null. */
  readonly filelessMs: number | null;
  /** Number of waits that a webhook ended. */
  readonly wakes: number;
  /** If true, a webhook announced the end of the job, but no poll has confirmed it. */
  readonly isAnnounced: boolean;
}

export interface RunStart {
  readonly key: string;
  /** At most 200 characters, and unique to the key. */
  readonly shortKey: string;
  readonly rules: RunRules;
}

/** Returns the initial state of a run. */
export function startRun({ key, shortKey, rules }: RunStart): JobRunState {
  return {
    version: 1,
    key,
    shortKey,
    rules,
    step: { type: 'create', key, model: null, isSecondKey: false },
    tries: [],
    failedJobs: 0,
    refusedKeys: 0,
    refusal: null,
    resubmissions: 0,
    recovered: {},
    model: null,
    elapsedMs: null,
    failedCalls: 0,
    pages: 0,
    filelessMs: null,
    wakes: 0,
    isAnnounced: false,
  };
}

/**
 * Restarts an ended run with a new timeout. It waits for its job again, replaces a failed job under a new key, or
 * resends a rejected create under the same key. A run that is still in progress or has a completed job is not changed.
 */
export function resumeRun(run: JobRunState): JobRunState {
  const { step, rules, key, shortKey, tries, failed, failedJobs, refusedKeys, refusal } = run;
  if ((step.type !== 'end' && step.type !== 'fail') || step.resumeStep === null) return run;
  const history = { tries, failedJobs, refusedKeys, refusal, ...(failed && { failed }) };
  return { ...startRun({ key, shortKey, rules }), ...history, step: step.resumeStep };
}

/** If the create of a replacement was rejected, ends the run with the failed job. */
export function withoutHiding(run: JobRunState): JobRunState {
  const { step, failed } = run;
  if (step.type !== 'fail' || step.reason !== 'refused' || failed === undefined) return run;
  return { ...run, step: { type: 'end', ...failed, resumeStep: step.resumeStep, refusal: step.error } };
}

export const MAX_KEY_LENGTH = 255;

/**
 * Returns the key of a run's next create. The suffixes depend only on the service's responses, so that a run that is
 * repeated from its first key gets the same jobs.
 */
export function nextKey(run: Pick<JobRunState, 'key' | 'shortKey' | 'failedJobs'>, secondKey?: number): string {
  const suffix =
    (run.failedJobs > 0 ? `:r${run.failedJobs + 1}` : '') + (secondKey === undefined ? '' : `:w${secondKey}`);
  return derivedKey(run, suffix);
}

/** Returns the key with a suffix. If the result would be too long, appends the suffix to the short key instead. */
export function derivedKey({ key, shortKey }: Pick<JobRunState, 'key' | 'shortKey'>, suffix: string): string {
  const isTooLong = key.length + suffix.length > MAX_KEY_LENGTH;
  return `${suffix !== '' && isTooLong ? shortKey : key}${suffix}`;
}

/** Returns the key and all keys from which it may be derived. */
export function originsOf(key: string): string[] {
  const [, origin] = /^(.+):[rwf]\d+$/s.exec(key) ?? [];
  return origin === undefined ? [key] : [key, ...originsOf(origin)];
}
