import type { ImageModel, ImageRatioOf, ImageResolutionOf, OpenString, VideoModel } from '../catalog.js';
import type { CreateFields, Limited, OpenIn } from './create-fields.js';
import type { UploadRef } from './upload.js';

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
