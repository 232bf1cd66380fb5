import type { Job } from '../schemas/job.js';

/** How to wait for a job. */
export interface WaitOptions {
  /** Ends the wait, not the job (at once, with the signal's own reason). */
  readonly signal?: AbortSignal | undefined;
  /** `false` for no limit. @default 1_800_000 (30 min) */
  readonly timeoutMs?: number | false | undefined;
  /** Between two reads. @default 10-15 s for videos, shorter for images */
  readonly pollIntervalMs?: number | undefined;
  /** Told each state that is read. */
  readonly onUpdate?: ((job: Job) => void) | undefined;
  /**
   * Throw for a job that did not complete. A failed, canceled or blocked one throws its JobError; `false` resolves with
   * the final job.
   * @default true
   */
  readonly throwOnFailure?: boolean | undefined;
}
