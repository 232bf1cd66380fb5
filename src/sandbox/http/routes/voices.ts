import { Hono } from 'hono';
import { LISTS, VOICES } from '../../world/choices.js';
import type { World } from '../../world/world.js';
import { admit, succeed } from '../caller.js';

/** GET /v1/voices. */
export function voiceRoutes(world: World): Hono {
  return new Hono().get('/v1/voices', (context) => {
    admit(world, context, { scope: 'voices:read' });
    return succeed({ [LISTS.voices]: VOICES });
  });
}
