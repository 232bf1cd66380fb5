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

/** Purpose of an item of `content`. */
export type ContentRole = 'first_frame' | 'reference_video' | 'reference_audio';

/** Text item of `content`: a prompt. */
export interface TextContent {
  /** Type of the item. */
  type: 'text';
  /** Subject, action, camera move, light, and style. */
  text: string;
}

/** Image item of `content`. */
export interface ImageContent {
  /** Type of the item. */
  type: 'image_url';
  /** Public HTTPS URL of the image. */
  image_url: string;
  /** Purpose of the image. */
  role: ContentRole;
}

/** Video item of `content`. */
export interface VideoContent {
  /** Type of the item. */
  type: 'video_url';
  /** Public HTTPS URL of the clip. */
  video_url: { url: string };
  /** Purpose of the clip. */
  role: ContentRole;
}

/** Audio item of `content`. */
export interface AudioContent {
  /** Type of the item. */
  type: 'audio_url';
  /** Public HTTPS URL of the audio. */
  audio_url: string;
  /** Purpose of the audio. */
  role: ContentRole;
}

/** Item of `content`, the alternative input of a video. */
export type ContentItem = TextContent | ImageContent | VideoContent | AudioContent;

/**
 * Type of `model`: all models, so that editors suggest them, unless the call specifies a model other than the default.
 */
type VideoModelIn<Model> = Model extends ImageModel
  ? `${Model} creates images: call images.create, or use a video model.`
  : Model extends Exclude<VideoModel, DefaultVideoModel>
    ? Model
    : VideoModel | OpenString;

/** Type of a field for reference images. */
type ImagesIn<Found, Type> = Unless<
  Found,
  'images and frames',
  Type,
  'Reference images cannot be combined with a start or end frame, in a field or in content. Remove one of them.'
>;

/** Type of a field for edits only. */
type EditOnly<Found, Type> = Unless<
  Found,
  'edit without intent',
  Type,
  "Only edits accept this field: add intent: 'video_edit', or call videoEdits.create."
>;

/** Fields of a video. */
interface VideoFields<Model, Found> extends CreateFields {
  /** Model alias. @default 'svc-video-fast' */
  model?: VideoModelIn<Model> | undefined;
  /** Subject, action, camera move, light, and style. Required, unless `content` has a text item. */
  prompt?: string | undefined;
  /** Text, images, clips, and audio as a list of items. A text item replaces `prompt`. */
  content?: readonly ContentItem[] | undefined;
  /** Duration in seconds that the model supports. */
  duration?: Limited<Found, 'duration', DurationOf<Model>, OpenNumber> | undefined;
  /** Resolution that the model supports. */
  resolution?: Limited<Found, 'resolution', VideoResolutionOf<Model>, OpenString> | undefined;
  /** Aspect ratio, for example `16:9`. */
  aspect_ratio?: Limited<Found, 'aspect_ratio', VideoRatioOf<Model>, OpenString> | undefined;
  /** Alias of `aspect_ratio`. */
  ratio?: Limited<Found, 'ratio', VideoRatioOf<Model>, OpenString> | undefined;
  /** If true, creates sound. Not all models support it. */
  generate_audio?: boolean | undefined;
  /** Integer seed. The same seed creates a similar result. */
  seed?: number | undefined;
  /** If true, the camera doesn't move. Can't be combined with images or frames. */
  camera_fixed?: boolean | undefined;
  /** If true, adds a watermark. @default false */
  watermark?: boolean | undefined;
  /** Start image: a public HTTPS URL. */
  first_frame_url?: string | undefined;
  /** Start image: an upload ID or a file. */
  first_frame_upload_id?: UploadRef | undefined;
  /** End image: a public HTTPS URL. Send it with a first frame for a transition. */
  last_frame_url?: string | undefined;
  /** End image: an upload ID or a file. Send it with a first frame for a transition. */
  last_frame_upload_id?: UploadRef | undefined;
  /** Images for appearance, style, product, or outfit: public HTTPS URLs. Can't be combined with frames. */
  reference_image_urls?: ImagesIn<Found, readonly string[]> | undefined;
  /** Alias of `reference_image_urls`. */
  referenceImageUrls?: ImagesIn<Found, readonly string[]> | undefined;
  /** Alias of `reference_image_urls`. */
  reference_images?: ImagesIn<Found, readonly string[]> | undefined;
  /** Images for appearance, style, product, or outfit: upload IDs or files. Can't be combined with frames. */
  reference_image_upload_ids?: ImagesIn<Found, readonly UploadRef[]> | undefined;
  /** Clips for motion or camera: public HTTPS URLs. */
  reference_video_urls?: readonly string[] | undefined;
  /** Alias of `reference_video_urls`. */
  referenceVideoUrls?: readonly string[] | undefined;
  /** Alias of `reference_video_urls`. */
  reference_videos?: readonly string[] | undefined;
  /** Clips for motion or camera: upload IDs or files. */
  reference_video_upload_ids?: readonly UploadRef[] | undefined;
  /** Audio for voice, music, or timing: public HTTPS URLs. */
  reference_audio_urls?: readonly string[] | undefined;
  /** Alias of `reference_audio_urls`. */
  referenceAudioUrls?: readonly string[] | undefined;
  /** Alias of `reference_audio_urls`. */
  reference_audios?: readonly string[] | undefined;
  /** Audio for voice, music, or timing: upload IDs or files. */
  reference_audio_upload_ids?: readonly UploadRef[] | undefined;
  /** Registered characters: IDs or slugs. */
  character_ids?: readonly string[] | undefined;
  /** `strict`: the job fails if a clip can't be used. Otherwise, the service may omit the clip with a warning. */
  video_reference_mode?: 'strict' | OpenString | undefined;
  /** Hashed ID of the end user. */
  safety_identifier?: string | undefined;
  /** Edits an existing video, with the fields and rules of `videoEdits.create`. */
  intent?: 'video_edit' | undefined;
  /** Type of edit. Only for edits. */
  edit_mode?: EditOnly<Found, EditMode> | undefined;
  /** Clip to edit: the ID of an upload of type VIDEO, or a file. Only for edits. */
  source_video_upload_id?: EditOnly<Found, UploadRef> | undefined;
  /** Clip to edit: a public HTTPS URL. Only for edits. */
  video?: EditOnly<Found, string> | undefined;
  /** Alias of `video`. */
  source_video_url?: EditOnly<Found, string> | undefined;
}

