// The fields that each creating call documents, the names that people write in their place, and what may stand in a field that
// refers to a file: an upload id or a file, a public URL, a character.
import { PreflightError } from '../errors/index.js';
import { type Fields, isFields, isObject } from '../schemas/envelope.js';
import { mediaTypeOfName } from '../schemas/media-type.js';
import { show } from '../schemas/show.js';

/** A call with documented fields. */
export type FieldsCall = 'images' | 'videos' | 'videoEdits' | 'characters' | 'registration';

/** Every create takes these: where the event goes, and the key. */
const EVERY_CREATE = ['webhook_url', 'callback_url', 'idempotency_key'] as const;

/** The fields of each call. `content` stands in for a prompt on an edit too. */
export const DOCUMENTED_FIELDS = {
  images: [
    ...['model', 'prompt', 'ratio', 'resolution', 'response_format', 'watermark', 'safety_identifier', 'references'],
    ...['reference_upload_ids', 'character_ids', 'reference_image_urls', 'referenceImageUrls', 'reference_images'],
    ...EVERY_CREATE,
  ],
  videos: [
    ...['model', 'prompt', 'content', 'duration', 'resolution', 'aspect_ratio', 'ratio', 'generate_audio', 'seed'],
    ...['camera_fixed', 'watermark', 'safety_identifier', 'character_ids', 'video_reference_mode', 'intent'],
    ...['first_frame_url', 'first_frame_upload_id', 'last_frame_url', 'last_frame_upload_id'],
    ...['reference_image_urls', 'reference_image_upload_ids', 'referenceImageUrls', 'reference_images'],
    ...['reference_video_urls', 'reference_video_upload_ids', 'referenceVideoUrls', 'reference_videos'],
    ...['reference_audio_urls', 'reference_audio_upload_ids', 'referenceAudioUrls', 'reference_audios'],
    ...EVERY_CREATE,
  ],
  videoEdits: [
    ...['model', 'prompt', 'content', 'edit_mode', 'source_video_upload_id', 'video', 'source_video_url', 'duration'],
    ...['ratio', 'resolution', 'generate_audio', 'reference_image_upload_ids', 'reference_images', 'reference_audios'],
    ...EVERY_CREATE,
  ],
  characters: ['mode', 'name', 'prompt', 'reference_upload_ids', 'aspect_ratio', 'resolution', ...EVERY_CREATE],
  registration: ['mode', 'name', 'upload_id', 'idempotency_key'],
} as const satisfies Readonly<Record<FieldsCall, readonly string[]>>;

/** What a message calls each call. */
const NAMES: Readonly<Record<FieldsCall, string>> = {
  images: 'images.create',
  videos: 'videos.create',
  videoEdits: 'videoEdits.create',
  characters: 'characters.create',
  registration: 'characters.register',
};

const FIRST_FRAME = { videos: 'first_frame_upload_id', images: 'reference_upload_ids' } as const;
const PICTURE = {
  ...{ ...FIRST_FRAME, videoEdits: 'reference_image_upload_ids' },
  ...{ characters: 'reference_upload_ids', registration: 'upload_id' },
} as const;
const SHAPE = { images: 'ratio', videos: 'aspect_ratio', videoEdits: 'ratio', characters: 'aspect_ratio' } as const;
const LENGTH = { videos: 'duration', videoEdits: 'duration' } as const;

