// What the params of all creating calls have in common.
//
// How a call is typed: one interface holds the fields of a call with their documentation. It is generic in the model `M`
// and in `Found`, which names what the compiler has found in the params of one call. `VideoParams` is that interface with
// nothing found, a plain object type for `Omit`, `Pick` and `extends`. The method takes `CheckedVideoParams<M, P>`, the
// interface with what is found in `P`, the params of the call. A field that is refused has for its type a sentence that
// says why, which the compiler prints. The shape is neither a union nor a mapped type: of those, editors show no
// documentation for a field inside a literal.
//
// How `P` is inferred: the compiler infers from both branches of `P extends never ? P : …`, and the first one never
// applies. With `P & …` instead, a misspelt field would be part of `P` and pass. The condition is written out in each type:
// behind an alias, a wrapper that is generic in `P` could not hand its params on. `M` is inferred on its own, from `model`,
// because an editor has no `P` yet while a call is being typed.
//
// The compiler checks literals. What it knows only as `string` or `number` is left to preflight, and so are fields that
// may be missing, as in a wrapper that extends the params.
import type { ImageModel, ImageRatioOf, ImageResolutionOf, OpenString, VideoModel } from '../catalog.js';
import type { UploadRef } from './upload.js';

/** Fields that every creating call takes. */
export interface CreateFields {
  /** HTTPS URL that receives the signed event of the job's final state. */
  webhook_url?: string | undefined;
  /** Alias of `webhook_url`. */
  callback_url?: string | undefined;
  /** The call's idempotency key. `options.idempotencyKey` is the usual place. */
  idempotency_key?: string | undefined;
}

/** The fields among `K` that `P` is certain to have, and not as undefined. */
export type Given<P, K extends string> = K extends keyof P ? (undefined extends P[K] ? never : K) : never;

/** `Name`, where neither `A` nor `B` is never: two things that exclude each other are both there. */
export type Both<A, B, Name> = [A] extends [never] ? never : [B] extends [never] ? never : Name;

/**
 * The fields among `K` whose value in `P` is known only as a `Wide` (string or number). A value of type any is not among
 * them: while a field is still empty, an editor offers the values of the model.
 */
export type OpenIn<P, K extends string, Wide> = K extends keyof P
  ? 0 extends 1 & P[K]
    ? never
    : Wide extends P[K]
      ? K
      : never
  : never;

/** The type of field `K`: what the model offers, or any value where the compiler cannot know the one that is given. */
export type Limited<Found, K extends string, Offered, Wide> = K extends Found ? Offered | Wide : Offered;

/** The type of a field: `T`, or the sentence `Problem` where `Conflict` was found. */
export type Unless<Found, Conflict extends string, T, Problem extends string> = Conflict extends Found ? Problem : T;

/** An image that guides the result, by its public HTTPS URL. */
export interface ImageReference {
  /** The kind of reference. The service documents one. */
  type: 'image_url';
  /** Public HTTPS URL of the image. */
  url: string;
}

/** The type of `model`. */
type ImageModelIn<M> = M extends VideoModel
  ? `${M} makes videos: call videos.create, or use an image model.`
  : M extends ImageModel
    ? M
    : ImageModel | OpenString;

/** The fields of an image job. */
interface ImageFields<M, Found> extends CreateFields {
  /** Model alias. The service chooses where there is none. */
  model?: ImageModelIn<M> | undefined;
  /** What the image shows. Not empty. */
  prompt: string;
  /** Aspect ratio, one of the model's. */
  ratio?: Limited<Found, 'ratio', ImageRatioOf<M>, OpenString> | undefined;
  /** Resolution, one of the model's. */
  resolution?: Limited<Found, 'resolution', ImageResolutionOf<M>, OpenString> | undefined;
  /** How the image comes back. `url` is the documented value. */
  response_format?: 'url' | OpenString | undefined;
  /** Whether the image carries a watermark. */
  watermark?: boolean | undefined;
  /** Hashed id of the end user. */
  safety_identifier?: string | undefined;
  /** Reference images, as objects with a public HTTPS URL. */
  references?: readonly ImageReference[] | undefined;
  /** Reference images, by upload id or as files. */
  reference_upload_ids?: readonly UploadRef[] | undefined;
  /** Registered characters, by id or slug. */
  character_ids?: readonly string[] | undefined;
  /** Reference images, by public HTTPS URL. */
  reference_image_urls?: readonly string[] | undefined;
  /** Alias of `reference_image_urls`. */
  referenceImageUrls?: readonly string[] | undefined;
  /** Alias of `reference_image_urls`. */
  reference_images?: readonly string[] | undefined;
}

/** What `images.create` takes. Ratio and resolution follow the model `M`. */
export interface ImageParams<M extends string = ImageModel | OpenString> extends ImageFields<M, never> {}

/** {@link ImageParams} as the types of one call check them. For a wrapper that is generic in the params `P` itself. */
export type CheckedImageParams<M, P> = P extends never
  ? P
  : ImageFields<M, OpenIn<P, 'ratio' | 'resolution', OpenString>>;
