import type { Job, JobTry } from '../schemas/job.js';
import type { CallFailure, GenErrorJson } from './failure-kind.js';

/** The job errors after which the same call may succeed. */
export type RecoverableCode = 'generation_timeout' | 'generation_failed' | 'generation_unavailable';

/** How to go on after a failed job: a number of further tries, or one try with each of some models. */
export type RecoverRule = number | { readonly models: readonly string[] };

/** How to go on after a failed job, by its error code. Only a failure that was read from the service counts. */
export type Recover = { readonly [Code in RecoverableCode]?: RecoverRule | undefined };

/** The models that the rules may send a create to in place of its own. */
export function fallbackModels(recover: Recover = {}): readonly string[] {
  return Object.values(recover).flatMap((rule) => (typeof rule === 'object' ? rule.models : []));
}

export interface RunRules {
  /** Milliseconds from the service's first answer; null for no limit. */
  readonly timeoutMs: number | null;
  /** Whether a call that waits for a review is sent again when the service says so. */
  readonly resubmitPending: boolean;
  /** How to go on after a failed job. */
  readonly recover: Recover;
  /** Whether the run repeats a call that got no usable answer. Where it does not, the error ends the run. */
  readonly persistent: boolean;
  /** Whether the finished file is stored before the run ends. */
  readonly stores: boolean;
  /** Milliseconds between two reads. null: they grow with the run, from 10 s to five minutes. */
  readonly pollMs: number | null;
  /** The longest pause after a call without an answer, in milliseconds. null: as between two reads. */
  readonly retryMs: number | null;
}

