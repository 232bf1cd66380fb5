import * as z from 'zod/mini';
import * as option from '../options.js';
import type { Budget } from '../schemas/budget.js';
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
   * Called with each state that a read shows, in the async context of this call. It may be async. What it throws changes
   * nothing and goes to the logger as a warning.
   */
  readonly onUpdate?: ((job: Job) => unknown) | undefined;
  /** Whether a failed, canceled or blocked job throws its JobError. `false` resolves with the final job. @default true */
  readonly throwOnFailure?: boolean | undefined;
}

/** The options of a wait, as fields for the schemas of calls that take more. */
const WAIT_FIELDS = {
  signal: option.abortSignal,
  timeoutMs: option.must<number | false>(
    'a positive number of milliseconds, or false for no limit',
    (value) => value === false || (typeof value === 'number' && value > 0),
  ),
  pollIntervalMs: option.must<number>(
    'a positive number of milliseconds',
    (value) => typeof value === 'number' && value > 0 && value < Number.POSITIVE_INFINITY,
  ),
  onUpdate: option.callback,
  throwOnFailure: option.flag,
} as const;

/** The options of `waitForJob` and `waitForJobs`. */
export const WAIT_OPTIONS = z.strictObject(WAIT_FIELDS);

/** The options of `createAndWait`. The options of its requests are checked with them. */
export const CREATE_AND_WAIT_OPTIONS = z.strictObject({
  ...WAIT_FIELDS,
  maxRetries: option.count,
  headers: option.anObject,
  preflight: option.flag,
  budget: option.methods<Budget>('reserve', 'refund'),
  idempotencyKey: option.anything,
  onCreated: option.callback,
  resubmitPending: option.flag,
  recover: option.anything,
  onUploadProgress: option.callback,
  cleanup: option.oneOf('after-job'),
});
