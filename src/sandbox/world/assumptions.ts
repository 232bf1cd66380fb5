// The sandbox's assumptions where the service's documentation is silent. The real service may behave differently, so don't rely
// on them.
//
// - A create responds with 200. Fields that aren't documented for the call have no effect. The Content-Type isn't checked.
// - An empty string is an invalid value. An empty Idempotency-Key header counts as missing.
// - If the values of a field are documented, any other value is rejected with `invalid_request`.
// - An image job starts `queued`, a one-off character `created`, a video `processing`.
// - A repeated Idempotency-Key returns the first result, even with a different body. A rejected create doesn't use up its key.
//   The header takes precedence over the body field.
// - A create whose job ends immediately can also return it `canceled` or `blocked`.
// - A one-off character's job uses its uploads from `created` on (`upload_in_use`).
// - The fallback without clips happens only if the preparation of a clip fails.
// - Canceled and blocked jobs aren't charged. Every account starts with the same balance.
// - Video models accept only the documented example ratios. Edits also accept `adaptive`.
// - Every video model supports sound, and sound doesn't change the price.
// - Every create accepts `webhook_url` and `callback_url`: HTTPS, or http for a private host, because receivers under
//   development usually run locally. The event of a job without a file has `providerOutputUrl: null`.
// - "Send one kind of reference per request" means two kinds: frames, or images, clips, and audio. Characters can accompany
//   either. A last frame doesn't require a first one.
// - `camera_fixed` with frames or images is rejected with `invalid_request`.
// - A reference URL must be a public HTTPS URL; otherwise the create is rejected with `invalid_request`. Nothing is fetched.
//   The reserved domains `.test`, `.example`, and `.invalid` are accepted, because tests use them.
// - An edit that is sent to POST /v1/videos accepts `aspect_ratio` and `ratio`, because that endpoint documents both.
// - An edit accepts reference images and audio under every name that POST /v1/videos accepts. Frames and reference clips fail
//   with `reference_combination_not_supported`. A clip in `content` is the source. Two sources are rejected.
// - An upload of the wrong type, or an incomplete one, counts as not found. A PUT after step 3 is rejected.
// - A direct upload URL is signed, requires exactly the headers of step 1 and no key, and expires after 15 minutes. It allows
//   every origin, like a bucket for browser uploads.
// - Rejected requests count against a rate limit, but 429 responses don't.
// - A megabyte is 1,048,576 bytes: the larger definition rejects nothing that the service might accept.
// - The length of a prompt counts UTF-16 code units, as `String.length` does.
// - On POST /v1/characters, an upload of another type, or one that isn't a supported image, fails the review (422).
// - Step 3 of an upload checks the number of bytes, not their content.
import type { ImageModel, MODELS, ModelAlias, VideoModel } from '../../catalog.js';

/** Tokens by model and resolution. */
type Tokens = Readonly<Record<string, Readonly<Record<string, number>>>>;
/** Requires a number for each resolution of each model, so that a new model without prices doesn't compile. */
type EachModel<A extends ModelAlias> = { [Alias in A]: Record<(typeof MODELS)[Alias]['resolutions'][number], number> };

/** Tokens per second of video, by resolution. No prices are documented. */
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

/** Maximum length of a prompt by kind of model (`maxPromptChars`). */
export const MAX_PROMPT_CHARS = { image: 4000, video: 5000 } as const;

/** Defaults of a create. If the model doesn't support one, its first supported value applies. Only the video model is documented. */
export const DEFAULTS = {
  imageModel: 'svc-image-fast',
  characterModel: 'svc-image-pro',
  imageRatio: '1:1',
  imageResolution: 'standard',
  videoRatio: '16:9',
  videoResolution: '720p',
  videoDurationS: 5,
} as const satisfies Record<string, string | number | ModelAlias>;

/** Maximum JSON body in bytes. A larger one fails with `request_too_large` before any other check. */
export const MAX_BODY_BYTES = 1024 * 1024;

