import * as z from 'zod/mini';
import { LIMITS } from '../limits/limiter-options.js';
import * as option from '../options.js';

/** The options of `redisLimiter`. */
export const REDIS_LIMITER_OPTIONS = z.strictObject({
  limits: LIMITS,
  onUnavailable: option.oneOf('local', 'throw'),
  prefix: option.text,
  timeoutMs: option.milliseconds,
  onError: option.callback,
});

/** The options of `redisWake`. */
export const REDIS_WAKE_OPTIONS = z.strictObject({ prefix: option.text, onError: option.callback });
