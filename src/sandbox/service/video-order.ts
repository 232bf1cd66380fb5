import { DEFAULT_VIDEO_MODEL, MODELS } from '../../catalog.js';
import { EDIT_SOURCE_FIELDS, FRAME_FIELDS, REFERENCE_IMAGE_FIELDS } from '../../rules/references.js';
import { show } from '../../schemas/show.js';
import { DEFAULTS, EDIT_PERSON_MATCH, VIDEO_RATIOS } from '../world/choices.js';
import type { Shapes } from '../world/shapes.js';
import type { RequestFields } from './fields.js';
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
  requireValue,
} from './order.js';
import { contentReferences, contentText, listedReferences, type Reference, singleReferences } from './references.js';
import { Refusal } from './refusal.js';

const CLIPS = ['reference_video_upload_ids', 'reference_video_urls', 'referenceVideoUrls', 'reference_videos'];
const AUDIOS = ['reference_audio_upload_ids', 'reference_audio_urls', 'referenceAudioUrls', 'reference_audios'];
const FLAGS = ['watermark', 'generate_audio', 'camera_fixed'];

/** Checks POST /v1/videos, where `intent: video_edit` makes an edit. Throws the code of the first rule that is broken. */
export function readVideoOrder(fields: RequestFields, shapes: Shapes): Order {
  if (fields.raw('intent') === 'video_edit') return readEditOrder(fields, DEFAULT_VIDEO_MODEL);
  checkPlainFields(fields, FLAGS, ['safety_identifier']);
  requireValue(fields, 'intent', ['video_edit']);
  requireValue(fields, 'video_reference_mode', ['strict']);
  const { alias, row } = readModel(fields, 'video', DEFAULT_VIDEO_MODEL);
  const prompt = readPrompt(fields, 'video', contentText(fields));
  const references = [
    ...singleReferences(fields, 'frame', FRAME_FIELDS),
    ...listedReferences(fields, 'image', REFERENCE_IMAGE_FIELDS),
    ...listedReferences(fields, 'clip', CLIPS),
    ...listedReferences(fields, 'audio', AUDIOS),
    ...contentReferences(fields),
  ];
  checkKinds(references, shapes);
  const picture = references.find(({ role }) => role === 'frame' || role === 'image');
  if (fields.raw('camera_fixed') !== undefined && picture !== undefined) {
    throw new Refusal('invalid_request', `camera_fixed must be left out beside ${picture.field}.`);
  }
  const hasReferences = references.length > 0 || fields.list('character_ids').length > 0;
  const end = personMatchEnd(prompt, hasReferences);
  return {
    ...videoOrder(fields, { alias, row, prompt }),
    references,
    isStrict: fields.raw('video_reference_mode') === 'strict',
    end,
  };
}

/** Checks POST /v1/video-edits. */
export function readEditOrder(fields: RequestFields, fallback?: string): Order {
  checkPlainFields(fields, FLAGS, ['safety_identifier']);
  requireValue(fields, 'edit_mode', ['transform', 'restyle', 'extend']);
  const alias = fields.raw('model') ?? fallback;
  const row = modelRow(alias);
  if (!row?.edits || typeof alias !== 'string') {
    const editors = Object.entries<ModelRow>(MODELS).flatMap(([name, { edits }]) => (edits ? name : []));
    const message = `model must be one of ${editors.join(', ')} for an edit, not ${show(alias)}.`;
    throw new Refusal('video_edit_model_not_supported', message);
  }
  const content = contentReferences(fields).map(
    (one): Reference => (one.role === 'clip' ? { ...one, role: 'source' } : one),
  );
  const sources = [...singleReferences(fields, 'source', EDIT_SOURCE_FIELDS), ...content].filter(
    ({ role }) => role === 'source',
  );
  const [source, second] = sources;
  if (source === undefined) {
    throw new Refusal('video_edit_source_required', 'Send source_video_upload_id, or a public URL as video.');
  }
  if (second !== undefined) {
    throw new Refusal('invalid_request', `An edit has one source: send ${source.field} or ${second.field}.`);
  }
  const foreign = fields.given([...FRAME_FIELDS, ...CLIPS]) ?? content.find(({ role }) => role === 'frame')?.field;
  if (foreign !== undefined) {
    const message = `An edit takes reference images and audio beside its source, not ${foreign}.`;
    throw new Refusal('reference_combination_not_supported', message);
  }
  const prompt = readPrompt(fields, 'video', contentText(fields));
  if (EDIT_PERSON_MATCH.test(prompt)) {
    const message = 'The prompt names a celebrity, a public figure, a deepfake or an impersonation.';
    throw new Refusal('person_match_prompt_unsafe', message);
  }
  const references = [
    source,
    ...listedReferences(fields, 'image', REFERENCE_IMAGE_FIELDS),
    ...listedReferences(fields, 'audio', AUDIOS),
    ...content.filter(({ role }) => role === 'audio'),
  ];
  return { ...videoOrder(fields, { alias, row, prompt }, true), references, isStrict: true };
}

/** One kind of reference per request, as the shapes count kinds. */
function checkKinds(references: readonly Reference[], { referenceKinds }: Shapes): void {
  const kindOf = ({ role }: Reference) => (referenceKinds === 'single' || role === 'frame' ? role : 'guide');
  const [first] = references;
  const other = references.find((reference) => first !== undefined && kindOf(reference) !== kindOf(first));
  if (first === undefined || other === undefined) return;
  const message = `${other.field} cannot go beside ${first.field}. Send one kind of reference per request.`;
  throw new Refusal('reference_combination_not_supported', message);
}

function videoOrder(
  fields: RequestFields,
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
    offered: isEdit ? [...VIDEO_RATIOS, 'adaptive'] : VIDEO_RATIOS,
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
    call: isEdit ? 'videoEdits' : 'videos',
    modelId: alias,
    prompt,
    media: { kind: 'video', aspectRatio, resolution, durationS },
    audio: fields.flag('generate_audio') === true,
    seed: readSeed(fields),
    webhookUrl: readWebhookUrl(fields),
    startsAs: 'processing',
  };
}
