import { isFields, isText, unwrap } from './envelope.js';

/** A job's state. Open: a status the SDK does not know means still running. */
export type JobStatus =
  | 'created'
  | 'queued'
  | 'processing'
  | 'completed'
  | 'failed'
  | 'canceled'
  | 'blocked'
  | (string & {});

/** The namespaces whose calls create jobs. */
export const JOB_CALLS = ['images', 'videos', 'videoEdits', 'characters'] as const;
/** A namespace whose calls create jobs. */
export type JobCall = (typeof JOB_CALLS)[number];

/** One of the jobs that a call has made. */
export interface JobTry {
  /** The service's job id. */
  readonly jobId: string;
  /** The key that the job was created under. */
  readonly idempotencyKey: string;
  /** The model that the job ran on, where it is known. */
  readonly model?: string;
  /** The last status that was read. */
  readonly status: string;
  /** Why the job failed. */
  readonly errorCode?: string;
}

/** A generation job. Unknown fields pass through untouched. */
export interface Job {
  /** Job id, used in GET /v1/jobs/{id}. */
  id: string;
  /** Kind of media, for example `video`. */
  mediaType?: string;
  /** Model alias the job ran on. */
  modelId?: string;
  /** Where the job stands. */
  status: JobStatus;
  /** Tokens reserved at acceptance. */
  quotedTokenCost?: number;
  /** Tokens charged; 0 for a failed job. */
  finalTokenCost?: number | null;
  /** Authenticated download link of the finished file, null until then. It needs the API key and it expires. */
  providerOutputUrl?: string | null;
  /** ISO timestamp at which the link expires. */
  providerOutputExpiresAt?: string | null;
  /** Job error code when the job failed. */
  errorCode?: string | null;
  /** Human-readable reason. */
  errorMessage?: string | null;
  /** Extra error data; `retry_after` in seconds for `reference_asset_pending`. */
  errorData?: Record<string, unknown> | null;
  /** ISO 8601 timestamp. */
  createdAt?: string;
  /** ISO 8601 timestamp. */
  completedAt?: string | null;
  /**
   * Added by the SDK to what `createAndWait`, the queue and durable runs give: every job that the call has made, this one
   * last. There are several after a resubmission or a recovery.
   */
  tries?: readonly JobTry[];
}

/**
 * A job that completed: its file can be downloaded until `providerOutputExpiresAt`. The cost and the expiry are missing when
 * a webhook ended the wait: `jobs.get` reads them.
 */
export interface CompletedJob extends Job {
  /** Final: the file is there. */
  status: 'completed';
  /** Authenticated download link of the file. It needs the API key and it expires. */
  providerOutputUrl: string;
  /** ISO timestamp at which the link expires. */
  providerOutputExpiresAt?: string;
}

const FINAL: readonly string[] = ['completed', 'failed', 'canceled', 'blocked'];

/** Whether the job is final: completed, failed, canceled or blocked. Polling ends there. */
export function isFinal(job: Job): boolean {
  return FINAL.includes(job.status);
}

/**
 * Whether a wait for the job ends: it is final, and a completed one has its link. The service may show `completed` a
 * moment before the link is there.
 */
export function isSettled(job: Job): boolean {
  return isFinal(job) && (job.status !== 'completed' || Boolean(job.providerOutputUrl));
}

/**
 * Whether the job completed and has its file. Narrows the type: `jobs.filter(isCompleted)` gives completed jobs, whose
 * `providerOutputUrl` is a string. Comparing `job.status` narrows nothing, because a status may be any string.
 */
export function isCompleted(job: Job): job is CompletedJob {
  return job.status === 'completed' && typeof job.providerOutputUrl === 'string' && job.providerOutputUrl !== '';
}

/** A number of tokens in an answer; undefined for anything else. */
export function tokensIn(value: unknown): number | undefined {
  const tokens = typeof value === 'string' && /^\s*\d+(\.\d+)?\s*$/.test(value) ? Number(value) : value;
  return typeof tokens === 'number' && tokens >= 0 && Number.isFinite(tokens) ? tokens : undefined;
}

/** The service's answer to a create. Unknown fields pass through untouched. */
export interface CreatedJob {
  /** The job as it stood when it was accepted: processing, completed or already failed. */
  job: Job;
  /** Tokens quoted and reserved for the job. */
  quoted_token_cost?: number;
  /** Tokens left. */
  balance_tokens?: number;
  /**
   * What the service warned of, wherever in the answer (`video_reference_fallback_omitted_clips`, say), and what the client
   * noticed: `idempotency_key_reused: …` where your key has made a job of other params before.
   */
  warnings: string[];
  /** The key the job was created under. The same call with it gives this job again and not a second one. */
  idempotencyKey: string;
}

/**
 * The warnings of a create: `warning` or `warnings` of the body, of `data` or of the job, each a string, a list, or an
 * object with a code. The spec names one and does not show where it stands.
 */
export function warningsIn(body: unknown, job: unknown): string[] {
  const names = new Set<string>();
  for (const holder of [body, unwrap(body), job]) {
    for (const warning of isFields(holder) ? [holder.warning, holder.warnings].flat() : []) {
      const name = isFields(warning) ? (warning.code ?? warning.name ?? warning.type ?? warning.message) : warning;
      if (isText(name)) names.add(name);
    }
  }
  return [...names];
}
