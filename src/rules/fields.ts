// Validates the field names of creates, and the fields that refer to files: upload IDs, public URLs, and characters.
import { PreflightError } from '../errors/index.js';
import { type Fields, isFields, isObject } from '../schemas/envelope.js';
import { formatValue } from '../schemas/format-value.js';
import { mediaTypeOfName } from '../schemas/media-type.js';
import { didYouMean, nearest } from '../schemas/spelling.js';

export type FieldsCall = 'images' | 'videos' | 'videoEdits' | 'characters' | 'registration';

const COMMON_FIELDS = ['webhook_url', 'callback_url', 'idempotency_key'] as const;

export const FRAME_FIELDS = [
  'first_frame_url',
  'first_frame_upload_id',
  'last_frame_url',
  'last_frame_upload_id',
] as const;
export const REFERENCE_IMAGE_FIELDS = [
  'reference_image_upload_ids',
  'reference_image_urls',
  'referenceImageUrls',
  'reference_images',
] as const;
export const EDIT_SOURCE_FIELDS = ['source_video_upload_id', 'video', 'source_video_url'] as const;

/** Documented fields by call. Edits accept `content`, because an edit that is sent to POST /v1/videos does. */
// biome-ignore format: one field per line would take a page
export const DOCUMENTED_FIELDS = {
  images: [
    'model', 'prompt', 'ratio', 'resolution', 'response_format', 'watermark', 'safety_identifier', 'references',
    'reference_upload_ids', 'character_ids', 'reference_image_urls', 'referenceImageUrls', 'reference_images',
    ...COMMON_FIELDS,
  ],
  videos: [
    'model', 'prompt', 'content', 'duration', 'resolution', 'aspect_ratio', 'ratio', 'generate_audio', 'seed',
    'camera_fixed', 'watermark', 'safety_identifier', 'character_ids', 'video_reference_mode', 'intent',
    'reference_video_urls', 'reference_video_upload_ids', 'referenceVideoUrls', 'reference_videos',
    'reference_audio_urls', 'reference_audio_upload_ids', 'referenceAudioUrls', 'reference_audios',
    ...FRAME_FIELDS, ...REFERENCE_IMAGE_FIELDS, ...COMMON_FIELDS,
  ],
  videoEdits: [
    'model', 'prompt', 'content', 'edit_mode', 'duration', 'ratio', 'resolution', 'generate_audio',
    'reference_image_upload_ids', 'reference_images', 'reference_audios', ...EDIT_SOURCE_FIELDS, ...COMMON_FIELDS,
  ],
  characters: ['mode', 'name', 'prompt', 'reference_upload_ids', 'aspect_ratio', 'resolution', ...COMMON_FIELDS],
  registration: ['mode', 'name', 'upload_id', 'idempotency_key'],
} as const satisfies Readonly<Record<FieldsCall, readonly string[]>>;

const nameOf = (call: FieldsCall) => (call === 'registration' ? 'characters.register' : `${call}.create`);

/**
 * Names that other calls and other services (fal, replicate, runway, luma, openai) use for a field, with the intended
 * fields or some advice. The first intended field that the call has is suggested.
 */
