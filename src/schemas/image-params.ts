import type { ImageModel, ImageRatioOf, ImageResolutionOf, OpenString, VideoModel } from '../catalog.js';
import type { CreateFields, Many } from './create-fields.js';

/** An image that guides the result, by its public HTTPS URL (spec: POST /v1/images, references). */
export interface ImageReference {
  /** The only documented kind. */
  type: 'image_url';
  /** Public HTTPS URL. */
  url: string;
}

/** What an image job takes (spec: POST /v1/images). Ratio and resolution follow the model. */
export interface ImageParams<M extends string = ImageModel | OpenString> extends CreateFields {
  /** Left out, the service chooses. An alias that the catalog does not know is left to the service. */
  model?: (M extends VideoModel ? never : M) | undefined;
  /** What the image shows; not empty. */
  prompt: string;
  /** Aspect ratio, one of the model's. */
  ratio?: ImageRatioOf<M> | undefined;
  /** Resolution, one of the model's. */
  resolution?: ImageResolutionOf<M> | undefined;
  /** How the image comes back; `url` is the documented value. */
  response_format?: 'url' | OpenString | undefined;
  /** Whether the image carries a watermark. */
  watermark?: boolean | undefined;
  /** Hashed id of the end user. */
  safety_identifier?: string | undefined;
  /** Reference images by URL. */
  references?: readonly ImageReference[] | undefined;
  /** Reference images by upload id. */
  reference_upload_ids?: Many;
  /** Registered characters, by id or slug. */
  character_ids?: Many;
  /** Reference images by HTTPS URL. */
  reference_image_urls?: Many;
  /** Alias of `reference_image_urls`. */
  referenceImageUrls?: Many;
  /** Alias of `reference_image_urls`. */
  reference_images?: Many;
}
