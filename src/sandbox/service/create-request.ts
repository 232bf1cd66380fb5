// Validates creates. The engine turns the resulting specs into jobs.
import { DEFAULT_VIDEO_MODEL, MODELS, type ModelCapabilities, modelCapabilities, ratiosOf } from '../../catalog.js';
import { EDIT_SOURCE_FIELDS, FRAME_FIELDS, REFERENCE_IMAGE_FIELDS } from '../../rules/fields.js';
import { formatValue } from '../../schemas/format-value.js';
import { DEFAULTS, EDIT_PERSON_MATCH, MAX_PROMPT_CHARS, PERSON_MATCH } from '../world/assumptions.js';
import { failure, type PlannedEnd } from '../world/faults-and-outcomes.js';
import type { PricedJob } from '../world/options.js';
import type { JobMedia } from '../world/state.js';
import {
  contentReferences,
  contentText,
  invalidRequest,
  isPrivateHost,
  type Reference,
  type RequestFields,
  referenceItems,
  referencesIn,
  ServiceError,
} from './request.js';

/** A valid create, before tokens are reserved. */
export interface JobSpec {
  readonly call: PricedJob['call'];
  readonly modelId: string;
  readonly prompt: string;
  readonly media: Omit<JobMedia, 'seed'>;
  /** True if the video has sound. @default false */
  readonly audio?: boolean;
  readonly seed?: number | undefined;
  readonly references: readonly Reference[];
  /** True if the job fails instead of omitting clips. @default false */
  readonly isStrict?: boolean;
  readonly webhookUrl: string | null;
  /** Outcome that the prompt's wording causes. */
  readonly end?: PlannedEnd | undefined;
}

interface ModelAndPrompt {
  readonly alias: string;
  readonly row: ModelCapabilities;
  readonly prompt: string;
}

const IMAGES = ['reference_upload_ids', 'reference_image_urls', 'referenceImageUrls', 'reference_images'];
const CLIP_FIELDS = ['reference_video_upload_ids', 'reference_video_urls', 'referenceVideoUrls', 'reference_videos'];
const AUDIO_FIELDS = ['reference_audio_upload_ids', 'reference_audio_urls', 'referenceAudioUrls', 'reference_audios'];
const VIDEO_RATIO_FIELDS = ['aspect_ratio', 'ratio'];
const VIDEO_FLAGS = ['watermark', 'generate_audio', 'camera_fixed'];
/** Fields with documented values. */
const DOCUMENTED_VALUES: Readonly<Record<string, readonly string[]>> = {
  response_format: ['url'],
  intent: ['video_edit'],
  video_reference_mode: ['strict'],
  edit_mode: ['transform', 'restyle', 'extend'],
};

/** Validates POST /v1/images. Throws the error of the first violated rule. */
export function parseImageCreate(fields: RequestFields): JobSpec {
  checkPlainFields(fields, ['watermark', 'safety_identifier', 'response_format']);
  const model = readModel(fields, 'image', DEFAULTS.imageModel);
  const prompt = readPrompt(fields, 'image');
  const references = [...referencesIn(fields, 'image', IMAGES), ...referenceItems(fields)];
  const spec = imageSpec(fields, { ...model, prompt }, 'ratio');
  return { ...spec, call: 'images', references, end: personMatchEnd(fields, prompt, references) };
}

export function parseCharacterCreate(fields: RequestFields): JobSpec {
  checkPlainFields(fields, []);
  const mode = fields.text('mode') ?? 'prompt';
  if (mode !== 'prompt') throw invalidRequest(`mode must be register or prompt, not ${formatValue(mode)}.`);
  if (!fields.text('name')?.trim()) throw invalidRequest('name must be a non-empty string.');
  const prompt = readPrompt(fields, 'image');
  if (PERSON_MATCH.test(prompt)) {
    const message = 'The prompt asks to match a real person. Describe a fictional character.';
    throw new ServiceError('character_prompt_unsafe', message);
  }
  const references = referencesIn(fields, 'portrait', ['reference_upload_ids']);
  const alias = DEFAULTS.characterModel;
  const spec = imageSpec(fields, { alias, row: MODELS[alias], prompt }, 'aspect_ratio');
  return { ...spec, call: 'characters', references };
}

