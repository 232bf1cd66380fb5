// What the sandbox assumes if the service's document is silent. Every assumption is in this file. None of them says anything
// about the real service, and no program should rely on one.
//
// - A create answers 200. A field that the document does not list for the call has no effect. The Content-Type is not checked.
// - An empty string is a value, and a wrong one. An empty Idempotency-Key header counts as no header.
// - Where the document gives the values of a field, any other value is refused as `invalid_request`.
// - An image job starts `queued`, a one-off character `created`, a video `processing`.
// - A repeated Idempotency-Key gives the first result, whatever the body says. A refused create does not use up its key.
//   The header wins over the body field.
// - Canceled and blocked jobs are charged nothing. Every account opens with the same balance.
// - The ratios that the document names as examples for videos are all that its models accept. Edits also accept `adaptive`.
// - Every video model supports sound, and sound does not change the price.
// - Every create accepts `webhook_url` and `callback_url`: HTTPS, or http for a private host, because a receiver under
//   development usually runs beside the sandbox. The event of a job without a file has `providerOutputUrl: null`.
// - "Send one kind of reference per request" is read as two kinds: start and end frames on one side; images, clips and audio on
//   the other. Characters may go beside anything. A last frame is accepted without a first one.
// - `camera_fixed` beside frames or images is refused as `invalid_request`.
// - A reference URL has to be a public HTTPS URL, else the create is refused as `invalid_request`. Nothing is fetched. The
//   reserved names `.test`, `.example` and `.invalid` are accepted, because tests use them.
// - An edit accepts reference images and audio under every name that POST /v1/videos has for them. Frames and reference
//   clips give `reference_combination_not_supported`. Through `content`, a clip is the source. Two sources are refused.
// - An upload of the wrong type, or one that is not complete, counts as not found. A PUT after step 3 is refused.
// - A direct upload URL is signed, needs the headers of step 1 exactly and no key, and lives for 15 minutes. It lets the pages
//   of any origin in, as a bucket for browser uploads does.
// - Rejected requests count against a rate limit, 429 responses do not.
// - A megabyte is 1,048,576 bytes: the larger reading rejects nothing that the service might accept.
// - The length of a prompt counts UTF-16 code units, as `String.length` does.
// - On POST /v1/characters, an upload of another kind, or one whose bytes are no supported image, fails the review (422).
// - Step 3 of an upload checks the number of bytes, not what they are.
import type { ImageModel, MODELS, ModelAlias, VideoModel } from '../../catalog.js';

/** Tokens by model and resolution. */
type Tokens = Readonly<Record<string, Readonly<Record<string, number>>>>;
/** A number for each resolution of each model: the compiler asks for what a new row lacks. */
type EachModel<A extends ModelAlias> = { [Alias in A]: Record<(typeof MODELS)[Alias]['resolutions'][number], number> };

/** Tokens per second of video, by resolution. The document states no price. */
export const VIDEO_TOKENS_PER_SECOND: Tokens = {
  'svc-video-fast': { '480p': 2, '720p': 3 },
  'svc-video-gen-2-fast': { '480p': 2, '720p': 3 },
  'svc-video-mini': { '480p': 1, '720p': 2 },
  'svc-video-gen-2-mini': { '480p': 1, '720p': 2 },
  'svc-video-pro': { '480p': 3, '720p': 5, '1080p': 9, '4k': 18 },
  'svc-video-gen-2': { '480p': 3, '720p': 5, '1080p': 9, '4k': 18 },
  'svc-video-gen-1-5': { '480p': 2, '720p': 4, '1080p': 7 },
  'svc-video-gen-2-5': { '480p': 4, '720p': 6, '1080p': 10 },
} satisfies EachModel<VideoModel>;

/** Tokens per image, by resolution. */
export const IMAGE_TOKENS: Tokens = {
  'svc-image-fast': { standard: 2 },
  'svc-image-pro': { standard: 4, high: 8 },
  'svc-image-gen-5-pro': { standard: 5 },
  'svc-image-gen-5-flash': { standard: 2 },
} satisfies EachModel<ImageModel>;

/** The longest prompt by kind of model, in characters (`maxPromptChars`). */
export const MAX_PROMPT_CHARS = { image: 4000, video: 5000 } as const;

/**
 * What a create uses when it does not say, as far as its model offers that, else the first that the model offers. Only the
 * default video model is documented.
 */
