import type { EditModel, OpenString } from '../catalog.js';
import type { Many, ModelFields } from './create-fields.js';

/** Where the edited clip comes from: exactly one of the three (spec: POST /v1/video-edits). */
export type EditSource =
  | {
      /** A clip uploaded as VIDEO. */
      source_video_upload_id: string;
      video?: undefined;
      source_video_url?: undefined;
    }
  | {
      /** Public HTTPS URL. */
      video: string;
      source_video_upload_id?: undefined;
      source_video_url?: undefined;
    }
  | {
      /** Public HTTPS URL, as `video`. */
      source_video_url: string;
      source_video_upload_id?: undefined;
      video?: undefined;
    };

/** The three models that edit; a `string` that is only known at run time passes and is checked then. */
export type EditModelOf<M> = string extends M ? M : M extends EditModel ? M : never;

/** The fields of an edit beside its model and source. */
export interface EditFields<M> extends ModelFields<M> {
  /** What to change, what to keep. */
  prompt: string;
  /** What is done to the clip. */
  edit_mode?: 'transform' | 'restyle' | 'extend' | OpenString | undefined;
  /** Aspect ratio of the result. @default adaptive */
  ratio?: 'adaptive' | '16:9' | '9:16' | '1:1' | '4:3' | '3:4' | '21:9' | OpenString | undefined;
  /** Whether the result has sound. */
  generate_audio?: boolean | undefined;
  /** Owned reference images; by upload id. */
  reference_image_upload_ids?: Many;
  /** Reference images by HTTPS URL. */
  reference_images?: Many;
  /** Reference audio by HTTPS URL. */
  reference_audios?: Many;
}

/** What a source-video edit takes (spec: POST /v1/video-edits): a model of the three, a source and a prompt. */
export type VideoEditParams<M extends string = EditModel> = EditFields<M> &
  EditSource & {
    /** A model that edits (`svc-video-pro`, `svc-video-fast` or `svc-video-mini`). */
    model: EditModelOf<M>;
  };
