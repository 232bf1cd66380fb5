import type { Job } from '../schemas/job.js';

/** How to wait for a job. */
export interface WaitOptions {
  /** Ends the wait at once with the signal's own reason; the job goes on. */
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds to wait at most; `false` for no limit. @default 1_800_000 (30 min) */
  readonly timeoutMs?: number | false | undefined;
  /** Milliseconds between two reads of this job. @default 10-15 s with jitter for video and edits, shorter for images */
  readonly pollIntervalMs?: number | undefined;
  /** Told each state that a read shows. */
  readonly onUpdate?: ((job: Job) => void) | undefined;
  /** Whether a failed, canceled or blocked job throws its JobError. `false` resolves with the final job. @default true */
  readonly throwOnFailure?: boolean | undefined;
}