/** Items that `content` may contain. */
type ItemIn<Params> = 'content' extends keyof Params
  ? Params['content'] extends infer Content
    ? Content extends readonly (infer Item)[]
      ? Item
      : never
    : never
  : never;

type Frame = 'first_frame_url' | 'first_frame_upload_id' | 'last_frame_url' | 'last_frame_upload_id';
type ImageField = 'reference_image_urls' | 'referenceImageUrls' | 'reference_images' | 'reference_image_upload_ids';
type EditField = 'edit_mode' | EditSource;

/** Problems in the params of a video, and fields whose value the compiler doesn't know. */
type FoundIn<Params> =
  | OpenIn<Params, 'duration', OpenNumber>
  | OpenIn<Params, 'resolution' | 'aspect_ratio' | 'ratio', OpenString>
  | Both<
      Given<Params, ImageField>,
      Given<Params, Frame> | Extract<ItemIn<Params>, { role: 'first_frame' }>,
      'images and frames'
    >
  | Both<Given<Params, EditField>, 'intent' extends keyof Params ? never : 'no intent', 'edit without intent'>;

interface PromptRequired {
  /** Subject, action, camera move, light, and style. A text item of `content` can replace it. */
  prompt: string;
}

/** Requires a prompt if the params contain neither a prompt nor a text item. */
type WithPrompt<Params> = [PromptIn<Params>] extends [never] ? PromptRequired : unknown;
/** The prompt in `Params`, or a text item that replaces it. */
type PromptIn<Params> =
  | ('prompt' extends keyof Params ? Params['prompt'] & string : never)
  | (unknown extends ItemIn<Params> ? 'unknown' : Extract<ItemIn<Params>, TextContent>);

/**
 * Params of `videos.create`. The model determines the supported durations and resolutions. The compiler checks
 * literals, and preflight checks other values before the request is sent.
 */
export interface VideoParams<Model extends string = VideoModel | OpenString> extends VideoFields<Model, never> {}

/** {@link VideoParams} as checked by the compiler for one call. For wrappers that are generic in the params. */
export type CheckedVideoParams<Model, Params> = Params extends never
  ? Params
  : Params extends { readonly intent: 'video_edit' }
    ? CheckedEditByIntent<Model, Params>
    : VideoFields<Model, FoundIn<Params>> & WithPrompt<Params>;

