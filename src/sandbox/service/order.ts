import { DEFAULT_VIDEO_MODEL, MODELS } from '../../catalog.js';
import { EDIT_SOURCE_FIELDS, FRAME_FIELDS, REFERENCE_IMAGE_FIELDS } from '../../rules/fields.js';
import { show } from '../../schemas/show.js';
import { DEFAULTS, EDIT_PERSON_MATCH, MAX_PROMPT_CHARS, PERSON_MATCH, VIDEO_RATIOS } from '../world/choices.js';
import { failure, type PlannedEnd } from '../world/outcomes.js';
import type { PricedJob } from '../world/prices.js';
import type { Shapes } from '../world/shapes.js';
import type { JobMedia, StoredJob } from '../world/store.js';
import {
  contentReferences,
  contentText,
  isPrivateHost,
  listedReferences,
  type Reference,
  referenceItems,
  singleReferences,
} from './references.js';
import { Refusal, RequestFields } from './request.js';

// What the creates have in common: a request that passes the checks becomes an order, and an order becomes a job.

/** A create that passed the checks and has not been paid for. */
export interface Order {
  readonly kind: StoredJob['kind'];
  readonly call: PricedJob['call'];
  readonly modelId: string;
  readonly prompt: string;
  readonly media: Omit<JobMedia, 'seed'>;
  /** Whether sound was asked for. */
  readonly audio: boolean;
  /** The caller's `seed`. */
  readonly seed: number | undefined;
  readonly references: readonly Reference[];
  /** Whether a clip is never left out. */
  readonly isStrict: boolean;
  readonly webhookUrl: string | null;
  /** An end that the wording of the request causes. */
  readonly end?: PlannedEnd | undefined;
  /** The status before `processing`. */
  readonly startsAs: 'created' | 'queued' | 'processing';
}

/** A row of the catalog, with the fields of either kind. */
export interface ModelRow {
  readonly kind: 'image' | 'video';
  readonly durations?: readonly number[];
  readonly aspectRatios?: readonly string[];
  readonly resolutions: readonly string[];
  readonly edits?: boolean;
}

/** The row of an alias; undefined for an unknown one. */
function modelRow(alias: unknown): ModelRow | undefined {
  if (typeof alias !== 'string' || !Object.hasOwn(MODELS, alias)) return undefined;
  return Object.entries<ModelRow>(MODELS).find(([name]) => name === alias)?.[1];
}

/** The model that a create names, or the default. Throws `model_not_found` for an unknown alias or one of another kind. */
function readModel(fields: RequestFields, kind: ModelRow['kind'], fallback: string): { alias: string; row: ModelRow } {
  const alias = fields.raw('model') ?? fallback;
  const row = modelRow(alias);
  if (row === undefined || row.kind !== kind || typeof alias !== 'string') {
    throw new Refusal(
      'model_not_found',
      `model ${show(alias)} is not a known ${kind} model. GET /v1/models lists them.`,
    );
  }
  return { alias, row };
}

/** The prompt. Throws `prompt_required` or `prompt_too_long`. */
function readPrompt(fields: RequestFields, kind: ModelRow['kind'], instead?: string): string {
  const given = fields.raw('prompt') ?? '';
  const prompt = given === '' ? instead : given;
  if (typeof prompt !== 'string' || prompt.trim() === '') {
    throw new Refusal('prompt_required', 'prompt must be a non-empty string.');
  }
  const most = MAX_PROMPT_CHARS[kind];
  if (prompt.length <= most) return prompt;
  throw new Refusal('prompt_too_long', `prompt has ${prompt.length} characters, and at most ${most} are allowed.`);
}

/** A field that chooses among what a model offers. */
export interface Choice<T extends string | number> {
  readonly fields: RequestFields;
  /** The field and its aliases. */
  readonly names: readonly string[];
  readonly offered: readonly T[];
  readonly fallback: T;
  readonly code: 'duration_not_supported' | 'aspect_ratio_not_supported' | 'resolution_not_supported';
}

/** The value chosen, or the fallback. Throws the code of the choice for a value that is not offered. */
function readChoice<T extends string | number>({ fields, names, offered, fallback, code }: Choice<T>): T {
  const field = names.find((name) => fields.raw(name) !== undefined);
  if (field === undefined) return fallback;
  const value = fields.raw(field);
  const chosen = offered.find((one) => one === value);
  if (chosen !== undefined) return chosen;
  throw new Refusal(code, `${field} must be one of ${offered.join(', ')}, not ${show(value)}.`);
}

/** The URL of the webhook: https, or http on a private host so that a receiver beside the sandbox can be reached. */
export function readWebhookUrl(fields: RequestFields): string | null {
  const text = fields.text('webhook_url', 'callback_url');
  if (text === undefined) return null;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'https:' || (url?.protocol === 'http:' && isPrivateHost(url.hostname))) return text;
  const message = `webhook_url must be an HTTPS URL, or an http URL on a private host, not ${show(text)}.`;
  throw new Refusal('invalid_request', message);
}

