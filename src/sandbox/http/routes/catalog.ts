import { Hono } from 'hono';
import { DEFAULT_VIDEO_MODEL, MODELS } from '../../../catalog.js';
import { JOB_ERRORS, REQUEST_ERRORS } from '../../../errors/codes.js';
import type { ModelRow } from '../../service/order.js';
import { DEFAULTS, MAX_PROMPT_CHARS, VIDEO_RATIOS, VOICES } from '../../world/choices.js';
import type { World } from '../../world/world.js';
import { succeed, succeedList } from '../answers.js';
import { admit } from '../caller.js';

/**
 * GET /v1/models, GET /v1/voices and the integration data. The document names what they tell and does not show how: the fields
 * of their records are the sandbox's choice.
 */
export function catalogRoutes(world: World): Hono {
  const { shapes } = world.settings;
  return new Hono()
    .get('/v1/models', () => succeedList({ name: 'models', key: 'id', records: listModels() }, shapes))
    .get('/v1/voices', (context) => {
      admit(world, context, { scope: 'voices:read' });
      const records = VOICES.map((voice) => ({ ...voice }));
      return succeedList({ name: 'voices', key: 'voice_id', records }, shapes);
    })
    .get('/api/service/developers/docs.json', (context) => {
      const { baseUrl } = admit(world, context, {});
      const requestErrors = Object.entries(REQUEST_ERRORS).map(([code, [status]]) => ({ code, status }));
      const jobErrors = Object.keys(JOB_ERRORS).map((code) => ({ code }));
      return succeed({ baseUrl, version: 'v1', models: listModels(), requestErrors, jobErrors });
    });
}

/** Every alias with its limits. */
function listModels(): Record<string, unknown>[] {
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
