import { isFields, isText, unwrap } from './envelope.js';

/** A job's status. Undocumented statuses count as running. */
export type JobStatus =
  | 'created'
  | 'queued'
  | 'processing'
  | 'completed'
  | 'failed'
  | 'canceled'
  | 'blocked'
  | (string & {});

/** Namespaces whose calls create jobs. */
export const JOB_CALLS = ['images', 'videos', 'videoEdits', 'characters'] as const;
/** A namespace whose calls create jobs. */
export type JobCall = (typeof JOB_CALLS)[number];

/** One of the jobs that a call created. */
export interface JobTry {
  /** Job ID. */
  readonly jobId: string;
  /** Idempotency key of the create. */
  readonly idempotencyKey: string;
  /** Model alias, if known. */
  readonly model?: string;
  /** Last known status. */
  readonly status: string;
  /** Error code of a failed job. */
  readonly errorCode?: string;
}

/** A generation job. Includes undocumented fields that the service sends. */
export interface Job {
  /** Job ID. */
  id: string;
  /** Media type, for example `video`. */
  mediaType?: string;
  /** Model alias. */
  modelId?: string;
  /** Current status. */
  status: JobStatus;
  /** Quoted price in tokens. */
  quotedTokenCost?: number;
  /** Charged tokens, or 0 for a failed job. */
  finalTokenCost?: number | null;
  /** Download link of the file, or null until the job completes. Requires the API key, and expires. */
  providerOutputUrl?: string | null;
  /** ISO timestamp when the link expires. */
  providerOutputExpiresAt?: string | null;
  /** Error code of a failed job. */
  errorCode?: string | null;
  /** Human-readable reason for a failure. */
  errorMessage?: string | null;
  /** Additional error data, for example `retry_after` in seconds for `reference_asset_pending`. */
  errorData?: Record<string, unknown> | null;
  /** Creation time as an ISO 8601 timestamp. */
  createdAt?: string;
  /** Time when the job ended, as an ISO 8601 timestamp. */
  completedAt?: string | null;
  /**
   * All jobs that the call created, this one last. Added by the SDK to the results of `createAndWait`, the queue, and
   * durable runs. Contains several jobs after a resubmission or a recovery.
   */
  tries?: readonly JobTry[];
}

/**
 * A completed job. Its file can be downloaded until `providerOutputExpiresAt`. If a webhook ended the wait, the cost
 * and the expiry are missing; call `jobs.get` for them.
 */
export interface CompletedJob extends Job {
  /** Final status. */
  status: 'completed';
  /** Download link of the file. Requires the API key, and expires. */
  providerOutputUrl: string;
  /** ISO timestamp when the link expires. */
  providerOutputExpiresAt?: string;
}

const FINAL: readonly string[] = ['completed', 'failed', 'canceled', 'blocked'];

/**
 * Returns true if the job has ended: it is completed, failed, canceled, or blocked.
 *
 * @example
 * const running = [first, second].filter((job) => !isFinal(job));
 */
export function isFinal(job: Job): boolean {
  return FINAL.includes(job.status);
}

/**
 * Returns true if the job is final and, if completed, has its link. The service may report `completed` a moment before
 * the link exists.
 */
export function isSettled(job: Job): boolean {
  return isFinal(job) && (job.status !== 'completed' || Boolean(job.providerOutputUrl));
}

/**
 * Returns true if the job completed and has its file, and narrows its type to {@link CompletedJob}. Comparing
 * `job.status` doesn't narrow the type, because a status may be any string.
 *
 * @example
 * const urls = [first, second].filter(isCompleted).map((job) => job.providerOutputUrl);
 */
export function isCompleted(job: Job): job is CompletedJob {
  return job.status === 'completed' && typeof job.providerOutputUrl === 'string' && job.providerOutputUrl !== '';
}

/** Parses a number of tokens. Returns undefined for anything else. */
export function tokensIn(value: unknown): number | undefined {
  const tokens = typeof value === 'string' && /^\s*\d+(\.\d+)?\s*$/.test(value) ? Number(value) : value;
  return typeof tokens === 'number' && tokens >= 0 && Number.isFinite(tokens) ? tokens : undefined;
}

/** Response to a create. Includes undocumented fields that the service sends. */
export interface CreatedJob {
  /** Accepted job. It may have ended already. */
  job: Job;
  /** Quoted price in tokens. */
  quoted_token_cost?: number;
  /** Tokens left in the account. */
  balance_tokens?: number;
  /**
   * Warnings of the service, for example `video_reference_fallback_omitted_clips`, and of the client, for example
   * `idempotency_key_reused: …`.
   */
  warnings: string[];
  /** Idempotency key of the create. Repeating the call with this key returns the same job. */
  idempotencyKey: string;
}

/**
 * Returns the warnings in the response to a create. The spec doesn't say where they are, so `warning` and `warnings` are
 * read from the body, its `data`, and the job. Each may be a string, a list, or an object with a code.
 */
export function warningsIn(body: unknown, job: unknown): string[] {
  const names = new Set<string>();
  for (const source of [body, unwrap(body), job]) {
    for (const warning of isFields(source) ? [source.warning, source.warnings].flat() : []) {
      const name = isFields(warning) ? (warning.code ?? warning.name ?? warning.type ?? warning.message) : warning;
      if (isText(name)) names.add(name);
    }
  }
  return [...names];
}
