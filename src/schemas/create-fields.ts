// What the params of all creating calls have in common.
//
// The shape: for each call there is one interface, generic in `P`, the params of one call as the compiler infers them.
// A field whose type depends on others computes its type from `P`: the durations of the model, or a sentence that says
// why the field cannot stand beside another. The public params type (`VideoParams`) is the same interface with nothing
// inferred, a plain object type for `Omit`, `Pick` and `extends`. It is no union, and no mapped type either, because an
// editor shows the documentation of a field inside a literal only where the field comes from one interface.
//
// What the compiler sees as a literal is checked by the compiler. What it knows only as `string` or `number` is left to
// preflight. So are fields that may be missing, as in a wrapper that extends the params.
import type { OpenString } from '../catalog.js';
import type { UploadRef } from './upload.js';

/** URLs, or ids. */
export type Many = readonly string[] | undefined;
/** Upload ids, or files that are uploaded before the call is sent. */
export type ManyUploads = readonly UploadRef[] | undefined;

/** An aspect ratio of a video: the documented examples, and any other that the service takes. */
export type VideoRatio = '16:9' | '9:16' | '1:1' | '4:3' | '3:4' | '21:9' | OpenString;

/** Fields that every creating call takes. */
export interface CreateFields {
  /** HTTPS URL that receives the signed event of the job's final state (spec: Events). */
  webhook_url?: string | undefined;
  /** Alias of `webhook_url`. */
  callback_url?: string | undefined;
  /** The call's idempotency key. `options.idempotencyKey` is the usual place (spec: Authentication 6). */
  idempotency_key?: string | undefined;
}

/**
 * `Checked`, a type computed from `P`, as the type of a parameter from which the compiler infers `P`. It infers from both
 * branches of a condition, and the first one never applies. With `P & Checked` instead, a misspelt field would be part of
 * `P` and pass.
 */
export type InferFrom<P, Checked> = P extends never ? P : Checked;

/** The fields among `K` that `P` is certain to have, and not as undefined. */
export type Given<P, K extends string> = K extends keyof P ? (undefined extends P[K] ? never : K) : never;

/** The type of field `K`: `T`, or the sentence `Problem` where `P` gives the field and `Conflict` names something. */
export type Unless<Conflict, P, K extends string, T, Problem extends string> = [Conflict] extends [never]
  ? T
  : [Given<P, K>] extends [never]
    ? T
    : Problem;

/**
 * The type of field `K`, whose values are `Allowed`. A value that is known only as a `Wide` (string or number) passes. One
 * of type any does not widen the list, so that an editor offers the values of the model while the field is empty.
 */
export type OneOf<P, K extends string, Allowed, Wide> = K extends keyof P
  ? 0 extends 1 & P[K]
    ? Allowed
    : Wide extends P[K]
      ? Allowed | Wide
      : Allowed
  : Allowed;
