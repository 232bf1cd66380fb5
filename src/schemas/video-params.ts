import type {
  DefaultVideoModel,
  DurationOf,
  EditModel,
  ImageModel,
  OpenNumber,
  OpenString,
  VideoModel,
  VideoRatioOf,
  VideoResolutionOf,
} from '../catalog.js';
import type { Both, CreateFields, Given, Limited, OpenIn, Unless } from './params.js';
import type { UploadRef } from './upload.js';

/** What an item of `content` is for, unless it is text. */
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

/** An item of `content`, the alternative input of a video job. */
export type ContentItem = TextContent | ImageContent | VideoContent | AudioContent;

/** The type of `model`. All models, so that an editor offers them, unless the call names one that is not the default. */
type VideoModelIn<M> = M extends ImageModel
  ? `${M} makes images: call images.create, or use a video model.`
  : M extends Exclude<VideoModel, DefaultVideoModel>
    ? M
    : VideoModel | OpenString;

/** The type of a field of reference images. */
type ImagesIn<Found, T> = Unless<
  Found,
  'images beside frames',
  T,
  'Reference images cannot be combined with a start or end frame, in a field or in content. Remove one of them.'
>;

/** The type of a field that only edits take. */
type EditOnly<Found, T> = Unless<
  Found,
  'edit without intent',
  T,
  "Only an edit takes this field: add intent: 'video_edit', or call videoEdits.create."
>;

/** The fields of a video job. */
interface VideoFields<M, Found> extends CreateFields {
  /** Model alias. @default 'svc-video-fast' */
  model?: VideoModelIn<M> | undefined;
  /** Subject, action, camera move, light and style. Required, unless `content` has a text item. */
  prompt?: string | undefined;
  /** Text, images, clips and sound as a list of items. A text item stands in for `prompt`. */
  content?: readonly ContentItem[] | undefined;
  /** Length in seconds, one of the model's durations. */
  duration?: Limited<Found, 'duration', DurationOf<M>, OpenNumber> | undefined;
  /** Resolution, one of the model's. */
  resolution?: Limited<Found, 'resolution', VideoResolutionOf<M>, OpenString> | undefined;
  /** Aspect ratio, for example `16:9`. */
  aspect_ratio?: Limited<Found, 'aspect_ratio', VideoRatioOf<M>, OpenString> | undefined;
  /** Alias of `aspect_ratio`. */
  ratio?: Limited<Found, 'ratio', VideoRatioOf<M>, OpenString> | undefined;
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
  reference_image_urls?: ImagesIn<Found, readonly string[]> | undefined;
  /** Alias of `reference_image_urls`. */
  referenceImageUrls?: ImagesIn<Found, readonly string[]> | undefined;
  /** Alias of `reference_image_urls`. */
  reference_images?: ImagesIn<Found, readonly string[]> | undefined;
  /** Images for appearance, style, product or outfit, by upload id or as files. Not beside frames. */
  reference_image_upload_ids?: ImagesIn<Found, readonly UploadRef[]> | undefined;
  /** Clips for motion or camera, by public HTTPS URL. */
  reference_video_urls?: readonly string[] | undefined;
  /** Alias of `reference_video_urls`. */
  referenceVideoUrls?: readonly string[] | undefined;
  /** Alias of `reference_video_urls`. */
  reference_videos?: readonly string[] | undefined;
  /** Clips for motion or camera, by upload id or as files. */
  reference_video_upload_ids?: readonly UploadRef[] | undefined;
  /** Audio for voice, music or timing, by public HTTPS URL. */
  reference_audio_urls?: readonly string[] | undefined;
  /** Alias of `reference_audio_urls`. */
  referenceAudioUrls?: readonly string[] | undefined;
  /** Alias of `reference_audio_urls`. */
  reference_audios?: readonly string[] | undefined;
  /** Audio for voice, music or timing, by upload id or as files. */
  reference_audio_upload_ids?: readonly UploadRef[] | undefined;
  /** Registered characters, by id or slug. */
  character_ids?: readonly string[] | undefined;
  /** `strict` fails rather than leaves out a clip. Without it the service may leave out a failing clip, with a warning. */
  video_reference_mode?: 'strict' | OpenString | undefined;
  /** Hashed id of the end user. */
  safety_identifier?: string | undefined;
  /** Sends the call as an edit of an existing video, with the fields and rules of `videoEdits.create`. */
  intent?: 'video_edit' | undefined;
  /** Edits only: what the edit does to the clip. */
  edit_mode?: EditOnly<Found, EditMode> | undefined;
  /** Edits only: the clip to edit, by the id of an upload of type VIDEO or as a file. */
  source_video_upload_id?: EditOnly<Found, UploadRef> | undefined;
  /** Edits only: the clip to edit, by public HTTPS URL. */
  video?: EditOnly<Found, string> | undefined;
  /** Edits only: the clip to edit, by public HTTPS URL, as `video`. */
  source_video_url?: EditOnly<Found, string> | undefined;
}