/** Names that other calls and other services use (fal, replicate, runway, luma, openai), and the documented name. */
const MEANT: Readonly<Record<string, string | Partial<Record<FieldsCall, string>>>> = {
  aspect_ratio: SHAPE,
  ratio: SHAPE,
  size: SHAPE,
  image_size: SHAPE,
  seconds: LENGTH,
  duration_seconds: LENGTH,
  image: PICTURE,
  prompt_image: PICTURE,
  input_reference: PICTURE,
  start_image: FIRST_FRAME,
  first_frame: FIRST_FRAME,
  first_frame_image: FIRST_FRAME,
  end_image: { videos: 'last_frame_upload_id' },
  last_frame: { videos: 'last_frame_upload_id' },
  keyframes: { videos: 'first_frame_upload_id and last_frame_upload_id' },
  image_url: { images: 'reference_image_urls', videos: 'first_frame_url', videoEdits: 'reference_images' },
  reference_upload_ids: PICTURE.videoEdits,
  reference_image_upload_ids: { images: 'reference_upload_ids', characters: 'reference_upload_ids' },
  reference_image_urls: { videoEdits: 'reference_images' },
  first_frame_upload_id: { images: 'reference_upload_ids', characters: 'reference_upload_ids' },
  first_frame_url: { images: 'reference_image_urls' },
  source_video_upload_id: { videos: 'reference_video_upload_ids' },
  video: { videos: 'reference_video_urls' },
  video_url: { videos: 'reference_video_urls', videoEdits: 'source_video_url' },
  text: 'prompt',
  prompt_text: 'prompt',
  input: 'its fields beside each other, without input',
  model_id: 'model',
  model_name: 'model',
  version: 'model',
  quality: 'resolution',
  audio: { videos: 'generate_audio', videoEdits: 'generate_audio' },
  user: 'safety_identifier',
  webhook: 'webhook_url',
  n: 'one create for each output',
  num_images: 'one create for each output',
  num_outputs: 'one create for each output',
  number_of_images: 'one create for each output',
  number_of_videos: 'one create for each output',
};

/** Names of options. Among the params they would be sent, ignored, and paid for. */
const OPTION_NAMES: readonly string[] = [
  ...['signal', 'timeoutMs', 'maxRetries', 'idempotencyKey', 'headers', 'preflight', 'budget', 'label', 'extraBody'],
  ...['onUpdate', 'onCreated', 'onUploadProgress', 'pollIntervalMs', 'throwOnFailure', 'cleanup', 'recover'],
  'resubmitPending',
];

/** Every documented name, also of the fields inside `content`. */
const ALL_FIELDS: readonly string[] = [
  ...Object.values(DOCUMENTED_FIELDS).flat(),
  ...['image_url', 'video_url', 'audio_url'],
];

/** A name without what people write in different ways: case, spaces, `-` and `_`. */
const squeezed = (name: string) => name.toLowerCase().replace(/[\s_-]/g, '');

/** The name among `names` that differs only in case, spaces, `-` or `_`. */
function sameName(name: string, names: readonly string[]): string | undefined {
  return names.find((known) => squeezed(known) === squeezed(name));
}

/** Refuses a name in an item of a list that differs from a documented one only in how it is written. */
export function refuseTwins(item: Fields): void {
  for (const [name, value] of Object.entries(item)) {
    const twin = value === undefined || ALL_FIELDS.includes(name) ? undefined : sameName(name, ALL_FIELDS);
    if (twin !== undefined) refuseName(name, `the service ignores this name; write ${twin}.`);
  }
}

/**
 * Refuses what the call does not document, because the service would ignore it and charge for a job without it. The message
 * names what was meant, as far as that is known. `extra` is the option extraBody: fields that the documentation does not have.
 */
export function refuseUndocumented(call: FieldsCall, params: Fields, extra: Fields = {}): void {
  const isEdit = call === 'videos' && params.intent === 'video_edit';
  const documented: readonly string[] = isEdit
    ? [...DOCUMENTED_FIELDS.videos, ...DOCUMENTED_FIELDS.videoEdits]
    : DOCUMENTED_FIELDS[call];
  for (const name of Object.keys(extra)) {
    if (documented.includes(name))
      refuseName(name, 'is a documented field; pass it with the params, not in extraBody.');
  }
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && !documented.includes(name))
      refuseName(name, problemOf(name, { call, documented, isEdit }));
  }
}

