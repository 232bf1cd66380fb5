import * as option from '../rules/options.js';
import type { JobProgress } from '../rules/polling.js';
import type { Recover } from '../rules/run-state.js';
import { isFields } from '../schemas/envelope.js';
import type { Job } from '../schemas/job.js';

/** Options for waiting for a job. */
export interface WaitOptions {
  /** Aborts the wait, which rejects with the signal's reason. The job continues. */
  readonly signal?: AbortSignal | undefined;
  /** Maximum wait in milliseconds, or `false` for no timeout. @default 1_800_000 (30 min) */
  readonly timeoutMs?: number | false | undefined;
  /** Poll interval in milliseconds. @default 10 to 12 s for videos and edits, 2.5 to 3 s for images */
  readonly pollIntervalMs?: number | undefined;
  /**
   * Called after each poll with the job and its progress, in this call's async context. Can be async. Errors that it throws are
   * logged as warnings and don't end the wait.
   */
  readonly onUpdate?: ((job: Job, progress: JobProgress) => unknown) | undefined;
  /**
   * If true, throws a JobError for a failed, canceled, or blocked job. Otherwise, resolves with the final job.
   * @default true
   */
  readonly throwOnFailure?: boolean | undefined;
}

/** Checks of the options of `waitForJob`, `waitForJobs`, and `watchJob`. */
export const WAIT_CHECKS = {
  signal: option.abortSignal,
  timeoutMs: option.timeoutOrFalse,
  pollIntervalMs: option.finiteMilliseconds,
  onUpdate: option.callback,
  throwOnFailure: option.flag,
};

export const WAIT_OPTIONS = option.optionsOf(WAIT_CHECKS);

const rule = option.must('a whole number of retries, or { models: [...] } with the models to try once each', (value) =>
  typeof value === 'number' ? value >= 0 && Number.isInteger(value) : hasModels(value),
);
const RECOVER_RULES = { generation_timeout: rule, generation_failed: rule, generation_unavailable: rule } as const;
const RECOVER = option.optionsOf({
  recover: option.optional(option.optionsOf(RECOVER_RULES, 'an object with rules by error code')),
});

/**
 * Returns the `recover` option as plain data. Throws a GenError for an invalid rule, or an error code that no rule can
 * recover.
 */
export function recoverRules(recover: Recover | undefined): Recover {
  if (recover === undefined) return {};
  const codes = Object.keys(RECOVER_RULES);
  const unknownCode = isFields(recover) ? Object.keys(recover).find((code) => !codes.includes(code)) : undefined;
  if (unknownCode !== undefined) throw option.unknownOption('recover', unknownCode, codes);
  option.checkOptions('recover', RECOVER, { recover });
  return JSON.parse(JSON.stringify(recover)) as Recover;
}

function hasModels(value: unknown): boolean {
  if (!isFields(value) || Object.keys(value).join() !== 'models') return false;
  const { models } = value;
  return Array.isArray(models) && models.every((model) => typeof model === 'string' && model !== '');
}
