import type {
  DefaultVideoModel,
  DurationOf,
  ImageModel,
  OpenNumber,
  OpenString,
  VideoModel,
  VideoResolutionOf,
} from '../catalog.js';
import type { CreateFields, Given, InferFrom, Many, ManyUploads, OneOf, Unless, VideoRatio } from './create-fields.js';
import type { UploadRef } from './upload.js';
import type { CheckedIntendedEdit, EditMode } from './video-edit-params.js';

/** What an item of `content` is for, unless it is text (spec: POST /v1/videos, content). */
export type ContentRole = 'first_frame' | 'reference_video' | 'reference_audio';

/** A prompt as an item of `content`. */
export interface TextContent {
  /** The kind of item. */
  type: 'text';
  /** Subject, action, camera move, light and style. */
  text: string;
}

/** An image as an item of `content`. */
export interface ImageContent {
  /** The kind of item. */
  type: 'image_url';
  /** Public HTTPS URL of the image. */
  image_url: string;
  /** What the image is for. */
  role: ContentRole;
}

/** A clip as an item of `content`. */
export interface VideoContent {
  /** The kind of item. */
  type: 'video_url';
  /** Public HTTPS URL of the clip. */
  video_url: { url: string };
  /** What the clip is for. */
  role: ContentRole;
}

/** Sound as an item of `content`. */
export interface AudioContent {
  /** The kind of item. */
  type: 'audio_url';
  /** Public HTTPS URL of the sound. */
  audio_url: string;
  /** What the sound is for. */
  role: ContentRole;
}

/** An item of `content`, the alternative input of a video job (spec: POST /v1/videos). */
export type ContentItem = TextContent | ImageContent | VideoContent | AudioContent;

/** The items of the `content` that `P` may have. */
type ItemIn<P> = 'content' extends keyof P
  ? P['content'] extends infer Content
    ? Content extends readonly (infer Item)[]
      ? Item
      : never
    : never
  : never;

/** What in `P` is a start or end frame. */
type FrameIn<P> =
  | Given<P, 'first_frame_url' | 'first_frame_upload_id' | 'last_frame_url' | 'last_frame_upload_id'>
  | ([Extract<ItemIn<P>, { role: 'first_frame' }>] extends [never] ? never : 'the first_frame in content');

/** The type of a field of reference images, which cannot be combined with frames (spec: POST /v1/videos, reference rule 1). */
type ImagesOf<P, K extends string, T> = Unless<
  FrameIn<P>,
  P,
  K,
  T,
  `Reference images cannot be combined with frames: remove ${K} or ${FrameIn<P>}.`
>;

/** The type of a field that only edits have. */
type EditOnly<P, K extends string, T> = Unless<
  'intent' extends keyof P ? never : 'intent',
  P,
  K,
  T,
  `${K} is a field of edits: add intent: 'video_edit', or call videoEdits.create.`
>;

/** The type of `model`. Where the call names none yet, `M` is the default, and an editor offers all models. */
type VideoModelIn<M> = M extends ImageModel
  ? `${M} makes images: call images.create, or use a video model.`
  : M extends DefaultVideoModel
    ? VideoModel | OpenString
    : M;