/** Refuses a function, a signal and a client among the params: each was meant as an option, and JSON would lose it. */
export function refuseOptions(params: Fields): void {
  for (const [name, value] of Object.entries(params)) {
    const isCallback = typeof value === 'function' && !isUploadField(name);
    if (isCallback || value instanceof AbortSignal || (isFields(value) && typeof value.withOptions === 'function')) {
      refuseName(name, 'cannot be sent. Options are the second argument.');
    }
  }
}

interface NamedIn {
  readonly call: FieldsCall;
  readonly documented: readonly string[];
  readonly isEdit: boolean;
}

function problemOf(name: string, { call, documented, isEdit }: NamedIn): string {
  if (OPTION_NAMES.includes(name)) return 'is an option: pass it as the second argument.';
  const own = sameName(name, documented);
  if (own !== undefined) return `the service ignores this name; write ${own}.`;
  const meant = MEANT[sameName(name, Object.keys(MEANT)) ?? ''];
  const here = typeof meant === 'object' ? meant[isEdit ? 'videoEdits' : call] : meant;
  if (here !== undefined) return `${NAMES[call]} ignores this name; write ${here}.`;
  const owner = ownerOf(name);
  if (owner !== undefined) return `it is a field of ${NAMES[owner]}, and ${NAMES[call]} does not take it.`;
  return `${NAMES[call]} documents no such field. Leave it out, or send it with the option extraBody.`;
}

function refuseName(name: string, problem: string): never {
  throw new PreflightError(`${name}: ${problem}`, { code: 'http_400', param: name });
}

function ownerOf(name: string): FieldsCall | undefined {
  const calls = Object.keys(DOCUMENTED_FIELDS) as FieldsCall[];
  return calls.find((call) => sameName(name, DOCUMENTED_FIELDS[call]) !== undefined);
}

const UPLOAD_FIELD = /(^|_)upload_ids?$/;
const URL_FIELD = /_urls?$|Urls$|^(url|video)$/;
/** Other names of fields with a list of references. Their items may be objects with a URL inside. */
const REFERENCE_LIST = /^reference_(images|videos|audios)$/;
const SOURCE = /^(source_video_(upload_id|url)|video)$/;
/** Lists of objects with fields of their own. */
export const ITEM_LISTS: readonly string[] = ['references', 'content'];
/** A path or an address where an upload id is expected. */
const PLACE = /^(https?|data|file|blob):|^\.{0,2}[\\/]|^[a-z]:\\/i;

/** The fields of a first and a last frame. */
export const FRAME_FIELDS = [
  'first_frame_url',
  'first_frame_upload_id',
  'last_frame_url',
  'last_frame_upload_id',
] as const;
/** The fields of a video's reference images. */
export const REFERENCE_IMAGE_FIELDS = [
  ...['reference_image_upload_ids', 'reference_image_urls'],
  ...['referenceImageUrls', 'reference_images'],
];
/** The fields of the video that an edit starts from. */
export const EDIT_SOURCE_FIELDS = ['source_video_upload_id', 'video', 'source_video_url'] as const;

/** Whether the field takes the id of an upload, or a list of ids. */
export function isUploadField(field: string): boolean {
  return UPLOAD_FIELD.test(field);
}

/** Whether the field holds references, or items that may be references. */
export function isReferenceField(field: string): boolean {
  return field.startsWith('reference') || ITEM_LISTS.includes(field);
}

/** Refuses what can be neither an id, a file nor a URL, in lists too. `undefined` and null say that a field is left out. */
export function checkReferences(params: Fields): void {
  for (const [field, value] of Object.entries(params)) {
    // An edit without a source has a code of its own.
    if (value === undefined || value === null || (value === '' && SOURCE.test(field))) continue;
    if (UPLOAD_FIELD.test(field)) each(field, value, refuseNoUpload);
    else if (field === 'character_ids') each(field, value, refuseNoText);
    else if (REFERENCE_LIST.test(field)) each(field, value, refuseNoReference);
    else if (URL_FIELD.test(field)) each(field, value, refuseNoUrl);
    else if (ITEM_LISTS.includes(field)) checkItems(field, value);
  }
}

