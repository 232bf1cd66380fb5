import * as z from 'zod/mini';
import * as option from '../options.js';
import type { Budget } from '../schemas/budget.js';

/** The options of a request, as fields for the schemas of calls that take more. */
const REQUEST_FIELDS = {
  signal: option.abortSignal,
  timeoutMs: option.milliseconds,
  maxRetries: option.count,
  // Checked where the key is made: the body may hold it as well.
  idempotencyKey: option.anything,
  headers: option.anObject,
  preflight: option.preflight,
  budget: option.methods<Budget>('reserve', 'refund'),
} as const;

/** The options that every call takes. */
export const REQUEST_OPTIONS = z.strictObject(REQUEST_FIELDS);