/** The fields of a video job, typed by the call's own params `P`. */
interface VideoFields<M, P> extends CreateFields {
  /** Model alias. @default 'svc-video-fast' */
  model?: VideoModelIn<M> | undefined;
  /** Subject, action, camera move, light and style. Required, unless `content` has a text item. */
  prompt?: string | undefined;
  /** Text, images, clips and sound as a list of items. A text item stands in for `prompt`. */
  content?: readonly ContentItem[] | undefined;
  /** Length in seconds, one of the model's durations. */
  duration?: OneOf<P, 'duration', DurationOf<M>, OpenNumber> | undefined;
  /** Resolution, one of the model's. */
  resolution?: OneOf<P, 'resolution', VideoResolutionOf<M>, OpenString> | undefined;
  /** Aspect ratio, for example `16:9`. */
  aspect_ratio?: VideoRatio | undefined;
  /** Alias of `aspect_ratio`. */
  ratio?: VideoRatio | undefined;
  /** Whether the video has sound. Only on models that support it. */
  generate_audio?: boolean | undefined;
  /** Integer that fixes the seed, for a similar result. */
  seed?: number | undefined;
  /** Keeps the camera still. Leave it out when you send images or frames. */
  camera_fixed?: boolean | undefined;
  /** Whether the video carries a watermark. @default false */
  watermark?: boolean | undefined;
  /** Start image, by public HTTPS URL. */
  first_frame_url?: string | undefined;
  /** Start image, by upload id or as a file. */
  first_frame_upload_id?: UploadRef | undefined;
  /** End image, by public HTTPS URL. Send it with a first frame. */
  last_frame_url?: string | undefined;
  /** End image, by upload id or as a file. Send it with a first frame. */
  last_frame_upload_id?: UploadRef | undefined;
  /** Images for appearance, style, product or outfit, by public HTTPS URL. Not beside frames. */
  reference_image_urls?: ImagesOf<P, 'reference_image_urls', Many>;
  /** Alias of `reference_image_urls`. */
  referenceImageUrls?: ImagesOf<P, 'referenceImageUrls', Many>;
  /** Alias of `reference_image_urls`. */
  reference_images?: ImagesOf<P, 'reference_images', Many>;
  /** Images for appearance, style, product or outfit, by upload id or as files. Not beside frames. */
  reference_image_upload_ids?: ImagesOf<P, 'reference_image_upload_ids', ManyUploads>;
  /** Clips for motion or camera, by public HTTPS URL. */
  reference_video_urls?: Many;
  /** Alias of `reference_video_urls`. */
  referenceVideoUrls?: Many;
  /** Alias of `reference_video_urls`. */
  reference_videos?: Many;
  /** Clips for motion or camera, by upload id or as files. */
  reference_video_upload_ids?: ManyUploads;
  /** Audio for voice, music or timing, by public HTTPS URL. */
  reference_audio_urls?: Many;
  /** Alias of `reference_audio_urls`. */
  referenceAudioUrls?: Many;
  /** Alias of `reference_audio_urls`. */
  reference_audios?: Many;
  /** Audio for voice, music or timing, by upload id or as files. */
  reference_audio_upload_ids?: ManyUploads;
  /** Registered characters, by id or slug. */
  character_ids?: Many;
  /** `strict` fails rather than leaves out a clip. Without it the service may leave out a failing clip, with a warning. */
  video_reference_mode?: 'strict' | OpenString | undefined;
  /** Hashed id of the end user. */
  safety_identifier?: string | undefined;
  /** Sends the call as an edit of an existing video, with the fields and rules of `videoEdits.create`. */
  intent?: 'video_edit' | undefined;
  /** Edits only: what the edit does to the clip. */
  edit_mode?: EditOnly<P, 'edit_mode', EditMode> | undefined;
  /** Edits only: the clip to edit, by the id of an upload of type VIDEO or as a file. */
  source_video_upload_id?: EditOnly<P, 'source_video_upload_id', UploadRef> | undefined;
  /** Edits only: the clip to edit, by public HTTPS URL. */
  video?: EditOnly<P, 'video', string> | undefined;
  /** Edits only: the clip to edit, by public HTTPS URL, as `video`. */
  source_video_url?: EditOnly<P, 'source_video_url', string> | undefined;
}

/** The missing prompt of a video. */
interface PromptRequired {
  /** Subject, action, camera move, light and style. A text item of `content` can stand in for it. */
  prompt: string;
}

/** Requires a prompt where `P` has none, and no text item that stands in for it. */
type WithPrompt<P> = 'prompt' extends keyof P
  ? [P['prompt'] & string] extends [never]
    ? PromptFromContent<P>
    : unknown
  : PromptFromContent<P>;
type PromptFromContent<P> =
  unknown extends ItemIn<P> ? unknown : [Extract<ItemIn<P>, TextContent>] extends [never] ? PromptRequired : unknown;

/**
 * What `videos.create` takes (spec: POST /v1/videos). Duration and resolution follow the model `M`. The types of a call
 * check the values that the compiler knows; preflight checks the rest when the call is made.
 */
export interface VideoParams<M extends string = VideoModel | OpenString> extends VideoFields<M, unknown> {}

/** {@link VideoParams} with what the rules of the model and the references leave of each field, for the params `P` of one call. */
export type CheckedVideoParams<M, P> = InferFrom<
  P,
  P extends { readonly intent: 'video_edit' } ? CheckedIntendedEdit<M, P> : VideoFields<M, P> & WithPrompt<P>
>;