/** Type of edit. Other values are sent to the service unchanged. */
export type EditMode = 'transform' | 'restyle' | 'extend' | OpenString;

/**
 * Type of `model`. Accepts any `string` that is known only at run time. Extracted from the video models, so that the
 * compiler's message lists the aliases.
 */
type EditModelIn<Model> = string extends Model
  ? Model
  : Model extends EditModel
    ? Model
    : Extract<VideoModel, EditModel>;

/** Type of a field for the clip to edit. */
type SourceIn<Found, Type> = Unless<
  Found,
  'several sources',
  Type,
  'An edit accepts one source: source_video_upload_id, video, or source_video_url.'
>;

/** Fields of an edit, without its model. */
interface EditFields<Model, Found> extends CreateFields {
  /** Changes to make, and parts to preserve. */
  prompt: string;
  /** Type of edit. */
  edit_mode?: EditMode | undefined;
  /** Clip to edit: the ID of an upload of type VIDEO, or a file. Pass only one source. */
  source_video_upload_id?: SourceIn<Found, UploadRef> | undefined;
  /** Clip to edit: a public HTTPS URL. Pass only one source. */
  video?: SourceIn<Found, string> | undefined;
  /** Alias of `video`. */
  source_video_url?: SourceIn<Found, string> | undefined;
  /** Duration in seconds that the model supports. */
  duration?: Limited<Found, 'duration', DurationOf<Model>, OpenNumber> | undefined;
  /** Resolution that the model supports. */
  resolution?: Limited<Found, 'resolution', VideoResolutionOf<Model>, OpenString> | undefined;
  /** Aspect ratio of the result. @default 'adaptive' */
  ratio?: 'adaptive' | Limited<Found, 'ratio', VideoRatioOf<Model>, OpenString> | undefined;
  /** If true, creates sound. */
  generate_audio?: boolean | undefined;
  /** Reference images: upload IDs or files. */
  reference_image_upload_ids?: readonly UploadRef[] | undefined;
  /** Reference images: public HTTPS URLs. */
  reference_images?: readonly string[] | undefined;
  /** Reference audio: public HTTPS URLs. */
  reference_audios?: readonly string[] | undefined;
}

/** Fields of an edit. */
interface VideoEditFields<Model, Found> extends EditFields<Model, Found> {
  /** Alias of a model that supports edits. */
  model: EditModelIn<Model>;
}

/** Fields of an edit that is sent to POST /v1/videos. */
interface EditByIntentFields<Model, Found> extends EditFields<Model, Found> {
  /** Edits an existing video, with the fields and rules of `videoEdits.create`. */
  intent: 'video_edit';
  /** Alias of a model that supports edits. @default 'svc-video-fast' */
  model?: EditModelIn<Model> | undefined;
}

interface SourceRequired {
  /** Clip to edit. `video` or `source_video_url` can replace it. */
  source_video_upload_id: UploadRef;
}

/** Fields for the clip to edit. */
export type EditSource = 'source_video_upload_id' | 'video' | 'source_video_url';

/** Problems in the params of an edit, and fields whose value the compiler doesn't know. */
type FoundInEdit<Params> =
  | OpenIn<Params, 'duration', OpenNumber>
  | OpenIn<Params, 'resolution' | 'ratio', OpenString>
  | Both<Given<Params, 'source_video_upload_id'>, Given<Params, 'video' | 'source_video_url'>, 'several sources'>
  | Both<Given<Params, 'video'>, Given<Params, 'source_video_url'>, 'several sources'>;

/** Requires a source if the params contain none. */
type WithSource<Params> = [EditSource & keyof Params] extends [never] ? SourceRequired : unknown;

/**
 * Params of `videoEdits.create`. The model determines the supported durations and resolutions. Pass one source:
 * `source_video_upload_id`, `video`, or `source_video_url`.
 */
export interface VideoEditParams<Model extends string = EditModel | OpenString> extends VideoEditFields<Model, never> {}

/** {@link VideoEditParams} as checked by the compiler for one call. For wrappers that are generic in the params. */
export type CheckedVideoEditParams<Model, Params> = Params extends never
  ? Params
  : VideoEditFields<Model, FoundInEdit<Params>> & WithSource<Params>;

/** Params of an edit that is sent to POST /v1/videos. */
export type CheckedEditByIntent<Model, Params> = EditByIntentFields<Model, FoundInEdit<Params>> & WithSource<Params>;
