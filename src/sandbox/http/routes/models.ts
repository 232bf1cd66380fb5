import { Hono } from 'hono';
import { DEFAULT_VIDEO_MODEL, MODELS } from '../../../catalog.js';
import type { ModelRow } from '../../service/order.js';
import { DEFAULTS, LISTS, MAX_PROMPT_CHARS, VIDEO_RATIOS } from '../../world/choices.js';
import { succeed } from '../caller.js';

/** GET /v1/models, which needs no key. The spec names what it tells and not how: the shape is the sandbox's choice. */
export function modelRoutes(): Hono {
  return new Hono().get('/v1/models', () => succeed({ [LISTS.models]: listModels() }));
}

/** Every alias with its limits, as GET /v1/models lists it. */
export function listModels(): Record<string, unknown>[] {
  return Object.entries<ModelRow & { readonly sameAs?: string }>(MODELS).map(([alias, row]) => ({
    id: alias,
    name: alias,
    alias,
    aliases: row.sameAs === undefined ? [alias] : [alias, row.sameAs],
    mediaType: row.kind,
    isDefault: alias === DEFAULT_VIDEO_MODEL || alias === DEFAULTS.imageModel,
    supportsEdits: row.edits ?? false,
    maxPromptChars: MAX_PROMPT_CHARS[row.kind],
    ...(row.durations ? { durations: row.durations } : {}),
    aspectRatios: row.aspectRatios ?? VIDEO_RATIOS,
    resolutions: row.resolutions,
  }));
}
