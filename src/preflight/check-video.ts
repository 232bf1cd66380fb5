import { DEFAULT_VIDEO_MODEL } from '../catalog.js';
import { type Fields, isFields } from '../schemas/envelope.js';
import { checkVideoEdit } from './check-video-edit.js';
import {
  adviseHttps,
  type CheckOptions,
  contentOf,
  isGiven,
  paramsOf,
  refuse,
  requireOffered,
  requirePromptOrContent,
} from './rules.js';

const FRAMES = ['first_frame_url', 'first_frame_upload_id', 'last_frame_url', 'last_frame_upload_id'];
const IMAGES = ['reference_image_urls', 'referenceImageUrls', 'reference_images', 'reference_image_upload_ids'];

/** The documented rules of POST /v1/videos. */
export function checkVideo(body: unknown, warn: (message: string) => void, options?: CheckOptions): void {
  const rules = { ...options, fallback: DEFAULT_VIDEO_MODEL };
  const isEdit = isFields(body) && body.intent === 'video_edit';
  const params = paramsOf(body, isEdit ? 'ratio' : undefined);
  if (isEdit) checkVideoEdit(params, warn, rules);
  else checkNewVideo(params, warn, rules);
}

function checkNewVideo(params: Fields, warn: (message: string) => void, rules: CheckOptions): void {
  requirePromptOrContent(params);
  requireOffered(params, 'video', rules);
  const given = (names: readonly string[]) => names.find((name) => isGiven(params[name]));
  const frame =
    given(FRAMES) ?? (contentOf(params).some((item) => item.role === 'first_frame') ? 'content' : undefined);
  const image = given(IMAGES);
  if (frame !== undefined && image !== undefined) {
    refuse('reference_combination_not_supported', image, `cannot go beside ${frame}; send frames or reference images.`);
  }
  if (isGiven(params.camera_fixed) && (frame ?? image) !== undefined) {
    warn(`camera_fixed: leave it out beside ${frame ?? image}.`);
  }
  adviseHttps(params, warn);
}