// biome-ignore format: one row per meaning
const INTENDED_FIELDS: readonly (readonly [intended: readonly string[], ...names: string[]])[] = [
  [['prompt'], 'text', 'prompt_text'],
  [['Pass its fields directly, without input.'], 'input'],
  [['model'], 'model_id', 'model_name', 'version'],
  [['resolution'], 'quality'],
  [['aspect_ratio', 'ratio'], 'aspect_ratio', 'ratio', 'aspect', 'size', 'image_size', 'width', 'height'],
  [['duration'], 'seconds', 'duration_seconds', 'length'],
  [['generate_audio'], 'audio', 'with_audio', 'enable_audio'],
  [['safety_identifier'], 'user', 'user_id'],
  [['webhook_url'], 'webhook', 'callback', 'notify_url'],
  [['Create one job for each output.'], 'n', 'num_images', 'num_outputs', 'number_of_images', 'number_of_videos'],
  [['first_frame_upload_id', 'reference_upload_ids', 'reference_image_upload_ids', 'upload_id'],
    'image', 'images', 'prompt_image', 'input_image', 'input_reference', 'start_image', 'first_frame',
    'first_frame_image', 'keyframes'],
  [['last_frame_upload_id'], 'end_image', 'last_frame', 'last_frame_image', 'tail_image'],
  [['first_frame_url', 'reference_image_urls', 'reference_images'], 'image_url', 'start_image_url'],
  [['last_frame_url'], 'end_image_url', 'tail_image_url'],
  [['source_video_url', 'reference_video_urls'], 'video', 'video_url'],
  [['reference_video_upload_ids'], 'source_video_upload_id'],
  [['reference_upload_ids'], 'reference_image_upload_ids', 'first_frame_upload_id'],
  [['reference_image_upload_ids'], 'reference_upload_ids'],
  [['reference_images'], 'reference_image_urls'],
  [['reference_image_urls'], 'first_frame_url'],
];

/** Names of options. If passed as params, the service could ignore them but charge for the job. */
// biome-ignore format: one option per line would take a page
const OPTION_NAMES: readonly string[] = [
  'signal', 'timeoutMs', 'maxRetries', 'idempotencyKey', 'headers', 'preflight', 'budget', 'label', 'extraBody',
  'onUpdate', 'onCreated', 'onUploadProgress', 'pollIntervalMs', 'throwOnFailure', 'cleanup', 'recover',
  'resubmitPending',
];

/** Returns the name among `names` that differs only in case, spaces, `-`, or `_`. */
function sameName(name: string, names: readonly string[]): string | undefined {
  const lettersOf = (text: string) => text.toLowerCase().replace(/[\s_-]/g, '');
  return names.find((other) => lettersOf(other) === lettersOf(name));
}

/**
 * Throws for an undocumented field, because the service could ignore it but charge for the job. Suggests the intended
 * field if possible. `extra` is the option `extraBody`, which may contain undocumented fields.
 */
export function checkFieldNames(call: FieldsCall, params: Fields, extra: Fields = {}): void {
  const isEdit = call === 'videos' && params.intent === 'video_edit';
  const documentedFields: readonly string[] = [
    ...DOCUMENTED_FIELDS[call],
    ...(isEdit ? DOCUMENTED_FIELDS.videoEdits : []),
  ];
  const duplicate = documentedFields.find((name) => name in extra);
  if (duplicate !== undefined)
    throwInvalid(duplicate, 'is a documented field. Pass it with the params, not in extraBody');
  for (const [name, value] of Object.entries(params)) {
    if (value === undefined || documentedFields.includes(name)) continue;
    throw new PreflightError(
      `${nameOf(call)}: ${problemOfName(name, isEdit ? 'videoEdits' : call, documentedFields)}`,
      {
        code: INVALID_PARAMS,
        param: name,
      },
    );
  }
}

/** Throws for a function, a signal, or a client in the params: an option in the wrong place, which JSON would drop. */
export function checkForOptions(params: Fields): void {
  for (const [name, value] of Object.entries(params)) {
    const isCallback = typeof value === 'function' && !isUploadField(name);
    if (isCallback || value instanceof AbortSignal || (isFields(value) && typeof value.withOptions === 'function')) {
      if (OPTION_NAMES.includes(name)) {
        throw new PreflightError(optionMessage(name), { code: INVALID_PARAMS, param: name });
      }
      throwInvalid(name, 'cannot be sent. Pass options as the second argument');
    }
  }
}

const optionMessage = (name: string) => `"${name}" is an option: pass it as the second argument.`;

