import { Hono } from 'hono';
import { readVideoOrder } from '../../service/video-order.js';
import type { World } from '../../world/world.js';
import { createJob } from '../caller.js';

/** POST /v1/videos, edits by intent included. */
export function videoRoutes(world: World): Hono {
  const door = { scope: 'videos:create', lane: 'videos.create' } as const;
  return new Hono().post('/v1/videos', (context) => createJob(world, context, { door, read: readVideoOrder }));
}
