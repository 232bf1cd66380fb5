import { GenError } from '../errors/index.js';
import { checkCharacter } from '../preflight/check-character.js';
import { checkImage } from '../preflight/check-image.js';
import { checkVideo } from '../preflight/check-video.js';
import { checkVideoEdit } from '../preflight/check-video-edit.js';
import type { CallKind } from '../resources/run-calls.js';
import { idempotencyKeyOf } from '../transport/idempotency.js';

/** A call that is to be queued. */
export interface CandidateCall {
  readonly call: CallKind;
  readonly params: Readonly<Record<string, unknown>>;
  readonly preflight: boolean;
  /** What the caller gave as the queue job's id, if anything. */
  readonly jobId: unknown;
}

const CHECKS = {
  images: checkImage,
  videos: checkVideo,
  videoEdits: checkVideoEdit,
  characters: checkCharacter,
} as const;

/**
 * Lets a call into the queue, or throws what says why not: a GenError for its id, a PreflightError for what the documented
 * rules refuse. Whatever else may keep a call out (a budget) belongs here. Gives the queue job's id.
 */
export function admitCall({ call, params, preflight, jobId }: CandidateCall): string {
  const id = checkId(jobId ?? crypto.randomUUID());
  // The worker's client checks again, and tells its logger what is only doubtful.
  if (preflight) CHECKS[call](params, () => {});
  return id;
}

/** The engine builds names from ids with colons, and takes bare numbers for its own. */
function checkId(id: unknown): string {
  if (typeof id !== 'string' || id === '' || id.includes(':') || /^-?\d+$/.test(id)) {
    throw new GenError(
      'jobId must be a string without a colon that is not a bare number, for example "order-17". Where it is left out, params.idempotency_key is used.',
    );
  }
  return idempotencyKeyOf(id, undefined);
}