function problemOfName(name: string, call: FieldsCall, documented: readonly string[]): string {
  if (OPTION_NAMES.includes(name)) return optionMessage(name);
  const [intended = []] = INTENDED_FIELDS.find(([, ...names]) => sameName(name, names) !== undefined) ?? [];
  const advice = intended.find((text) => text.includes(' '));
  const field = sameName(name, documented) ?? intended.find((text) => documented.includes(text));
  const calls = Object.keys(DOCUMENTED_FIELDS) as FieldsCall[];
  const owner = calls.find((other) => sameName(name, DOCUMENTED_FIELDS[other]) !== undefined);
  const otherwise =
    advice ??
    (owner === undefined
      ? `It is not documented for ${nameOf(call)}. Remove it, or pass it in extraBody.`
      : `It is a parameter of ${nameOf(owner)}. Remove it.`);
  // A name from another call or service is not a typo, so don't suggest a similar one.
  const meant = field ?? ((owner ?? advice) ? undefined : nearest(name, documented));
  return `Unknown parameter "${name}". ${didYouMean(name, [], { meant, otherwise })}`;
}

/** Code of an error for which the service documents none. */
export const INVALID_PARAMS = 'invalid_params';

function throwInvalid(param: string, problem: string, path = param): never {
  throw new PreflightError(`${path}: ${problem}.`, { code: INVALID_PARAMS, param });
}

const UPLOAD_FIELD = /(^|_)upload_ids?$/;
/** Fields for public URLs. Items of `reference_images` and similar fields may also be objects that contain one. */
const URL_FIELD = /_urls?$|Urls$|^(url|video|reference_(images|videos|audios))$/;
/** Lists of objects, and the fields of those objects. */
const ITEM_LISTS: readonly string[] = ['references', 'content'];
const ITEM_FIELDS: readonly string[] = ['type', 'text', 'role', 'url', 'image_url', 'video_url', 'audio_url'];
/** A path or a URL instead of an upload ID. */
const PATH_OR_URL = /^(https?|data|file|blob):|^\.{0,2}[\\/]|^[a-z]:\\/i;

export function isUploadField(field: string): boolean {
  return UPLOAD_FIELD.test(field);
}

/** Returns the URLs in a field, including those in its items. */
export function urlsIn(field: string, value: unknown): readonly unknown[] {
  const items = [value].flat();
  if (URL_FIELD.test(field)) return items.map((item) => (isFields(item) ? item.url : item));
  if (!ITEM_LISTS.includes(field)) return [];
  return items.filter(isFields).flatMap((item) => Object.entries(item).flatMap(([name, part]) => urlsIn(name, part)));
}

/** Returns why a value is invalid for a field, or undefined if it's valid. */
type ProblemOf = (value: unknown, field: string) => string | undefined;

/** Throws for a value, or an item of a list, that can't be an ID, a file, or a URL. Ignores undefined and null. */
export function checkReferences(params: Fields): void {
  for (const [field, value] of Object.entries(params)) {
    // An edit without a source has its own error code.
    const isNoSource = value === '' && EDIT_SOURCE_FIELDS.some((name) => name === field);
    if (value === undefined || value === null || isNoSource) continue;
    if (ITEM_LISTS.includes(field)) checkItems(field, value);
    else if (UPLOAD_FIELD.test(field)) checkField(field, value, problemOfUpload);
    else if (URL_FIELD.test(field)) checkField(field, value, problemOfUrl);
    else if (field === 'character_ids') checkField(field, value, problemOfText);
  }
}

function checkField(field: string, value: unknown, problemOf: ProblemOf): void {
  const isList = field.endsWith('s');
  if (isList !== Array.isArray(value)) {
    throwInvalid(field, isList ? 'must be a list. Put the value in [ ]' : 'must be one value, not a list');
  }
  for (const [index, item] of [value].flat().entries()) {
    const problem = problemOf(item, field);
    if (problem !== undefined) throwInvalid(field, problem, isList ? `${field}[${index}]` : field);
  }
}