/** Scope names. Only `videos:create` is documented. A key created without a list has all of them. */
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

/** The sandbox's own error codes, for errors without a documented code. */
export const OWN_CODES = {
  /** The body is not a JSON object, or a field has the wrong type or value. */
  invalid_request: 400,
  /** The path or the method does not exist. */
  not_found: 404,
  /** The job hasn't completed. */
  output_not_ready: 409,
  /** The output link has expired. */
  output_expired: 410,
  /** The upload was completed, so its bytes can no longer change. */
  upload_completed: 409,
  /** A JSON body is larger than {@link MAX_BODY_BYTES}. */
  request_too_large: 413,
  /** The signature or headers of a storage request don't match those of step 1. */
  storage_denied: 403,
  /** The storage URL has expired. */
  storage_url_expired: 403,
} as const;

/** Maximum number of entries in each log. */
export const MAX_LOG_ENTRIES = 10_000;

/** Lifetime of an output link, in milliseconds. */
export const OUTPUT_TTL_MS = 24 * 60 * 60 * 1000;
/** Lifetime of a direct upload URL, in milliseconds. */
export const UPLOAD_URL_TTL_MS = 15 * 60 * 1000;
/** Milliseconds after which stale repair fails a job whose dispatch never started. */
export const STALE_AFTER_MS = 10 * 60 * 1000;
/** Milliseconds after which a strict job with a stalled dispatch fails. */
export const DISPATCH_STALL_MS = 60 * 1000;
/** Fraction of an image job's duration that it spends `queued`. Videos start immediately. */
export const QUEUED_SHARE = 0.1;

/** Milliseconds between the five delivery attempts of an event. The documentation only says that they are bounded. */
export const DELIVERY_DELAYS_MS: readonly number[] = [5_000, 30_000, 120_000, 600_000];
/** Timeout of a webhook receiver, in real milliseconds. */
export const DELIVERY_TIMEOUT_MS = 10_000;
/** The constant `object` of a webhook event. */
export const EVENT_OBJECT = 'service.developer.webhook_event';

/** Voices that GET /v1/voices returns. */
export const VOICES: readonly { voice_id: string; name: string; language: string }[] = [
  { voice_id: 'voice_aria', name: 'Aria', language: 'en' },
  { voice_id: 'voice_ben', name: 'Ben', language: 'en' },
  { voice_id: 'voice_mira', name: 'Mira', language: 'de' },
];

/** Words in a reference's file name or URL that determine the result of its review. */
export const REVIEW_WORDS = {
  /** Rejects the reference as a photo of a real person (`reference_rejected`). */
  realPerson: 'real-person',
  /** Fails the preparation (`reference_asset_failed`). A job with a broken clip falls back to no clips. */
  broken: 'broken',
  /** Fails a character's review (`character_registration_failed`). */
  rejected: 'rejected',
} as const;

/** Wording that asks to match a real person (documentation: characters, prompt mode, rule 2, which doesn't define it). */
export const PERSON_MATCH =
  /\b(deep ?-?fakes?|look[- ]?alikes?|doppelg\S+|face[- ](swap|replacement)s?|(match|cop[iy]|clon|recreat|imitat|impersonat|replac|swap|resembl|identical|exactly like|looks like)\w*\b[^.!?,;]{0,60}\b(real (person|people)|celebrit(y|ies)|public figures?|famous \w+|(the|an?|this|that|his|her|their|my|\w+['’]s?) ((exact|real|own) )?(face|faces|identity|likeness)))\b/i;

/** Wording that an edit must not contain. Matching your own face is allowed (documentation: video edits, rule 6). */
export const EDIT_PERSON_MATCH =
  /\b(celebrit(y|ies)|public figures?|deep ?-?fakes?|impersonat\w*|famous (person|people|actor|actress|singer))\b/i;
