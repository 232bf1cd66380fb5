// The sandbox's own choices, one place for all of them. The service's document is silent on everything in this file:
// nothing here is a promise about the real service, and no program should rely on it. Beside the figures and names below:
// - a repeated Idempotency-Key gives the first result whatever the body says; a refused create uses no key up;
// - refused requests count against a rate limit, answers of 429 do not;
// - canceled and blocked jobs are charged nothing; another account opens with the same balance as the first;
// - a create answers 200; an upload of the wrong type, or one that is not complete, counts as not found;
// - image jobs start `queued`, one-off characters `created`, videos `processing`.
import type { ModelAlias } from '../../catalog.js';

/** The envelope of an answer: the document shows `success` and `data` of creates and jobs; all answers follow it. */
export function successBody(data: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return { success: true, data };
}

/** The envelope of a refusal, of which the document shows only what stands in `data`. */
export function errorBody(code: string, message: string, data?: Readonly<Record<string, unknown>>) {
  return { success: false, error: { code, message }, ...(data === undefined ? {} : { data }) };
}

/** Where lists stand in `data`: `data.models`, and so on. */
export const LISTS = { models: 'models', characters: 'characters', voices: 'voices' } as const;

/** Tokens a second of video, by resolution. The document prices nothing. */
export const VIDEO_TOKENS_PER_SECOND: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  'svc-video-fast': { '480p': 2, '720p': 3 },
  'svc-video-gen-2-fast': { '480p': 2, '720p': 3 },
  'svc-video-mini': { '480p': 1, '720p': 2 },
  'svc-video-gen-2-mini': { '480p': 1, '720p': 2 },
  'svc-video-pro': { '480p': 3, '720p': 5, '1080p': 9, '4k': 18 },
  'svc-video-gen-2': { '480p': 3, '720p': 5, '1080p': 9, '4k': 18 },
  'svc-video-gen-1-5': { '480p': 2, '720p': 4, '1080p': 7 },
  'svc-video-gen-2-5': { '480p': 4, '720p': 6, '1080p': 10 },
};

/** Tokens an image, by resolution. */
export const IMAGE_TOKENS: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  'svc-image-fast': { standard: 2 },
  'svc-image-pro': { standard: 4, high: 8 },
  'svc-image-gen-5-pro': { standard: 5 },
  'svc-image-gen-5-flash': { standard: 2 },
};

/** Tokens a speech job. */
export const SPEECH_TOKENS = 1;
/** The alias a speech job is shown under. */
export const SPEECH_MODEL = 'svc-speech';

/** Longest prompt by kind of model, in characters (`maxPromptChars`). */
export const MAX_PROMPT_CHARS = { image: 4000, video: 5000 } as const;

/** What a create gets when it does not say. The default video model is the document's; these are not. */
export const DEFAULTS = {
  imageModel: 'svc-image-fast',
  characterModel: 'svc-image-pro',
  imageRatio: '1:1',
  imageResolution: 'standard',
  videoRatio: '16:9',
  videoResolution: '720p',
  videoDurationS: 5,
} as const satisfies Record<string, string | number | ModelAlias>;

/** Ratios that every video model takes. Edits take `adaptive` too, which is the document's. */
export const VIDEO_RATIOS: readonly string[] = ['16:9', '9:16', '1:1', '4:3', '3:4', '21:9'];

/** Most references of one kind in a create; more give `invalid_request`. */
export const MAX_REFERENCES = 16;

/** Scope names. The document names `videos:create` only; a key made without a list has them all. */
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
  'speech:create',
] as const;

/** A scope of the sandbox's keys. */
export type Scope = (typeof SCOPES)[number];

