// Numbers that the service documents, and the SDK's own defaults for waits and polls.

type DocumentedLimit =
  | 'uploads.create'
  | 'uploads.put'
  | 'uploads.delete'
  | 'videos.create'
  | 'jobs.get'
  | 'jobs.output';

/** Name of a rate limit. The service documents no number for the last three. */
export type RateLimitName = DocumentedLimit | 'images.create' | 'videoEdits.create' | 'characters.create';

/** Calls that a rate limit allows per window. */
export interface Rate {
  /** Calls per window, or `Infinity` for no limit. */
  readonly limit: number;
  /** Window in milliseconds, or 0 if there is no limit. */
  readonly windowMs: number;
}

const perMinute = (limit: number): Rate => ({ limit, windowMs: 60_000 });

/** Documented rate limits of one account. */
export const DOCUMENTED_LIMITS: Readonly<Record<DocumentedLimit, Rate>> = {
  'uploads.create': perMinute(60),
  'uploads.put': perMinute(60),
  'uploads.delete': perMinute(60),
  'videos.create': perMinute(20),
  'jobs.get': perMinute(120),
  'jobs.output': perMinute(300),
};

const UNDOCUMENTED_RATE: Rate = { limit: Number.POSITIVE_INFINITY, windowMs: 0 };

/** All rate limits of an account. If a limit's number isn't documented, only a 429 shows that it's exhausted. */
export const RATES: Readonly<Record<RateLimitName, Rate>> = {
  ...DOCUMENTED_LIMITS,
  'images.create': UNDOCUMENTED_RATE,
  'videoEdits.create': UNDOCUMENTED_RATE,
  'characters.create': UNDOCUMENTED_RATE,
};

/** Names of the rate limits. */
export const RATE_LIMIT_NAMES = Object.keys(RATES) as readonly RateLimitName[];

/** Share of the limit that waits use for polls. The rest is left for the caller's own requests. */
export const POLL_SHARE = 7 / 8;

/** Bytes per megabyte. The spec doesn't define MB, so use the larger value, which never rejects an accepted file. */
export const MB = 1024 * 1024;

/** Maximum upload size of each kind, in bytes. */
export const UPLOAD_BYTES = { IMAGE: 50 * MB, VIDEO: 200 * MB, AUDIO: 15 * MB } as const;

/** Minimum width of a character's reference image, in pixels. */
export const CHARACTER_WIDTH = 300;

/**
 * Webhooks are rejected if their timestamp differs by at least this many seconds. `webhooks/verify.ts` repeats the number,
 * because a receiver that imports this file is 0.2 kB larger.
 */
export const WEBHOOK_TOLERANCE_S = 300;

/** Milliseconds between two polls of a video job, as requested by the service. */
export const VIDEO_POLL_MS = { min: 10_000, max: 15_000 } as const;

/** Price of one token in US dollars. */
export const USD_PER_TOKEN = 0.05;

/** A day in milliseconds. */
export const DAY_MS = 24 * 60 * 60_000;

/** Default timeout of an attempt, in milliseconds. */
export const DEFAULT_TIMEOUT_MS = 60_000;

/** Default timeout of a wait, in milliseconds. */
export const DEFAULT_WAIT_MS = 30 * 60_000;
