import { DEFAULT_VIDEO_MODEL, MODELS } from '../../catalog.js';
import { DEFAULTS, EDIT_PERSON_MATCH, VIDEO_RATIOS, VIDEO_TOKENS_PER_SECOND } from '../world/choices.js';
import { type Fields, show } from './fields.js';
import { personMatchEnd } from './image-order.js';
import {
  checkPlainFields,
  type ModelRow,
  modelRow,
  type Order,
  readChoice,
  readModel,
  readPrompt,
  readSeed,
  readWebhookUrl,
} from './order.js';
import { contentReferences, contentText, listedReferences, type Reference, singleReferences } from './references.js';
import { Refusal } from './refusal.js';

const FRAMES = ['first_frame_url', 'first_frame_upload_id', 'last_frame_url', 'last_frame_upload_id'];
const IMAGES = ['reference_image_upload_ids', 'reference_image_urls', 'referenceImageUrls', 'reference_images'];
const CLIPS = ['reference_video_upload_ids', 'reference_video_urls', 'referenceVideoUrls', 'reference_videos'];
const AUDIOS = ['reference_audio_upload_ids', 'reference_audio_urls', 'referenceAudioUrls', 'reference_audios'];
const SOURCES = ['source_video_upload_id', 'video', 'source_video_url'];
const EDIT_MODES = ['transform', 'restyle', 'extend'];

/** Checks POST /v1/videos, which with `intent: video_edit` is an edit; throws the code of the first rule that is broken. */
export function readVideoOrder(fields: Fields): Order {
  if (fields.raw('intent') === 'video_edit') return readEditOrder(fields, DEFAULT_VIDEO_MODEL);
  checkPlainFields(fields);
  const { alias, row } = readModel(fields, 'video', DEFAULT_VIDEO_MODEL);
  const prompt = readPrompt(fields, 'video', contentText(fields));
  const references = [
    ...singleReferences(fields, 'frame', FRAMES),
    ...listedReferences(fields, 'image', IMAGES),
    ...listedReferences(fields, 'clip', CLIPS),
    ...listedReferences(fields, 'audio', AUDIOS),
    ...contentReferences(fields),
  ];
  checkCombination(references);
  const mode = fields.text('video_reference_mode');
  if (mode !== undefined && mode !== 'strict') {
    throw new Refusal(
      'invalid_request',
      `video_reference_mode: ${show(mode)} is not strict; leave it out for the fallback.`,
    );
  }
  const hasReferences = references.length > 0 || fields.list('character_ids').length > 0;
  const end = personMatchEnd(prompt, hasReferences);
  return { ...videoOrder(fields, { alias, row, prompt }), references, isStrict: mode === 'strict', end };
}

/** Checks POST /v1/video-edits (spec: its rules 1 to 8). */
export function readEditOrder(fields: Fields, fallback?: string): Order {
  checkPlainFields(fields);
  const alias = fields.raw('model') ?? fallback;
  const row = modelRow(alias);
  if (!row?.edits || typeof alias !== 'string') {
    const editors = Object.entries<ModelRow>(MODELS).flatMap(([name, { edits }]) => (edits ? name : []));
    throw new Refusal('video_edit_model_not_supported', `model: ${show(alias)} is none of ${editors.join(', ')}.`);
  }
  const sources = singleReferences(fields, 'source', SOURCES);
  const clips = contentReferences(fields).map(
    (one): Reference => (one.role === 'clip' ? { ...one, role: 'source' } : one),
  );
  const source = [...sources, ...clips.filter(({ role }) => role === 'source')][0];
  if (source === undefined) {
    throw new Refusal('video_edit_source_required', 'Send source_video_upload_id, or a public URL as video.');
  }
  const prompt = readPrompt(fields, 'video', contentText(fields));
  if (EDIT_PERSON_MATCH.test(prompt)) {
    throw new Refusal(
      'person_match_prompt_unsafe',
      'prompt: celebrity, public-figure, deepfake or impersonation wording.',
    );
  }
  const mode = fields.text('edit_mode');
  if (mode !== undefined && !EDIT_MODES.includes(mode)) {
    throw new Refusal('invalid_request', `edit_mode: ${show(mode)} is none of ${EDIT_MODES.join(', ')}.`);
  }
  const references = [
    source,
    ...listedReferences(fields, 'image', IMAGES),
    ...listedReferences(fields, 'audio', AUDIOS),
    ...clips.filter(({ role }) => role === 'image' || role === 'audio'),
  ];
  return { ...videoOrder(fields, { alias, row, prompt }, true), references, isStrict: true };
}

function checkCombination(references: readonly Reference[]): void {
  const frame = references.find(({ role }) => role === 'frame');
  const image = references.find(({ role }) => role === 'image');
  if (frame === undefined || image === undefined) return;
  const message = `${image.field} cannot go beside ${frame.field}; send start and end frames or reference images.`;
  throw new Refusal('reference_combination_not_supported', message);
}

function videoOrder(
  fields: Fields,
  { alias, row, prompt }: ReturnType<typeof readModel> & { prompt: string },
  isEdit = false,
): Omit<Order, 'references' | 'isStrict'> {
  const durationS = readChoice({
    fields,
    names: ['duration'],
    offered: row.durations ?? [],
    fallback: DEFAULTS.videoDurationS,
    code: 'duration_not_supported',
  });
  const aspectRatio = readChoice({
    fields,
    names: ['aspect_ratio', 'ratio'],
    offered: [...VIDEO_RATIOS, 'adaptive'],
    fallback: isEdit ? 'adaptive' : DEFAULTS.videoRatio,
    code: 'aspect_ratio_not_supported',
  });
  const resolution = readChoice({
    fields,
    names: ['resolution'],
    offered: row.resolutions,
    fallback: DEFAULTS.videoResolution,
    code: 'resolution_not_supported',
  });
  return {
    kind: isEdit ? 'edit' : 'video',
    modelId: alias,
    prompt,
    media: { kind: 'video', aspectRatio, resolution, durationS },
    seed: readSeed(fields),
    cost: durationS * (VIDEO_TOKENS_PER_SECOND[alias]?.[resolution] ?? 1),
    webhookUrl: readWebhookUrl(fields),
    startsAs: 'processing',
  };
}
