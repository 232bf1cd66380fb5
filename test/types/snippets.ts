import { COMPILES } from './compiles.js';
import { perField, perModel, perUpload } from './per-row.js';
import { REFUSED } from './refused.js';
import type { Snippet } from './snippet.js';
import { WRAPPERS } from './wrappers.js';

/** Everything that the compiler is asked. */
export const SNIPPETS: readonly Snippet[] = [
  ...COMPILES,
  ...REFUSED,
  ...WRAPPERS,
  ...perModel(),
  ...perField(),
  ...perUpload(),
];
