import { perField, perModel, perUpload } from './per-row.js';
import type { Snippet } from './snippet.js';
import { WRITTEN } from './written.js';

/** All snippets. */
export const SNIPPETS: readonly Snippet[] = [...WRITTEN, ...perModel(), ...perField(), ...perUpload()];
