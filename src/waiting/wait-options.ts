import * as z from 'zod/mini';
import * as option from '../rules/options.js';
import type { JobProgress } from '../rules/read-order.js';
import type { Recover, RecoverRule } from '../rules/run-state.js';
import { isFields } from '../schemas/envelope.js';
import type { Job } from '../schemas/job.js';

/** How to wait for a job. */
export interface WaitOptions {
  /** Ends the wait at once with the signal's own reason. The job goes on. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds to wait at most; `false` for no limit. @default 1_800_000 (30 min) */
  readonly timeoutMs?: number | false | undefined;
  /** Milliseconds between two reads of this job. @default 10 to 12 s for videos and edits, 2.5 to 3 s for images */
  readonly pollIntervalMs?: number | undefined;
  /**
   * Called with each state that a read shows and how far the job is, in the async context of this call. It may be async.
   * What it throws changes nothing and goes to the logger as a warning.
   */
  readonly onUpdate?: ((job: Job, progress: JobProgress) => unknown) | undefined;
  /** Whether a failed, canceled or blocked job throws its JobError. `false` resolves with the final job. @default true */
  readonly throwOnFailure?: boolean | undefined;
}

/** The options of `waitForJob`, `waitForJobs` and `watchJob`. */
export const WAIT_OPTIONS = z.strictObject({
  signal: option.abortSignal,
  timeoutMs: option.timeLimit,
  pollIntervalMs: option.must<number>(
    'a number of milliseconds above 0',
    (value) => typeof value === 'number' && value > 0 && value < Number.POSITIVE_INFINITY,
  ),
  onUpdate: option.callback,
  throwOnFailure: option.flag,
});

const rule = option.must<RecoverRule>(
  'a whole number of further tries, or { models: [...] } with the models to try once each',
  (value) => (typeof value === 'number' ? value >= 0 && Number.isInteger(value) : hasModels(value)),
);
const RECOVER_RULES = { generation_timeout: rule, generation_failed: rule, generation_unavailable: rule } as const;
const RECOVER = z.strictObject({
  recover: z.optional(z.looseObject(RECOVER_RULES, 'an object with rules by error code')),
});

/** The `recover` option as plain data. Throws a GenError for a code after which another try is of no use, and a wrong rule. */
export function recoverRules(recover: Recover | undefined): Recover {
  if (recover === undefined) return {};
  option.checkOptions('recover', RECOVER, { recover });
  const codes = Object.keys(RECOVER_RULES);
  const unknown = Object.keys(recover).find((code) => !codes.includes(code));
  if (unknown !== undefined) throw option.unknownOption('recover', unknown, codes);
  return JSON.parse(JSON.stringify(recover)) as Recover;
}

function hasModels(value: unknown): boolean {
  if (!isFields(value) || Object.keys(value).join() !== 'models') return false;
  const { models } = value;
  return Array.isArray(models) && models.every((model) => typeof model === 'string' && model !== '');
}