/** Validates POST /v1/videos. With `intent: video_edit`, it is an edit with the ratio fields of a video. */
export function parseVideoCreate(fields: RequestFields): JobSpec {
  if (fields.raw('intent') === 'video_edit') return parseEdit(fields, VIDEO_RATIO_FIELDS, DEFAULT_VIDEO_MODEL);
  checkPlainFields(fields, [...VIDEO_FLAGS, 'safety_identifier', 'intent', 'video_reference_mode']);
  const model = readModel(fields, 'video', DEFAULT_VIDEO_MODEL);
  const prompt = readPrompt(fields, 'video', contentText(fields));
  const references = [
    ...referencesIn(fields, 'frame', FRAME_FIELDS),
    ...referencesIn(fields, 'image', REFERENCE_IMAGE_FIELDS),
    ...referencesIn(fields, 'clip', CLIP_FIELDS),
    ...referencesIn(fields, 'audio', AUDIO_FIELDS),
    ...contentReferences(fields),
  ];
  checkKinds(references);
  const picture = references.find(({ role }) => role === 'frame' || role === 'image');
  if (fields.raw('camera_fixed') !== undefined && picture !== undefined) {
    throw invalidRequest(`camera_fixed cannot be combined with ${picture.field}.`);
  }
  const end = personMatchEnd(fields, prompt, references);
  const isStrict = fields.raw('video_reference_mode') === 'strict';
  const ratio = { fields: VIDEO_RATIO_FIELDS, supported: ratiosOf(model.row), fallback: DEFAULTS.videoRatio };
  return { ...videoSpec(fields, { ...model, prompt }, ratio), call: 'videos', references, isStrict, end };
}

export function parseEditCreate(fields: RequestFields): JobSpec {
  return parseEdit(fields, ['ratio']);
}

function parseEdit(fields: RequestFields, ratioFields: readonly string[], fallback?: string): JobSpec {
  checkPlainFields(fields, [...VIDEO_FLAGS, 'safety_identifier', 'edit_mode']);
  const alias = fields.raw('model') ?? fallback;
  const row = typeof alias === 'string' ? modelCapabilities(alias) : undefined;
  if (!row?.edits || typeof alias !== 'string') {
    const editModels = Object.keys(MODELS).filter((name) => modelCapabilities(name)?.edits);
    const message = `model must be one of ${editModels.join(', ')} for an edit, not ${formatValue(alias)}.`;
    throw new ServiceError('video_edit_model_not_supported', message);
  }
  const content = contentReferences(fields);
  const source = readEditSource(fields, content);
  const unsupported =
    fields.firstPresent([...FRAME_FIELDS, ...CLIP_FIELDS]) ?? content.find(({ role }) => role === 'frame')?.field;
  if (unsupported !== undefined) {
    const message = `An edit accepts its source, reference images, and audio, not ${unsupported}.`;
    throw new ServiceError('reference_combination_not_supported', message);
  }
  const prompt = readPrompt(fields, 'video', contentText(fields));
  if (EDIT_PERSON_MATCH.test(prompt)) {
    const message = 'The prompt mentions a celebrity, a public figure, a deepfake, or an impersonation.';
    throw new ServiceError('person_match_prompt_unsafe', message);
  }
  const references = [
    source,
    ...referencesIn(fields, 'image', REFERENCE_IMAGE_FIELDS),
    ...referencesIn(fields, 'audio', AUDIO_FIELDS),
    ...content.filter(({ role }) => role === 'audio'),
  ];
  const ratio = { fields: ratioFields, supported: [...ratiosOf(row), 'adaptive'], fallback: 'adaptive' };
  return { ...videoSpec(fields, { alias, row, prompt }, ratio), call: 'videoEdits', references, isStrict: true };
}

/** Returns the source of an edit, which can also be a clip in `content`. */
function readEditSource(fields: RequestFields, content: readonly Reference[]): Reference {
  const clips = content.filter(({ role }) => role === 'clip').map((clip): Reference => ({ ...clip, role: 'source' }));
  const [source, secondSource] = [...referencesIn(fields, 'source', EDIT_SOURCE_FIELDS), ...clips];
  if (source === undefined) {
    throw new ServiceError('video_edit_source_required', 'Send source_video_upload_id, or a public URL as video.');
  }
  if (secondSource === undefined) return source;
  throw invalidRequest(`An edit has one source: send ${source.field} or ${secondSource.field}.`);
}

function imageSpec(
  fields: RequestFields,
  { alias, row, prompt }: ModelAndPrompt,
  ratioField: 'ratio' | 'aspect_ratio',
) {
  return {
    modelId: alias,
    prompt,
    media: {
      kind: 'image',
      aspectRatio: readChoice(fields, 'aspect_ratio', ratiosOf(row), DEFAULTS.imageRatio, [ratioField]),
      resolution: readChoice(fields, 'resolution', row.resolutions, DEFAULTS.imageResolution),
      durationS: 0,
    },
    webhookUrl: readWebhookUrl(fields),
  } as const;
}

function videoSpec(
  fields: RequestFields,
  { alias, row, prompt }: ModelAndPrompt,
  ratio: { readonly fields: readonly string[]; readonly supported: readonly string[]; readonly fallback: string },
) {
  return {
    modelId: alias,
    prompt,
    media: {
      kind: 'video',
      durationS: readChoice(fields, 'duration', row.durations ?? [], DEFAULTS.videoDurationS),
      aspectRatio: readChoice(fields, 'aspect_ratio', ratio.supported, ratio.fallback, ratio.fields),
      resolution: readChoice(fields, 'resolution', row.resolutions, DEFAULTS.videoResolution),
    },
    audio: fields.flag('generate_audio') === true,
    seed: readSeed(fields),
    webhookUrl: readWebhookUrl(fields),
  } as const;
}

