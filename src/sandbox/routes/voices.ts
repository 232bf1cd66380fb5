import { Hono } from 'hono';
import { admit, succeed } from '../caller.js';
import { LISTS, VOICES } from '../choices.js';
import type { World } from '../world.js';

/** GET /v1/voices. */
export function voiceRoutes(world: World): Hono {
  return new Hono().get('/v1/voices', (context) => {
    admit(world, context, { scope: 'voices:read' });
    return succeed({ [LISTS.voices]: VOICES });
  });
}
