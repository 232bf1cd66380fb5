import * as z from 'zod/mini';
import * as option from '../options.js';
import type { LaneLimit } from '../rules/limits.js';

const LIMIT = z.custom<number>(
  (value) => value === Number.POSITIVE_INFINITY || (typeof value === 'number' && Number.isInteger(value) && value >= 1),
  'a whole number of at least 1, or Infinity',
);
const WINDOW_MS = z.custom<number>(
  (value) => typeof value === 'number' && value > 0 && value < Number.POSITIVE_INFINITY,
  'a positive number of milliseconds',
);

/** Limits by lane, as an option. */
export const LIMITS = z.optional(
  z.record(
    z.string(),
    z.strictObject({ limit: LIMIT, windowMs: WINDOW_MS }, 'an object { limit, windowMs }'),
    'an object',
  ),
);

const LIMITER_OPTIONS = z.strictObject({ limits: LIMITS });

/** Checks the options of the in-process limiter. Throws a GenError that names the lane. */
export function checkLimiterOptions(options: {
  readonly limits?: Readonly<Record<string, LaneLimit>> | undefined;
}): void {
  option.checkOptions('InProcessLimiter', LIMITER_OPTIONS, options);
}
