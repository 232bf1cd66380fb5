import { Hono } from 'hono';
import { createJob } from '../caller.js';
import { readImageOrder } from '../image-order.js';
import type { World } from '../world.js';

/** POST /v1/images. */
export function imageRoutes(world: World): Hono {
  return new Hono().post('/v1/images', (context) =>
    createJob(world, context, { door: { scope: 'images:create' }, read: readImageOrder }),
  );
}
