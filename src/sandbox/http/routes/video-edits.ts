import { Hono } from 'hono';
import { readEditOrder } from '../../service/video-order.js';
import type { World } from '../../world/world.js';
import { createJob } from '../caller.js';

/** POST /v1/video-edits. */
export function videoEditRoutes(world: World): Hono {
  return new Hono().post('/v1/video-edits', (context) =>
    createJob(world, context, { door: { scope: 'video_edits:create' }, read: (fields) => readEditOrder(fields) }),
  );
}
