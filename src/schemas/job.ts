/** A status unknown here is not final (the job is still running; spec: States and transitions). */
export type JobStatus =
  | 'created'
  | 'queued'
  | 'processing'
  | 'completed'
  | 'failed'
  | 'canceled'
  | 'blocked'
  | (string & {});

/** A generation job (spec: Job). Unknown fields pass through untouched. */
export interface Job {
  id: string;
  /** @remarks Kind of media, for example `video`. */
  mediaType?: string;
  /** @remarks Model alias the job ran on. */
  modelId?: string;
  status: JobStatus;
  /** @remarks Tokens reserved at acceptance. */
  quotedTokenCost?: number;
  /** Charged; 0 for a failed job. */
  finalTokenCost?: number | null;
  /** Needs the API key, expires; null until there is a file. */
  providerOutputUrl?: string | null;
  /** ISO 8601. */
  providerOutputExpiresAt?: string | null;
  /** @remarks Job error code when the job failed (spec: Job errors). */
  errorCode?: string | null;
  errorMessage?: string | null;
  /** `retry_after` in seconds, for example (with `reference_asset_pending`). */
  errorData?: Record<string, unknown> | null;
  /** @remarks ISO 8601 timestamp. */
  createdAt?: string;
  /** @remarks ISO 8601 timestamp. */
  completedAt?: string | null;
  [field: string]: unknown;
}

/** A job with its file (to be downloaded until `providerOutputExpiresAt`). */
export interface CompletedJob extends Job {
  status: 'completed';
  /** @remarks Authenticated download link of the file. It needs the API key and it expires. */
  providerOutputUrl: string;
  /** @remarks ISO timestamp at which the link expires. */
  providerOutputExpiresAt: string;
}

/** The fields of a job that the SDK relies on; everything else passes. */
export const JOB_ESSENTIALS = ['id', 'status'] as const;

const FINAL: readonly string[] = ['completed', 'failed', 'canceled', 'blocked'];

/** Whether polling ends here: completed, failed, canceled or blocked (spec: States and transitions). */
export function isFinal(job: Job): boolean {
  return FINAL.includes(job.status);
}
