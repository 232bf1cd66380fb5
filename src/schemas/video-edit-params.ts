import type { DurationOf, EditModel, OpenNumber, OpenString, VideoResolutionOf } from '../catalog.js';
import type { CreateFields, Given, InferFrom, Many, ManyUploads, OneOf, Unless, VideoRatio } from './create-fields.js';
import type { UploadRef } from './upload.js';

/** What an edit does to its clip: the documented modes, and any other that the service takes. */
export type EditMode = 'transform' | 'restyle' | 'extend' | OpenString;

/** The fields that name the edited clip. */
type Source = 'source_video_upload_id' | 'video' | 'source_video_url';

/** The type of source `K`: a call names one source. */
type SourceOf<P, K extends Source, T> = Unless<
  Given<P, Exclude<Source, K>>,
  P,
  K,
  T,
  `Send one source video: remove ${K} or ${Given<P, Exclude<Source, K>>}.`
>;

/** An alias that edits. A `string` that is known only at run time passes and is checked then. */
type EditorIn<M> = string extends M ? M : M extends EditModel ? M : EditModel;

/** The fields of an edit but for its model. */
interface EditFields<M, P> extends CreateFields {
  /** What to change, and what to keep. */
  prompt: string;
  /** What the edit does to the clip. */
  edit_mode?: EditMode | undefined;
  /** The clip to edit: an upload of type VIDEO, by id or as a file. A call sends this, `video` or `source_video_url`. */
  source_video_upload_id?: SourceOf<P, 'source_video_upload_id', UploadRef> | undefined;
  /** The clip to edit, by public HTTPS URL. */
  video?: SourceOf<P, 'video', string> | undefined;
  /** The clip to edit, by public HTTPS URL, as `video`. */
  source_video_url?: SourceOf<P, 'source_video_url', string> | undefined;
  /** Length in seconds, one of the model's durations. */
  duration?: OneOf<P, 'duration', DurationOf<M>, OpenNumber> | undefined;
  /** Resolution, one of the model's. */
  resolution?: OneOf<P, 'resolution', VideoResolutionOf<M>, OpenString> | undefined;
  /** Aspect ratio of the result. @default 'adaptive' */
  ratio?: 'adaptive' | VideoRatio | undefined;
  /** Whether the result has sound. */
  generate_audio?: boolean | undefined;
  /** Reference images, by upload id or as files. */
  reference_image_upload_ids?: ManyUploads;
  /** Reference images, by public HTTPS URL. */
  reference_images?: Many;
  /** Reference audio, by public HTTPS URL. */
  reference_audios?: Many;
}

/** The fields of an edit, typed by the call's own params `P`. */
interface VideoEditFields<M, P> extends EditFields<M, P> {
  /** The model that edits: `svc-video-pro`, `svc-video-fast` or `svc-video-mini`. */
  model: EditorIn<M>;
}

/** The fields of an edit that is sent to POST /v1/videos. */
interface IntendedEditFields<M, P> extends EditFields<M, P> {
  /** Sends the call as an edit of an existing video, with the fields and rules of `videoEdits.create`. */
  intent: 'video_edit';
  /** The model that edits: `svc-video-pro`, `svc-video-fast` or `svc-video-mini`. @default 'svc-video-fast' */
  model?: EditorIn<M> | undefined;
}

/** The missing source of an edit. */
interface SourceRequired {
  /** The clip to edit: an upload of type VIDEO, by id or as a file. `video` or `source_video_url` can stand in for it. */
  source_video_upload_id: UploadRef;
}

/** Requires a source where `P` has no field for one. */
type WithSource<P> = [Source & keyof P] extends [never] ? SourceRequired : unknown;

/**
 * What `videoEdits.create` takes (spec: POST /v1/video-edits). Duration and resolution follow the model `M`. A call sends
 * one source: `source_video_upload_id`, `video` or `source_video_url`.
 */
export interface VideoEditParams<M extends string = EditModel | OpenString> extends VideoEditFields<M, unknown> {}

/** {@link VideoEditParams} with what the rules of the model and the source leave of each field, for the params `P` of one call. */
export type CheckedVideoEditParams<M, P> = InferFrom<P, VideoEditFields<M, P> & WithSource<P>>;

/** The params of an edit that is sent to POST /v1/videos. */
export type CheckedIntendedEdit<M, P> = IntendedEditFields<M, P> & WithSource<P>;
