// The documented numbers of the service. No other file contains one.

/** The rate limits for which the service documents a number, by the name that the SDK gives each. */
type DocumentedLimit =
  | 'uploads.create'
  | 'uploads.put'
  | 'uploads.delete'
  | 'videos.create'
  | 'jobs.get'
  | 'jobs.output';

/** The rate limits of an account, by the name that the SDK gives each. The service documents no number for the last three. */
export type RateLimitName = DocumentedLimit | 'images.create' | 'videoEdits.create' | 'characters.create';

/** How many calls a rate limit takes in each window. */
export interface Rate {
  /** Calls per window; `Infinity` for no limit. */
  readonly limit: number;
  /** The window in milliseconds; 0 where there is no limit. */
  readonly windowMs: number;
}

const perMinute = (limit: number): Rate => ({ limit, windowMs: 60_000 });

/** The documented limits of one account. */
export const DOCUMENTED_LIMITS: Readonly<Record<DocumentedLimit, Rate>> = {
  'uploads.create': perMinute(60),
  'uploads.put': perMinute(60),
  'uploads.delete': perMinute(60),
  'videos.create': perMinute(20),
  'jobs.get': perMinute(120),
  'jobs.output': perMinute(300),
};

const WITHOUT_NUMBER: Rate = { limit: Number.POSITIVE_INFINITY, windowMs: 0 };

/** Every rate limit of an account, also those without a number: only a 429 tells that such a limit is reached. */
export const RATES: Readonly<Record<RateLimitName, Rate>> = {
  ...DOCUMENTED_LIMITS,
  'images.create': WITHOUT_NUMBER,
  'videoEdits.create': WITHOUT_NUMBER,
  'characters.create': WITHOUT_NUMBER,
};

/** The names of the rate limits. */
export const RATE_LIMIT_NAMES = Object.keys(RATES) as readonly RateLimitName[];

/** The share of the limit that waits read with. The rest is left for the caller's own reads. */
export const READ_SHARE = 7 / 8;

/** Bytes of a megabyte. The spec says MB and not which; the larger reading refuses nothing that the service takes. */
export const MB = 1024 * 1024;

/** Largest upload of each kind, in bytes. */
export const UPLOAD_BYTES = { IMAGE: 50 * MB, VIDEO: 200 * MB, AUDIO: 15 * MB } as const;

/** Least width of a character's reference image, in pixels. */
export const CHARACTER_WIDTH = 300;

/** A webhook whose timestamp is this many seconds or more away is refused. */
export const WEBHOOK_TOLERANCE_S = 300;

/** The service asks for this many milliseconds between two reads of a video job. */
export const VIDEO_POLL_MS = { least: 10_000, most: 15_000 } as const;

/** Price of one token in US dollars. */
export const USD_PER_TOKEN = 0.05;

/** A day in milliseconds. */
export const DAY_MS = 24 * 60 * 60_000;

/** Timeout of an attempt. */
export const DEFAULT_TIMEOUT_MS = 60_000;

/** How long a wait lasts at most unless it says otherwise. */
export const DEFAULT_WAIT_MS = 30 * 60_000;
