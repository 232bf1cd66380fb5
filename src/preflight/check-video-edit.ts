import { modelCapabilities } from '../catalog.js';
import {
  adviseHttps,
  aliases,
  type CheckOptions,
  contentOf,
  isGiven,
  paramsOf,
  refuse,
  requireOffered,
  requirePromptOrContent,
  show,
} from './rules.js';

const SOURCES = ['source_video_upload_id', 'video', 'source_video_url'];

/** The documented rules of an edit: POST /v1/video-edits, and POST /v1/videos with `intent`, where `options.fallback` is the model. */
export function checkVideoEdit(body: unknown, warn: (message: string) => void, options: CheckOptions = {}): void {
  const params = paramsOf(body, 'ratio');
  const model = params.model ?? options.fallback;
  if (!modelCapabilities(`${model}`)?.edits) {
    const problem = `${show(model)} takes no edits; use ${aliases(({ edits }) => edits === true)}.`;
    refuse('video_edit_model_not_supported', 'model', problem);
  }
  // A clip in `content` may be meant as the source: the service knows, the document does not say.
  const hasSource = SOURCES.some((name) => isGiven(params[name])) || contentOf(params).some((item) => item.video_url);
  if (!hasSource) {
    refuse('video_edit_source_required', 'source_video_upload_id', `missing; give one of ${SOURCES.join(', ')}.`);
  }
  requirePromptOrContent(params);
  requireOffered(params, 'video', options);
  adviseHttps(params, warn);
}