/** Returns the model of a create, or the default. Throws `model_not_found` for an unknown alias or another kind. */
function readModel(
  fields: RequestFields,
  kind: ModelCapabilities['kind'],
  fallback: string,
): Omit<ModelAndPrompt, 'prompt'> {
  const alias = fields.raw('model') ?? fallback;
  const row = typeof alias === 'string' ? modelCapabilities(alias) : undefined;
  if (row?.kind === kind && typeof alias === 'string') return { alias, row };
  throw new ServiceError(
    'model_not_found',
    `model ${formatValue(alias)} is not a known ${kind} model. List them with GET /v1/models.`,
  );
}

function readPrompt(fields: RequestFields, kind: ModelCapabilities['kind'], contentPrompt?: string): string {
  const value = fields.raw('prompt') ?? '';
  const prompt = value === '' ? contentPrompt : value;
  if (typeof prompt !== 'string' || prompt.trim() === '') {
    throw new ServiceError('prompt_required', 'prompt must be a non-empty string.');
  }
  const max = MAX_PROMPT_CHARS[kind];
  if (prompt.length <= max) return prompt;
  throw new ServiceError('prompt_too_long', `prompt has ${prompt.length} characters, but at most ${max} are allowed.`);
}

/** Returns one of the values that the model supports, from the first field in `names` that is present. */
function readChoice<T extends string | number>(
  fields: RequestFields,
  choiceName: 'duration' | 'aspect_ratio' | 'resolution',
  supported: readonly T[],
  fallback: T,
  names: readonly string[] = [choiceName],
): T {
  const field = names.find((name) => fields.raw(name) !== undefined);
  if (field === undefined) return supported.includes(fallback) ? fallback : (supported[0] ?? fallback);
  const value = fields.raw(field);
  const choice = supported.find((option) => option === value);
  if (choice !== undefined) return choice;
  throw new ServiceError(
    `${choiceName}_not_supported`,
    `${field} must be one of ${supported.join(', ')}, not ${formatValue(value)}.`,
  );
}

/** Returns the webhook URL: HTTPS, or http for a private host, so that local receivers work. */
function readWebhookUrl(fields: RequestFields): string | null {
  const text = fields.text('webhook_url', 'callback_url');
  if (text === undefined) return null;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'https:' || (url?.protocol === 'http:' && isPrivateHost(url.hostname))) return text;
  const message = `webhook_url must be an HTTPS URL, or an http URL on a private host, not ${formatValue(text)}.`;
  throw invalidRequest(message);
}

/** Validates fields without an effect: a flag, a documented value, or a non-empty string. */
function checkPlainFields(fields: RequestFields, names: readonly string[]): void {
  for (const name of [...names, 'idempotency_key']) {
    if (VIDEO_FLAGS.includes(name)) fields.flag(name);
    else {
      const [value, allowed] = [fields.text(name), DOCUMENTED_VALUES[name]];
      if (value === undefined || (allowed ? allowed.includes(value) : value !== '')) continue;
      const expected = allowed?.join(', ') ?? 'a non-empty string';
      throw invalidRequest(`${name} must be ${expected}, not ${formatValue(value)}.`);
    }
  }
}

function readSeed(fields: RequestFields): number | undefined {
  const seed = fields.raw('seed');
  if (seed === undefined) return undefined;
  if (typeof seed === 'number' && Number.isSafeInteger(seed)) return seed;
  throw invalidRequest(`seed must be an integer, not ${formatValue(seed)}.`);
}

/**
 * Returns the end of a job whose prompt asks to match a real person: `generation_rejected`, with the documented message. Throws
 * if the create has a reference or a character.
 */
function personMatchEnd(
  fields: RequestFields,
  prompt: string,
  references: readonly Reference[],
): PlannedEnd | undefined {
  const characters = fields.list('character_ids');
  if (!PERSON_MATCH.test(prompt)) return undefined;
  if (references.length + characters.length > 0) {
    const message = 'The prompt asks to match a real person. Register a character instead.';
    throw new ServiceError('person_match_prompt_unsafe', message);
  }
  return failure('generation_rejected', { errorMessage: 'Input text contains sensitive information' });
}

/** Throws if frames are combined with other references. */
function checkKinds(references: readonly Reference[]): void {
  const kindOf = ({ role }: Reference) => (role === 'frame' ? role : 'guide');
  const [firstReference] = references;
  const otherReference = references.find(
    (reference) => firstReference !== undefined && kindOf(reference) !== kindOf(firstReference),
  );
  if (firstReference === undefined || otherReference === undefined) return;
  const message = `${otherReference.field} cannot be combined with ${firstReference.field}. Send one kind of reference per request.`;
  throw new ServiceError('reference_combination_not_supported', message);
}