/** Codes of the sandbox's own, for what the document forbids without naming a code. */
export const OWN_CODES = {
  /** A body that is no JSON object, or a field of the wrong type. */
  invalid_request: 400,
  /** No such path or method. */
  not_found: 404,
  /** The output of a job that has not completed. */
  output_not_ready: 409,
  /** The output link's time is over. */
  output_expired: 410,
  /** Storage refuses a URL whose signature or headers are not the ones that were handed out. */
  storage_denied: 403,
  /** Storage refuses a URL whose time is over. */
  storage_url_expired: 403,
} as const;

/** Milliseconds that the output link of a finished job stays good. */
export const OUTPUT_TTL_MS = 24 * 60 * 60 * 1000;
/** Milliseconds that a direct upload URL stays good. */
export const UPLOAD_URL_TTL_MS = 15 * 60 * 1000;
/** Milliseconds until stale repair fails a job whose dispatch never started. */
export const STALE_AFTER_MS = 10 * 60 * 1000;
/** Milliseconds until a strict job whose dispatch stalls is failed. */
export const DISPATCH_STALL_MS = 60 * 1000;
/** Share of an image job's time that it is `queued`, before it is `processing`. Videos start at once. */
export const QUEUED_SHARE = 0.1;

/** Milliseconds between the deliveries of one event: five attempts in all. The document says only that they are bounded. */
export const DELIVERY_DELAYS_MS: readonly number[] = [5_000, 30_000, 120_000, 600_000];
/** Real milliseconds that a receiver has for its answer. */
export const DELIVERY_TIMEOUT_MS = 10_000;
/** The constant `object` of a webhook event. */
export const EVENT_OBJECT = 'service.developer.webhook_event';

/** The path of the speech operation; the document gives none. */
export const SPEECH_PATH = '/v1/speech';
/** GET /v1/voices: the voices and the fields of one. */
export const VOICES: readonly { voice_id: string; name: string; language: string }[] = [
  { voice_id: 'voice_aria', name: 'Aria', language: 'en' },
  { voice_id: 'voice_ben', name: 'Ben', language: 'en' },
  { voice_id: 'voice_mira', name: 'Mira', language: 'de' },
];

/**
 * Words in the file name or the URL of a reference that decide how its review goes. Nothing is fetched: a public URL that
 * is not https counts as broken.
 */
export const REVIEW_WORDS = {
  /** A reference is declined as a real person's photo (`reference_rejected`). */
  realPerson: 'real-person',
  /** Its preparation fails (`reference_asset_failed`; for a clip, the fallback without clips). */
  broken: 'broken',
  /** A character's image fails its review (`character_registration_failed`). */
  rejected: 'rejected',
} as const;

const WHO =
  "(real (person|people|human)|celebrit(y|ies)|public figures?|famous (person|people|actor|actress|singer)|(the|an?|this|that|his|her|their|my|\\w+['’]s?) ((exact|real|own) )?(face|identity|likeness))";
const HOW =
  '(exact(ly)? (copy|replica|like|likeness|match|same)|cop(y|ies|ied|ying)|looks? (just |exactly )?like|clon(e|es|ed|ing)|recreat\\w*|imitat\\w*|impersonat\\w*|identical to|replac\\w*|swap\\w*|match\\w*|resembl\\w*)';

/** Wording that asks to match a real person (document: characters, prompt mode, rule 2). Its exact reach is not stated. */
export const PERSON_MATCH = new RegExp(
  `\\b(deep ?-?fakes?|look[- ]?alikes?|swap\\w* (the |their |our )?faces|doppelg(ä|ae?)ngers?|face[- ](swap|replacement)s?|${HOW}\\b[^.!?,;]{0,60}\\b${WHO}|${WHO}\\b[^.!?,;]{0,40}\\b(look[- ]?alike|clone|recreation|imitation|replacement|replica))\\b`,
  'i',
);

/** Wording that an edit may not have, where matching one's own face is allowed (document: video edits, rule 6). */
export const EDIT_PERSON_MATCH =
  /\b(celebrit(y|ies)|public figures?|deep ?-?fakes?|impersonat\w*|famous (person|people|actor|actress|singer))\b/i;