/** The items of the `content` that `P` may have. */
type ItemIn<P> = 'content' extends keyof P
  ? P['content'] extends infer Content
    ? Content extends readonly (infer Item)[]
      ? Item
      : never
    : never
  : never;

type Frame = 'first_frame_url' | 'first_frame_upload_id' | 'last_frame_url' | 'last_frame_upload_id';
type ImageField = 'reference_image_urls' | 'referenceImageUrls' | 'reference_images' | 'reference_image_upload_ids';
type EditField = 'edit_mode' | EditSource;

/** What the compiler finds in the params `P` of a video. */
type FoundIn<P> =
  | OpenIn<P, 'duration', OpenNumber>
  | OpenIn<P, 'resolution' | 'aspect_ratio' | 'ratio', OpenString>
  | Both<Given<P, ImageField>, Given<P, Frame> | Extract<ItemIn<P>, { role: 'first_frame' }>, 'images beside frames'>
  | Both<Given<P, EditField>, 'intent' extends keyof P ? never : 'no intent', 'edit without intent'>;

/** A video whose prompt is missing. */
interface PromptRequired {
  /** Subject, action, camera move, light and style. A text item of `content` can stand in for it. */
  prompt: string;
}

/** Requires a prompt where `P` has none, and no text item that stands in for it. */
type WithPrompt<P> = [PromptIn<P>] extends [never] ? PromptRequired : unknown;
/** The prompt that `P` may have, or the text item in its place. */
type PromptIn<P> =
  | ('prompt' extends keyof P ? P['prompt'] & string : never)
  | (unknown extends ItemIn<P> ? 'unknown' : Extract<ItemIn<P>, TextContent>);

/**
 * What `videos.create` takes. Duration and resolution follow the model `M`. The types of a call
 * check the values that the compiler knows; preflight checks the rest when the call is made.
 */
export interface VideoParams<M extends string = VideoModel | OpenString> extends VideoFields<M, never> {}

/** {@link VideoParams} as the types of one call check them. For a wrapper that is generic in the params `P` itself. */
export type CheckedVideoParams<M, P> = P extends never
  ? P
  : P extends { readonly intent: 'video_edit' }
    ? CheckedEditByIntent<M, P>
    : VideoFields<M, FoundIn<P>> & WithPrompt<P>;

/** What an edit does to its clip: the documented modes, and any other that the service takes. */
export type EditMode = 'transform' | 'restyle' | 'extend' | OpenString;

/**
 * The type of `model`. A `string` that is known only at run time passes and is checked then. Extracted from the video
 * models, the aliases appear one by one in the compiler's message, which would otherwise only say `EditModel`.
 */
type EditModelIn<M> = string extends M ? M : M extends EditModel ? M : Extract<VideoModel, EditModel>;

/** The type of a field that names the clip to edit. */
type SourceIn<Found, T> = Unless<
  Found,
  'several sources',
  T,
  'An edit takes one source: source_video_upload_id, video or source_video_url.'
