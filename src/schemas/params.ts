// Types shared by the params of all creates.
//
// An interface contains the fields of a call with their documentation. It is generic in the model and in `Found`, the
// names of problems in the params of one call. `VideoParams` is the interface without problems, so it works with
// `Omit`, `Pick`, and `extends`. The method accepts `CheckedVideoParams<Model, Params>`, in which an invalid field has
// a sentence as its type, which the compiler prints. That type is neither a union nor a mapped type, because editors
// would then show no documentation for a field inside a literal.
//
// The compiler infers `Params` from both branches of `Params extends never ? Params : …`, although the first never
// applies. With `Params & …`, a misspelled field would be part of `Params` and compile. Each type repeats the
// condition, because generic wrappers could not pass their params through an alias. `Model` is inferred separately from
// `model`, because editors don't know `Params` while a call is being typed.
//
// The compiler checks only literals. Preflight checks values known only as `string` or `number`, and fields that may be
// missing.
import type { ImageModel, ImageRatioOf, ImageResolutionOf, OpenString, VideoModel } from '../catalog.js';
import type { UploadRef } from './upload.js';

/** Fields of every create. */
export interface CreateFields {
  /** HTTPS URL that receives the signed webhook event when the job ends. */
  webhook_url?: string | undefined;
  /** Alias of `webhook_url`. */
  callback_url?: string | undefined;
  /** Idempotency key. Usually passed as `options.idempotencyKey`. */
  idempotency_key?: string | undefined;
}

/** Fields among `Field` that `Params` always contains. */
export type Given<Params, Field extends string> = Field extends keyof Params
  ? undefined extends Params[Field]
    ? never
    : Field
  : never;

/** `Name` if neither of two mutually exclusive types is never. */
export type Both<First, Second, Name> = [First] extends [never] ? never : [Second] extends [never] ? never : Name;

/**
 * Fields among `Field` whose value in `Params` is known only as `Wide` (string or number). Excludes values of type any,
 * so that editors suggest the model's values while a field is empty.
 */
export type OpenIn<Params, Field extends string, Wide> = Field extends keyof Params
  ? 0 extends 1 & Params[Field]
    ? never
    : Wide extends Params[Field]
      ? Field
      : never
  : never;

/** Type of a field: the supported values, or any value if the compiler doesn't know the field's value. */
export type Limited<Found, Field extends string, Offered, Wide> = Field extends Found ? Offered | Wide : Offered;

/** Type of a field: `Type`, or the sentence `Problem` if `Conflict` was found. */
export type Unless<Found, Conflict extends string, Type, Problem extends string> = Conflict extends Found
  ? Problem
  : Type;

/** Reference image with a public HTTPS URL. */
export interface ImageReference {
  /** Type of reference. The service documents only this one. */
  type: 'image_url';
  /** Public HTTPS URL of the image. */
  url: string;
}

type ImageModelIn<Model> = Model extends VideoModel
  ? `${Model} creates videos: call videos.create, or use an image model.`
  : Model extends ImageModel
    ? Model
    : ImageModel | OpenString;

/** Fields of an image. */
interface ImageFields<Model, Found> extends CreateFields {
  /** Model alias. @default the service's own */
  model?: ImageModelIn<Model> | undefined;
  /** Description of the image. */
  prompt: string;
  /** Aspect ratio that the model supports. */
  ratio?: Limited<Found, 'ratio', ImageRatioOf<Model>, OpenString> | undefined;
  /** Resolution that the model supports. */
  resolution?: Limited<Found, 'resolution', ImageResolutionOf<Model>, OpenString> | undefined;
  /** Response format. Only `url` is documented. */
  response_format?: 'url' | OpenString | undefined;
  /** If true, adds a watermark. */
  watermark?: boolean | undefined;
  /** Hashed ID of the end user. */
  safety_identifier?: string | undefined;
  /** Reference images: objects with a public HTTPS URL. */
  references?: readonly ImageReference[] | undefined;
  /** Reference images: upload IDs or files. */
  reference_upload_ids?: readonly UploadRef[] | undefined;
  /** Registered characters: IDs or slugs. */
  character_ids?: readonly string[] | undefined;
  /** Reference images: public HTTPS URLs. */
  reference_image_urls?: readonly string[] | undefined;
  /** Alias of `reference_image_urls`. */
  referenceImageUrls?: readonly string[] | undefined;
  /** Alias of `reference_image_urls`. */
  reference_images?: readonly string[] | undefined;
}

/** Params of `images.create`. The model determines the supported ratios and resolutions. */
export interface ImageParams<Model extends string = ImageModel | OpenString> extends ImageFields<Model, never> {}

/** {@link ImageParams} as checked by the compiler for one call. For wrappers that are generic in the params. */
export type CheckedImageParams<Model, Params> = Params extends never
  ? Params
  : ImageFields<Model, OpenIn<Params, 'ratio' | 'resolution', OpenString>>;
