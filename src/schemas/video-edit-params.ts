import type { DurationOf, EditModel, OpenNumber, OpenString, VideoModel, VideoResolutionOf } from '../catalog.js';
import type { Both, CreateFields, Given, Limited, OpenIn, Unless, VideoRatio } from './create-fields.js';
import type { UploadRef } from './upload.js';

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
  ratio?: 'adaptive' | VideoRatio | undefined;
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
  | OpenIn<P, 'resolution', OpenString>
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
