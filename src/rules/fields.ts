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

/** Names that other calls and other services use, and the documented name in each call. */
const MEANT: Readonly<Record<string, Partial<Record<FieldsCall, string>>>> = {
  aspect_ratio: { images: 'ratio', videoEdits: 'ratio' },
  ratio: { characters: 'aspect_ratio' },
  size: { images: 'ratio', videos: 'aspect_ratio', videoEdits: 'ratio', characters: 'aspect_ratio' },
  seconds: { videos: 'duration', videoEdits: 'duration' },
  image: {
    images: 'reference_upload_ids',
    videos: 'first_frame_upload_id',
    videoEdits: 'reference_image_upload_ids',
    characters: 'reference_upload_ids',
    registration: 'upload_id',
  },
  image_url: { images: 'reference_image_urls', videos: 'first_frame_url', videoEdits: 'reference_images' },
  reference_upload_ids: { videos: 'reference_image_upload_ids', videoEdits: 'reference_image_upload_ids' },
  reference_image_upload_ids: { images: 'reference_upload_ids', characters: 'reference_upload_ids' },
  reference_image_urls: { videoEdits: 'reference_images' },
  first_frame_upload_id: { images: 'reference_upload_ids', characters: 'reference_upload_ids' },
  first_frame_url: { images: 'reference_image_urls' },
  source_video_upload_id: { videos: 'reference_video_upload_ids' },
  video: { videos: 'reference_video_urls' },
  video_url: { videos: 'reference_video_urls', videoEdits: 'source_video_url' },
  text: { images: 'prompt', videos: 'prompt', videoEdits: 'prompt', characters: 'prompt' },
};

/** Every documented name, also of the fields inside `content`. */
const ALL_FIELDS: readonly string[] = [
  ...Object.values(DOCUMENTED_FIELDS).flat(),
  'image_url',
  'video_url',
  'audio_url',
];

/** The documented name that a camelCase one is meant for. */
function twinOf(name: string): string | undefined {
  const twin = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return twin !== name && ALL_FIELDS.includes(twin) && !ALL_FIELDS.includes(name) ? twin : undefined;
}

/** Refuses the camelCase twin of a documented field in an item of a list. */
export function refuseTwins(item: Fields): void {
  for (const [name, value] of Object.entries(item)) {
    const twin = value === undefined ? undefined : twinOf(name);
    if (twin !== undefined) refuseName(name, `the service ignores this name; write ${twin}.`);
  }
}

/**
 * Refuses an undocumented field that has a documented twin, that another call documents, or by which another service calls
 * a documented one: the service would ignore it, and charge for a job without it. `isStrict` refuses every undocumented field,
 * and `isEdit` says that a video is an edit by its `intent`.
 */
export function refuseField(
  call: FieldsCall,
  name: string,
  { isStrict, isEdit }: { readonly isStrict?: boolean | undefined; readonly isEdit?: boolean } = {},
): void {
  const twin = twinOf(name);
  if (twin !== undefined) {
    const documented = MEANT[twin]?.[isEdit ? 'videoEdits' : call] ?? twin;
    refuseName(name, `the service ignores this name; write ${documented}.`);
  }
  const meant = MEANT[name]?.[call];
  if (meant !== undefined) refuseName(name, `${NAMES[call]} ignores this name; write ${meant}.`);
  const owner = ownerOf(name);
  if (owner !== undefined) {
    refuseName(name, `it is a field of ${NAMES[owner]}, and ${NAMES[call]} does not take it.`);
  }
  if (isStrict) refuseName(name, `${NAMES[call]} documents no such field, and preflight is 'strict'.`);
}

function refuseName(name: string, problem: string): never {
  throw new PreflightError(`${name}: ${problem}`, { code: 'http_400', param: name });
}

/** The undocumented fields of a call. A video with `intent` takes the fields of an edit as well. */
export function undocumentedFields(call: FieldsCall, params: Fields): string[] {
  const isEdit = call === 'videos' && params.intent === 'video_edit';
  const documented: readonly string[] = isEdit
    ? [...DOCUMENTED_FIELDS.videos, ...DOCUMENTED_FIELDS.videoEdits]
    : DOCUMENTED_FIELDS[call];
  return Object.keys(params).filter((name) => params[name] !== undefined && !documented.includes(name));
}

function ownerOf(name: string): FieldsCall | undefined {
  const calls = Object.keys(DOCUMENTED_FIELDS) as FieldsCall[];
  return calls.find((call) => (DOCUMENTED_FIELDS[call] as readonly string[]).includes(name));
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
  if (isObject(value)) refuseReference(at, field, `takes a public URL; a file goes into ${uploadField(field)}`);
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
  return /^(first|last)_frame_url$/.test(field) ? field.replace('_url', '_upload_id') : 'a field that takes upload ids';
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
