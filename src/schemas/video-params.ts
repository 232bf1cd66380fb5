import type { ImageModel, OpenString, VideoModel } from '../catalog.js';
import type { Many, ModelFields } from './create-fields.js';
import type { ContentItem, TextContent } from './video-content.js';
import type { EditFields, EditModelOf, EditSource } from './video-edit-params.js';

/** An aspect ratio of a video: the documented examples, and any other that the service takes. */
export type VideoRatio = '16:9' | '9:16' | '1:1' | '4:3' | '3:4' | '21:9' | OpenString;

/** Fields of a video job beside model, prompt and the references that exclude each other. */
interface VideoFields<M> extends ModelFields<M> {
  /** Aspect ratio; `16:9`, say. */
  aspect_ratio?: VideoRatio | undefined;
  /** Alias of `aspect_ratio`. */
  ratio?: VideoRatio | undefined;
  /** Whether the video has sound; only on models that support it. */
  generate_audio?: boolean | undefined;
  /** Integer that fixes the seed; for a similar result. */
  seed?: number | undefined;
  /** Keeps the camera still; leave it out beside image or frame inputs. */
  camera_fixed?: boolean | undefined;
  /** Whether the video carries a watermark. @default false */
  watermark?: boolean | undefined;
  /** Clips for motion or camera, by HTTPS URL. */
  reference_video_urls?: Many;
  /** Alias of `reference_video_urls`. */
  referenceVideoUrls?: Many;
  /** Alias of `reference_video_urls`. */
  reference_videos?: Many;
  /** Clips for motion or camera, by upload id. */
  reference_video_upload_ids?: Many;
  /** Audio for voice, music or timing, by HTTPS URL. */
  reference_audio_urls?: Many;
  /** Alias of `reference_audio_urls`. */
  referenceAudioUrls?: Many;
  /** Alias of `reference_audio_urls`. */
  reference_audios?: Many;
  /** Audio for voice, music or timing, by upload id. */
  reference_audio_upload_ids?: Many;
  /** Registered characters, by id or slug. */
  character_ids?: Many;
  /** `strict` fails rather than omit a clip; left out, the service may omit a failing one and warn. */
  video_reference_mode?: 'strict' | OpenString | undefined;
  /** Hashed id of the end user. */
  safety_identifier?: string | undefined;
}

/** Start and end images. */
interface Frames {
  /** Start image, by public HTTPS URL. */
  first_frame_url?: string | undefined;
  /** Start image, by upload id. */
  first_frame_upload_id?: string | undefined;
  /** End image, by public HTTPS URL; send with a first frame. */
  last_frame_url?: string | undefined;
  /** End image, by upload id; send with a first frame. */
  last_frame_upload_id?: string | undefined;
}

/** Images that guide appearance, style, product or outfit. */
interface ReferenceImages {
  /** Reference images, by public HTTPS URL. */
  reference_image_urls?: Many;
  /** Alias of `reference_image_urls`. */
  referenceImageUrls?: Many;
  /** Alias of `reference_image_urls`. */
  reference_images?: Many;
  /** Reference images, by upload id. */
  reference_image_upload_ids?: Many;
}

/** None of the fields of `T`. */
type Without<T> = { [K in keyof T]?: undefined };

/** Frames or reference images, never both (spec: POST /v1/videos, reference rule 1). */
type FramesOrImages = (Frames & Without<ReferenceImages>) | (ReferenceImages & Without<Frames>);

/** A prompt, unless `content` may hold a text item. */
type Prompt<C extends readonly ContentItem[]> = [Extract<C[number], TextContent>] extends [never]
  ? { prompt: string }
  : { prompt?: string | undefined };

/** Fields that only an edit has. */
type EditOnly = Record<'edit_mode' | 'source_video_upload_id' | 'source_video_url' | 'video', string>;

/** A video made from a prompt and references. */
type NewVideo<M, C extends readonly ContentItem[]> = VideoFields<M> &
  FramesOrImages &
  Prompt<C> &
  Without<EditOnly> & {
    intent?: undefined;
    /** Text, images, clips and sound as items. A text item stands in for `prompt`. */
    content?: C | undefined;
    /** A video alias. @default svc-video-fast */
    model?: (M extends ImageModel ? never : M) | undefined;
  };

/** An edit of an existing video, sent to POST /v1/videos. */
type VideoEditByIntent<M> = EditFields<M> &
  EditSource & {
    /** Routes the request as an edit, with its fields and rules. */
    intent: 'video_edit';
    /** A model that edits (`svc-video-pro`, `svc-video-fast` or `svc-video-mini`). @default svc-video-fast */
    model?: EditModelOf<M> | undefined;
  };

/** What a video job takes (spec: POST /v1/videos). Duration and resolution follow the model. */
export type VideoParams<
  M extends string = VideoModel | OpenString,
  C extends readonly ContentItem[] = readonly ContentItem[],
> = NewVideo<M, C> | VideoEditByIntent<M>;