/** Sends the create under a key. */
export interface CreateStep {
  readonly type: 'create';
  readonly key: string;
  /** Replaces the model of the call; null keeps it. */
  readonly model: string | null;
  /** Follows a refusal of the run's own key. It must not wait for a free slot of its rate limit. */
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

/** Waits for `ms`, or for the webhook of a job. */
export interface WaitStep {
  readonly type: 'wait';
  /** The job whose webhook ends the wait early; null while there is none. */
  readonly jobId: string | null;
  readonly ms: number;
  /** Milliseconds until the time limit of the run; null without one. */
  readonly leftMs: number | null;
  readonly next: CreateStep | ReadStep | StoreStep;
  /** What follows when the time limit has passed meanwhile; null where the limit does not matter. */
  readonly onTimeout: LastStep | null;
}

/** Ends the run. `resumeStep` is where it goes on when an operator has it tried again; null where there is nothing left to do. */
export type LastStep = { readonly resumeStep: CreateStep | ReadStep | null } & (
  | {
      /** With a final job, completed or not. */
      readonly type: 'end';
      readonly job: Job;
      /** What a job that is not completed amounts to. */
      readonly error: GenErrorJson | null;
      /** The error of the create that was to replace the failed job. */
      readonly refusal?: GenErrorJson;
    }
  | {
      /** Without a final job: by the error of the last call, or by the time limit. */
      readonly type: 'fail';
      readonly reason: CallFailure['kind'] | 'timeout';
      readonly error: GenErrorJson;
    }
);

export type EndStep = Extract<LastStep, { readonly type: 'end' }>;

/** What a run does next. Its driver does it, and says what it saw. */
export type RunStep = CreateStep | ReadStep | StoreStep | WaitStep | LastStep;

/** What a driver saw when it did a step. */
export type RunEvent = {
  /** Milliseconds since the event before, where the driver can tell. */
  readonly passedMs?: number | undefined;
} & (
  | {
      /** A create or a read was answered with a job. */
      readonly type: 'job';
      readonly job: Job;
      /** What a final job that is not completed amounts to. */
      readonly error?: GenErrorJson | undefined;
    }
  /** A create, a read or the storing of the file failed. */
  | { readonly type: 'failed'; readonly failure: CallFailure }
  /** A wait ended: by a webhook, which is only a hint, or because its time has passed. */
  | { readonly type: 'waited'; readonly woken: boolean }
  /** The file is stored. */
  | { readonly type: 'stored' }
);

/** Where a run stands. Plain data, to be stored and replayed. */
export interface JobRunState {
  readonly version: 1;
  readonly key: string;
  /** Stands for a key that is too long to be extended. */
  readonly shortKey: string;
  /** How the run goes on after what it sees. */
  readonly rules: RunRules;
  readonly step: RunStep;
  /** Every job that the run has made, the present one last. */
  readonly tries: readonly JobTry[];
  /** The failed job that the next create is to replace. */
  readonly failed?: { readonly job: Job; readonly error: GenErrorJson | null };
  /** Jobs that have failed. The next one is created under `:r<failedJobs + 1>`. */
  readonly failedJobs: number;
  /** Second keys that were refused. The next one ends in `:w<refusedKeys + 1>`. */
  readonly refusedKeys: number;
  /** The last refusal of the present key: whether for a review, the time that it asked for, and its code. */
  readonly refusal: {
    readonly kind: CallFailure['kind'];
    readonly askedMs: number | null;
    readonly code: string;
  } | null;
  /** How often something that waits for a review was sent again. */
  readonly resubmissions: number;
  /** The recoveries that were used, by error code. */
  readonly recovered: Readonly<Record<string, number>>;
  /** The model of the present try; null for the call's own. */
  readonly model: string | null;
  /** Milliseconds since the service's first answer; null before it. */
  readonly elapsedMs: number | null;
  /** Calls in a row that got no usable answer. */
  readonly failedCalls: number;
  /** Polls in a row that a page answered. */
  readonly pages: number;
  /** Milliseconds of the run at which the job was first completed without a file; null if it was not. */
  readonly filelessMs: number | null;
  /** Waits that a webhook ended. */
  readonly wakes: number;
  /** A webhook has announced the end of the job, and no read has shown it yet. */
  readonly isAnnounced: boolean;
}

export interface RunStart {
  readonly key: string;
  /** Made of the whole key, at most 200 characters. */
  readonly shortKey: string;
  readonly rules: RunRules;
}

/** A run that has done nothing yet. */
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
 * A run that has ended, tried again: with all its tries and its time anew. It goes on with the job it was waiting for, creates
 * under a new key after a failed job, and sends the key of a refused create once more. A run that has not ended, or has ended
 * with a completed job, stays as it is.
 */
export function resumeRun(run: JobRunState): JobRunState {
  const { step, rules, key, shortKey, tries, failed, failedJobs, refusedKeys, refusal } = run;
  if ((step.type !== 'end' && step.type !== 'fail') || step.resumeStep === null) return run;
  const known = { tries, failedJobs, refusedKeys, refusal, ...(failed && { failed }) };
  return { ...startRun({ key, shortKey, rules }), ...known, step: step.resumeStep };
}

/** A refused fallback must not hide why the job before it failed: the run ends with that job. */
export function withoutHiding(run: JobRunState): JobRunState {
  const { step, failed } = run;
  if (step.type !== 'fail' || step.reason !== 'refused' || failed === undefined) return run;
  return { ...run, step: { type: 'end', ...failed, resumeStep: step.resumeStep, refusal: step.error } };
}

export const LONGEST_KEY = 255;

/**
 * The key of the next create of a run. Keys are part of the contract: a run that is repeated from its first key has to
 * come to the same jobs, so the suffixes count what the service has answered and nothing else.
 */
export function nextKey(run: Pick<JobRunState, 'key' | 'shortKey' | 'failedJobs'>, secondKey?: number): string {
  const suffix =
    (run.failedJobs > 0 ? `:r${run.failedJobs + 1}` : '') + (secondKey === undefined ? '' : `:w${secondKey}`);
  return derivedKey(run, suffix);
}

/** The key with a suffix, or where that is too long, its short form with the suffix. */
export function derivedKey({ key, shortKey }: Pick<JobRunState, 'key' | 'shortKey'>, suffix: string): string {
  const isTooLong = key.length + suffix.length > LONGEST_KEY;
  return `${suffix !== '' && isTooLong ? shortKey : key}${suffix}`;
}

/** The key, and every key that it may be derived from. */
export function originsOf(key: string): string[] {
  const [, origin] = /^(.+):[rwf]\d+$/s.exec(key) ?? [];
  return origin === undefined ? [key] : [key, ...originsOf(origin)];
}