>;

/** The fields of an edit but for its model. */
interface EditFields<M, Found> extends CreateFields {
  /** What to change, and what to keep. */
  prompt: string;
  /** What the edit does to the clip. */
  edit_mode?: EditMode | undefined;
  /** The clip to edit, by the id of an upload of type VIDEO or as a file. An edit takes one source. */
  source_video_upload_id?: SourceIn<Found, UploadRef> | undefined;
  /** The clip to edit, by public HTTPS URL. An edit takes one source. */
  video?: SourceIn<Found, string> | undefined;
  /** The clip to edit, by public HTTPS URL, as `video`. An edit takes one source. */
  source_video_url?: SourceIn<Found, string> | undefined;
  /** Length in seconds, one of the model's durations. */
  duration?: Limited<Found, 'duration', DurationOf<M>, OpenNumber> | undefined;
  /** Resolution, one of the model's. */
  resolution?: Limited<Found, 'resolution', VideoResolutionOf<M>, OpenString> | undefined;
  /** Aspect ratio of the result. @default 'adaptive' */
  ratio?: 'adaptive' | Limited<Found, 'ratio', VideoRatioOf<M>, OpenString> | undefined;
  /** Whether the result has sound. */
  generate_audio?: boolean | undefined;
  /** Reference images, by upload id or as files. */
  reference_image_upload_ids?: readonly UploadRef[] | undefined;
  /** Reference images, by public HTTPS URL. */
  reference_images?: readonly string[] | undefined;
  /** Reference audio, by public HTTPS URL. */
  reference_audios?: readonly string[] | undefined;
}

/** The fields of an edit. */
interface VideoEditFields<M, Found> extends EditFields<M, Found> {
  /** Model alias: `svc-video-pro`, `svc-video-fast` or `svc-video-mini`. */
  model: EditModelIn<M>;
}

/** The fields of an edit that is sent to POST /v1/videos. */
interface EditByIntentFields<M, Found> extends EditFields<M, Found> {
  /** Sends the call as an edit of an existing video, with the fields and rules of `videoEdits.create`. */
  intent: 'video_edit';
  /** Model alias: `svc-video-pro`, `svc-video-fast` or `svc-video-mini`. @default 'svc-video-fast' */
  model?: EditModelIn<M> | undefined;
}

/** An edit whose source is missing. */
interface SourceRequired {
  /** The clip to edit. `video` or `source_video_url` can stand in for it. */
  source_video_upload_id: UploadRef;
}

/** The fields that name the clip to edit. */
export type EditSource = 'source_video_upload_id' | 'video' | 'source_video_url';

/** What the compiler finds in the params `P` of an edit. */
type FoundInEdit<P> =
  | OpenIn<P, 'duration', OpenNumber>
  | OpenIn<P, 'resolution' | 'ratio', OpenString>
  | Both<Given<P, 'source_video_upload_id'>, Given<P, 'video' | 'source_video_url'>, 'several sources'>
  | Both<Given<P, 'video'>, Given<P, 'source_video_url'>, 'several sources'>;

/** Requires a source where `P` has no field for one. */
type WithSource<P> = [EditSource & keyof P] extends [never] ? SourceRequired : unknown;

/**
 * What `videoEdits.create` takes. Duration and resolution follow the model `M`. An edit takes
 * one source: `source_video_upload_id`, `video` or `source_video_url`.
 */
export interface VideoEditParams<M extends string = EditModel | OpenString> extends VideoEditFields<M, never> {}

/** {@link VideoEditParams} as the types of one call check them. For a wrapper that is generic in the params `P` itself. */
export type CheckedVideoEditParams<M, P> = P extends never ? P : VideoEditFields<M, FoundInEdit<P>> & WithSource<P>;

/** The params `P` of an edit that is sent to POST /v1/videos. */
export type CheckedEditByIntent<M, P> = EditByIntentFields<M, FoundInEdit<P>> & WithSource<P>;