export const DEFAULTS = {
  imageModel: 'svc-image-fast',
  characterModel: 'svc-image-pro',
  imageRatio: '1:1',
  imageResolution: 'standard',
  videoRatio: '16:9',
  videoResolution: '720p',
  videoDurationS: 5,
} as const satisfies Record<string, string | number | ModelAlias>;

/** The largest JSON body in bytes. More give `request_too_large` before anything else is checked. */
export const MAX_BODY_BYTES = 1024 * 1024;

/** Scope names. The document names `videos:create` only. A key made without a list has them all. */
export const SCOPES = [
  'images:create',
  'videos:create',
  'video_edits:create',
  'characters:create',
  'characters:read',
  'characters:delete',
  'uploads:create',
  'uploads:delete',
  'jobs:read',
  'voices:read',
] as const;

/** A scope of the sandbox's keys. */
export type Scope = (typeof SCOPES)[number];

/** The sandbox's own error codes, for what the document forbids without naming a code. */
export const OWN_CODES = {
  /** The body is not a JSON object, or a field has the wrong type or value. */
  invalid_request: 400,
  /** The path or the method does not exist. */
  not_found: 404,
  /** The job has not completed, so it has no output. */
  output_not_ready: 409,
  /** The output link has expired. */
  output_expired: 410,
  /** The upload was completed, so its bytes can no longer change. */
  upload_completed: 409,
  /** A JSON body is larger than {@link MAX_BODY_BYTES}. */
  request_too_large: 413,
  /** The signature or the headers of a request to storage are not the ones that were handed out. */
  storage_denied: 403,
  /** The storage URL has expired. */
  storage_url_expired: 403,
} as const;

/** How many requests, and how many deliveries, the logs keep. */
export const LOGGED_ITEMS = 10_000;

/** Milliseconds that the output link of a finished job stays valid. */
export const OUTPUT_TTL_MS = 24 * 60 * 60 * 1000;
/** Milliseconds that a direct upload URL stays valid. */
export const UPLOAD_URL_TTL_MS = 15 * 60 * 1000;
/** Milliseconds until stale repair fails a job whose dispatch never started. */
export const STALE_AFTER_MS = 10 * 60 * 1000;
/** Milliseconds until a strict job whose dispatch stalls is failed. */
export const DISPATCH_STALL_MS = 60 * 1000;
/** The share of an image job's time that it is `queued` before it is `processing`. Videos start at once. */
export const QUEUED_SHARE = 0.1;

/** Milliseconds between the deliveries of one event: five attempts in all. The document says only that they are bounded. */
export const DELIVERY_DELAYS_MS: readonly number[] = [5_000, 30_000, 120_000, 600_000];
/** Real milliseconds that a receiver has to answer. */
export const DELIVERY_TIMEOUT_MS = 10_000;
/** The constant `object` of a webhook event. */
export const EVENT_OBJECT = 'service.developer.webhook_event';

/** The voices of GET /v1/voices, and the fields of one. */
export const VOICES: readonly { voice_id: string; name: string; language: string }[] = [
  { voice_id: 'voice_aria', name: 'Aria', language: 'en' },
  { voice_id: 'voice_ben', name: 'Ben', language: 'en' },
  { voice_id: 'voice_mira', name: 'Mira', language: 'de' },
];

/** Words in the file name or the URL of a reference that decide how its review ends. */
export const REVIEW_WORDS = {
  /** A reference is declined as a photo of a real person (`reference_rejected`). */
  realPerson: 'real-person',
  /** Its preparation fails (`reference_asset_failed`; for a clip, the fallback without clips). */
  broken: 'broken',
  /** A character's image fails its review (`character_registration_failed`). */
  rejected: 'rejected',
} as const;

/** Wording that asks to match a real person (document: characters, prompt mode, rule 2). The document does not define it. */
export const PERSON_MATCH =
  /\b(deep ?-?fakes?|look[- ]?alikes?|doppelg\S+|face[- ](swap|replacement)s?|(match|cop[iy]|clon|recreat|imitat|impersonat|replac|swap|resembl|identical|exactly like|looks like)\w*\b[^.!?,;]{0,60}\b(real (person|people)|celebrit(y|ies)|public figures?|famous \w+|(the|an?|this|that|his|her|their|my|\w+['’]s?) ((exact|real|own) )?(face|faces|identity|likeness)))\b/i;

/** Wording that an edit may not have, where matching one's own face is allowed (document: video edits, rule 6). */
export const EDIT_PERSON_MATCH =
  /\b(celebrit(y|ies)|public figures?|deep ?-?fakes?|impersonat\w*|famous (person|people|actor|actress|singer))\b/i;