type CheckValue = (at: string, value: unknown, field: string) => void;

function each(field: string, value: unknown, check: CheckValue): void {
  const isList = field.endsWith('s');
  if (isList !== Array.isArray(value)) {
    refuseReference(field, field, isList ? 'must be a list; put the value in [ ]' : 'takes one value, not a list');
  }
  if (Array.isArray(value)) for (const [index, item] of value.entries()) check(`${field}[${index}]`, item, field);
  else check(field, value, field);
}

function checkItems(list: string, value: unknown): void {
  for (const [index, item] of [value].flat().entries()) {
    const at = `${list}[${index}]`;
    if (isOpaque(item)) refuseReference(at, list, `must be an object with fields, not ${show(item)}`);
    for (const [field, part] of Object.entries(isFields(item) ? item : {})) {
      const url = isFields(part) && !isOpaque(part) ? part.url : part;
      if (URL_FIELD.test(field) && url !== undefined && url !== null) refuseNoUrl(`${at}.${field}`, url, field);
    }
  }
}

function refuseNoUpload(at: string, value: unknown, field: string): void {
  if (typeof value === 'string') {
    if (value.trim() === '')
      refuseReference(at, field, 'is empty; pass an upload id or a file, or leave the field out');
    if (/^https?:/i.test(value))
      refuseReference(at, field, 'takes an upload id or a file; a public URL goes into a field for URLs');
    if (!PLACE.test(value) && mediaTypeOfName(value) === undefined) return;
    refuseReference(at, field, 'takes an upload id, and this is the name of a file; pass fromPath(path) or a Blob');
  }
  if (isPromise(value)) refuseReference(at, field, 'is a promise; await the upload, and pass its upload_id');
  if (isFields(value) && typeof value.upload_id === 'string')
    refuseReference(at, field, 'is an upload; pass its upload_id');
  if (!isObject(value)) refuseReference(at, field, `must be an upload id or a file, not ${show(value)}`);
}

function refuseNoUrl(at: string, value: unknown, field: string): void {
  if (value instanceof URL) return;
  if (isPromise(value)) refuseReference(at, field, 'is a promise; await it');
  if (isObject(value))
    refuseReference(
      at,
      field,
      `takes a public URL; a file goes into ${at.startsWith('references[') ? 'reference_upload_ids' : uploadField(field)}`,
    );
  refuseNoText(at, value, field);
}

function refuseNoReference(at: string, value: unknown, field: string): void {
  if (!isObject(value) || isOpaque(value)) refuseNoUrl(at, value, field);
}

function refuseNoText(at: string, value: unknown, field: string): void {
  if (typeof value === 'string' && value.trim() !== '') return;
  refuseReference(at, field, `must be a non-empty string, not ${show(value)}`);
}

/** The field that takes a file in place of one that takes its URL. */
function uploadField(field: string): string {
  const [, kind] = /^reference_?(image|video|audio)/i.exec(field) ?? [];
  if (kind !== undefined) return `reference_${kind.toLowerCase()}_upload_ids (reference_upload_ids for images)`;
  if (field === 'video' || field === 'source_video_url') return 'source_video_upload_id';
  if (/^(first|last)_frame_url$/.test(field)) return field.replace('_url', '_upload_id');
  const [, part] = /^(image|video|audio)_url$/.exec(field) ?? [];
  return part === undefined ? 'a field that takes upload ids' : `reference_${part}_upload_ids`;
}

/** Whether JSON would lose what a value holds: a file, bytes, a function. A plain object has only its fields. */
function isOpaque(value: unknown): boolean {
  if (typeof value === 'function') return true;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype !== null && Object.getPrototypeOf(prototype) !== null;
}

function isPromise(value: unknown): boolean {
  return isFields(value) && typeof value.then === 'function';
}

function refuseReference(at: string, param: string, problem: string): never {
  throw new PreflightError(`${at}: ${problem}.`, { code: 'http_400', param });
}
