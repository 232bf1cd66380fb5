import { Hono } from 'hono';
import { readImageOrder } from '../../service/image-order.js';
import type { World } from '../../world/world.js';
import { createJob } from '../caller.js';

/** POST /v1/images. */
export function imageRoutes(world: World): Hono {
  return new Hono().post('/v1/images', (context) =>
    createJob(world, context, { door: { scope: 'images:create' }, read: readImageOrder }),
  );
}
