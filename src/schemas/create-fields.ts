import type { DurationOf, VideoResolutionOf } from '../catalog.js';

/** A list of URLs or ids. */
export type Many = readonly string[] | undefined;

/** Fields that every creating call takes. */
export interface CreateFields {
  /** HTTPS URL that receives the signed events; of the job's final state (spec: Events). */
  webhook_url?: string | undefined;
  /** Alias of `webhook_url`. */
  callback_url?: string | undefined;
  /** Counts as the call's key. `options.idempotencyKey` is the usual place (spec: Authentication 6). */
  idempotency_key?: string | undefined;
}

/** Fields of a video job whose types follow the model `M`. */
export interface ModelFields<M> extends CreateFields {
  /** Seconds, one of the model's. */
  duration?: DurationOf<M> | undefined;
  /** Resolution, one of the model's. */
  resolution?: VideoResolutionOf<M> | undefined;
}
