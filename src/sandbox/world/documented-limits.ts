/** Requests an account may make in a time, by lane; a lane that is missing has no limit. */
export type RateTable = Readonly<Record<string, { readonly limit: number; readonly windowMs: number }>>;

const MINUTE_MS = 60_000;

/** The documented limits per account (spec: Limits). */
export const documentedLimits: RateTable = {
  'uploads.create': { limit: 60, windowMs: MINUTE_MS },
  'uploads.put': { limit: 60, windowMs: MINUTE_MS },
  'uploads.delete': { limit: 60, windowMs: MINUTE_MS },
  'videos.create': { limit: 20, windowMs: MINUTE_MS },
  'jobs.get': { limit: 120, windowMs: MINUTE_MS },
  'jobs.output': { limit: 300, windowMs: MINUTE_MS },
};
