import { perField, perModel, perUpload } from './per-row.js';
import type { Snippet } from './snippet.js';
import { WRITTEN } from './written.js';

/** Everything that the compiler is asked. */
export const SNIPPETS: readonly Snippet[] = [...WRITTEN, ...perModel(), ...perField(), ...perUpload()];