/** Checks the fields that change nothing here: flags are true or false, texts are not empty. */
function checkPlainFields(fields: RequestFields, flags: readonly string[], texts: readonly string[]): void {
  for (const name of flags) fields.flag(name);
  for (const name of [...texts, 'idempotency_key']) {
    if (fields.text(name) === '') throw new Refusal('invalid_request', `${name} must not be an empty string.`);
  }
}

/** Refuses a field that has another value than the documented ones. */
function requireValue(fields: RequestFields, name: string, allowed: readonly string[]): void {
  const value = fields.text(name);
  if (value === undefined || allowed.includes(value)) return;
  throw new Refusal('invalid_request', `${name} must be ${allowed.join(', ')} or left out, not ${show(value)}.`);
}

/** The caller's seed. Throws `invalid_request` for what is not an integer. */
function readSeed(fields: RequestFields): number | undefined {
  const seed = fields.raw('seed');
  if (seed === undefined) return undefined;
  if (typeof seed === 'number' && Number.isSafeInteger(seed)) return seed;
  throw new Refusal('invalid_request', `seed must be an integer, not ${show(seed)}.`);
}

const REFERENCE_LISTS = ['reference_upload_ids', 'reference_image_urls', 'referenceImageUrls', 'reference_images'];

/** Checks POST /v1/images. Throws the code of the first rule that is broken. */
export function readImageOrder(fields: RequestFields): Order {
  checkPlainFields(fields, ['watermark'], ['safety_identifier', 'response_format']);
  requireValue(fields, 'response_format', ['url']);
  const { alias, row } = readModel(fields, 'image', DEFAULTS.imageModel);
  const prompt = readPrompt(fields, 'image');
  const references = [...listedReferences(fields, 'image', REFERENCE_LISTS), ...referenceItems(fields)];
  const hasReferences = references.length > 0 || fields.list('character_ids').length > 0;
  const order = imageOrder(fields, { alias, row, prompt }, 'ratio');
  return { ...order, call: 'images', references, startsAs: 'queued', end: personMatchEnd(prompt, hasReferences) };
}

/** Checks POST /v1/characters in prompt mode. */
export function readCharacterOrder(fields: RequestFields): Order {
  checkPlainFields(fields, [], []);
  const mode = fields.text('mode') ?? 'prompt';
  if (mode !== 'prompt') throw new Refusal('invalid_request', `mode must be register or prompt, not ${show(mode)}.`);
  if (!fields.text('name')?.trim()) throw new Refusal('invalid_request', 'name must be a non-empty string.');
  const { alias, row } = readModel(new RequestFields({}), 'image', DEFAULTS.characterModel);
  const prompt = readPrompt(fields, 'image');
  if (PERSON_MATCH.test(prompt)) {
    const message = 'The prompt asks to match a real person. Describe a fictional character.';
    throw new Refusal('character_prompt_unsafe', message);
  }
  const references = listedReferences(fields, 'portrait', ['reference_upload_ids']);
  return {
    ...imageOrder(fields, { alias, row, prompt }, 'aspect_ratio'),
    call: 'characters',
    references,
    startsAs: 'created',
  };
}

/**
 * Wording that asks to match a real person is refused beside a reference or a
 * character. Without one the job ends as `generation_rejected` with the documented message.
 */
function personMatchEnd(prompt: string, hasReferences: boolean): PlannedEnd | undefined {
  if (!PERSON_MATCH.test(prompt)) return undefined;
  if (hasReferences) {
    const message = 'The prompt asks to match a real person. Register an owned character instead.';
    throw new Refusal('person_match_prompt_unsafe', message);
  }
  return failure('generation_rejected', { errorMessage: 'Input text contains sensitive information' });
}

function imageOrder(
  fields: RequestFields,
  { alias, row, prompt }: ReturnType<typeof readModel> & { prompt: string },
  ratioField: 'ratio' | 'aspect_ratio',
): Omit<Order, 'call' | 'references' | 'startsAs'> {
  const aspectRatio = readChoice({
    fields,
    names: [ratioField],
    offered: row.aspectRatios ?? [],
    fallback: DEFAULTS.imageRatio,
    code: 'aspect_ratio_not_supported',
  });
  const resolution = readChoice({
    fields,
    names: ['resolution'],
    offered: row.resolutions,
    fallback: DEFAULTS.imageResolution,
    code: 'resolution_not_supported',
  });
  return {
    kind: 'image',
    modelId: alias,
    prompt,
    media: { kind: 'image', aspectRatio, resolution, durationS: 0 },
    audio: false,
    seed: undefined,
    isStrict: false,
    webhookUrl: readWebhookUrl(fields),
  };
}

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
