import { isFields, unwrap } from './envelope.js';
import type { Job } from './job.js';

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
   * noticed: `unknown_field: <name>`, and `idempotency_key_reused: …` where your key has made a job of other params before.
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
    if (isFields(holder))
      for (const warning of [holder.warning, holder.warnings].flat()) names.add(warningName(warning));
  }
  names.delete('');
  return [...names];
}

function warningName(warning: unknown): string {
  const name = isFields(warning) ? (warning.code ?? warning.name ?? warning.type ?? warning.message) : warning;
  return typeof name === 'string' ? name : '';
}