function checkItems(list: string, value: unknown): void {
  for (const [index, item] of [value].flat().entries()) {
    const path = `${list}[${index}]`;
    if (isOpaque(item)) throwInvalid(list, `must be an object with fields, not ${formatValue(item)}`, path);
    for (const [field, part] of Object.entries(isFields(item) ? item : {})) {
      const url = isFields(part) && !isOpaque(part) ? part.url : part;
      if (url === undefined || url === null) continue;
      if (!ITEM_FIELDS.includes(field)) {
        const meant = sameName(field, ITEM_FIELDS);
        const problem = meant ? `must be written ${meant}` : 'is not a documented field of an item';
        throwInvalid(field, problem, `${path}.${field}`);
      }
      if (!URL_FIELD.test(field)) continue;
      const problem = problemOfUrl(url, list === 'references' ? list : field);
      if (problem !== undefined) throwInvalid(field, problem, `${path}.${field}`);
    }
  }
}

const problemOfUpload: ProblemOf = (value, field) => {
  if (typeof value === 'string') {
    if (value.trim() === '') return 'is empty. Pass an upload ID or a file, or leave the field out';
    if (/^https?:/i.test(value)) return `accepts an upload ID or a file, not a URL. Pass it as ${urlFieldFor(field)}`;
    if (/^data:/i.test(value)) return 'accepts an upload ID or a file, not a data URI. Pass a Buffer or a Blob';
    const isFileName = PATH_OR_URL.test(value) || mediaTypeOfName(value) !== undefined;
    return isFileName ? 'accepts an upload ID or a file, not a file name. Pass fromPath(path) or a Blob' : undefined;
  }
  if (isPromise(value)) return 'is a promise. Await the upload, and pass its upload_id';
  if (isFields(value) && typeof value.upload_id === 'string') return 'is an upload. Pass its upload_id';
  return isObject(value) ? undefined : `must be an upload ID or a file, not ${formatValue(value)}`;
};

const problemOfUrl: ProblemOf = (value, field) => {
  if (value instanceof URL) return undefined;
  if (isPromise(value)) return 'is a promise. Await it';
  // The message doesn't contain the URL, because it may include a secret.
  if (typeof value === 'string' && value.trim() !== '' && !URL.canParse(value))
    return 'must be an absolute URL such as https://example.com/fox.png';
  if (!isObject(value)) return problemOfText(value, field);
  // Items of these lists may be objects that contain the URL.
  if (/^reference_\w+s$/.test(field) && !field.endsWith('_urls') && !isOpaque(value)) return undefined;
  return `accepts a public URL. Pass a file as ${uploadFieldFor(field)}`;
};

const problemOfText: ProblemOf = (value) =>
  typeof value === 'string' && value.trim() !== ''
    ? undefined
    : `must be a non-empty string, not ${formatValue(value)}`;

/** Returns the URL field that corresponds to an upload field. */
function urlFieldFor(field: string): string {
  if (field === 'upload_id') return 'the url of uploads.create';
  return field === 'reference_upload_ids' ? 'reference_image_urls' : field.replace('upload_id', 'url');
}

/** Returns the upload field that corresponds to a URL field. */
function uploadFieldFor(field: string): string {
  if (field === 'references') return 'reference_upload_ids';
  if (EDIT_SOURCE_FIELDS.some((name) => name === field)) return 'source_video_upload_id';
  if (FRAME_FIELDS.some((name) => name === field)) return field.replace('_url', '_upload_id');
  const kind = /image|video|audio/i.exec(field)?.[0].toLowerCase();
  const imageHint = kind === 'image' ? ' (reference_upload_ids for images)' : '';
  return kind === undefined ? 'a field that accepts upload IDs' : `reference_${kind}_upload_ids${imageHint}`;
}

/** Returns true if JSON would drop the value's content: a file, bytes, or a function. */
function isOpaque(value: unknown): boolean {
  if (typeof value === 'function') return true;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype !== null && Object.getPrototypeOf(prototype) !== null;
}

function isPromise(value: unknown): boolean {
  return isFields(value) && typeof value.then === 'function';
}
