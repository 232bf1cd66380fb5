/** The endpoints with a documented limit, by the names that the client uses for them. */
export type Lane = 'uploads.create' | 'uploads.put' | 'uploads.delete' | 'videos.create' | 'jobs.get' | 'jobs.output';

/** Requests that an account may make in a time. */
export interface Rate {
  /** Requests, 1 or more. */
  readonly limit: number;
  /** Milliseconds. */
  readonly windowMs: number;
}

/** Limits by lane. A lane that is left out has no limit. */
export type RateTable = { readonly [L in Lane]?: Rate | undefined };

const MINUTE_MS = 60_000;

/** The documented limits per account (spec: Limits). */
export const DOCUMENTED_LIMITS = {
  'uploads.create': { limit: 60, windowMs: MINUTE_MS },
  'uploads.put': { limit: 60, windowMs: MINUTE_MS },
  'uploads.delete': { limit: 60, windowMs: MINUTE_MS },
  'videos.create': { limit: 20, windowMs: MINUTE_MS },
  'jobs.get': { limit: 120, windowMs: MINUTE_MS },
  'jobs.output': { limit: 300, windowMs: MINUTE_MS },
} as const satisfies RateTable;

/** Every lane. */
export const LANES = Object.keys(DOCUMENTED_LIMITS) as readonly Lane[];
