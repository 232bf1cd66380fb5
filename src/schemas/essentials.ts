import * as z from 'zod/mini';
import type { Fields } from './envelope.js';

/** One schema for one field, and no object schema: that alone would weigh 1.7 kB in every bundle. */
const text = z.string();

/** The first of the fields `names` that is not a text with something in it; undefined when all of them are. */
export function missingText(record: Fields, names: readonly string[]): string | undefined {
  return names.find((name) => !text.safeParse(record[name]).success || record[name] === '');
}
