import { $ZodString, safeParse } from 'zod/v4/core';
import type { Fields } from './envelope.js';

/**
 * One schema for one field, and no object schema: that alone would weigh 1.7 kB in every bundle. Built on the core that
 * `zod/mini` is made of, which spares its methods.
 */
const text = new $ZodString({ type: 'string' });

/** The first of the fields `names` that is not a text with something in it; undefined when all of them are. */
export function missingText(record: Fields, names: readonly string[]): string | undefined {
  return names.find((name) => !safeParse(text, record[name]).success || record[name] === '');
}
