import { MODELS, modelCapabilities } from '../catalog.js';
import { adviseHttps, isGiven, paramsOf, refuse, requireOffered, requirePrompt, show } from './rules.js';

const SOURCES = ['source_video_upload_id', 'video', 'source_video_url'];

/** The documented rules of an edit: POST /v1/video-edits, and POST /v1/videos with `intent`, where `fallback` is the model. */
export function checkVideoEdit(body: unknown, warn: (message: string) => void, fallback?: string): void {
  const params = paramsOf(body);
  const model = params.model ?? fallback;
  if (!modelCapabilities(`${model}`)?.edits) {
    const editors = Object.keys(MODELS).filter((alias) => modelCapabilities(alias)?.edits);
    refuse('video_edit_model_not_supported', 'model', `${show(model)} takes no edits; use ${editors.join(', ')}.`);
  }
  if (!SOURCES.some((source) => isGiven(params[source]))) {
    refuse(
      'video_edit_source_required',
      'source_video_upload_id',
      `missing; give it or one of ${SOURCES.slice(1).join(', ')}.`,
    );
  }
  requirePrompt(params);
  requireOffered(params, 'video', fallback);
  adviseHttps(params, warn);
}
