import * as z from 'zod/mini';
import * as option from '../options.js';

/** The options of `redisBudget`. */
export const REDIS_BUDGET_OPTIONS = z.strictObject({ prefix: option.text });
