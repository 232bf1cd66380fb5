// The fields that each creating call documents, and the names that people write in their place.
import { PreflightError } from '../errors/index.js';
import type { Fields } from '../schemas/envelope.js';

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

/**
 * Refuses an undocumented field that another call documents, and another service's name for a documented one: the service
 * would ignore it, and charge for a job without it. `isStrict` refuses every undocumented field.
 */
export function refuseForeignField(call: FieldsCall, name: string, isStrict = false): void {
  const meant = MEANT[name]?.[call];
  const owner = ownerOf(name);
  const problem =
    meant !== undefined
      ? `${NAMES[call]} ignores this name; write ${meant}.`
      : owner !== undefined
        ? `it is a field of ${NAMES[owner]}, and ${NAMES[call]} does not take it.`
        : isStrict
          ? `${NAMES[call]} documents no such field, and preflight is 'strict'.`
          : undefined;
  if (problem !== undefined) throw new PreflightError(`${name}: ${problem}`, { code: 'http_400', param: name });
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
