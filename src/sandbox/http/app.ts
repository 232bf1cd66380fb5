import { Hono } from 'hono';
import { Refusal } from '../service/refusal.js';
import type { World } from '../world/world.js';
import { answerTo } from './answers.js';
import { envOf } from './caller.js';
import { catalogRoutes } from './routes/catalog.js';
import { characterRoutes } from './routes/characters.js';
import { createRoutes } from './routes/creates.js';
import { jobRoutes } from './routes/jobs.js';
import { storageRoutes } from './routes/storage.js';
import { uploadRoutes } from './routes/uploads.js';

/** The documented service as one function from Request to Response, below the path prefix of the base URL. */
export function createApp(world: World): Hono {
  const api = new Hono();
  for (const routes of [createRoutes, characterRoutes, jobRoutes, uploadRoutes, catalogRoutes, storageRoutes]) {
    api.route('/', routes(world));
  }
  const app = new Hono();
  app.route(new URL(world.settings.baseUrl).pathname, api);
  app.notFound(({ req }) => {
    const advice = req.path.includes('/v1/v1/') ? ' Leave /v1 off the base URL.' : '';
    throw new Refusal('not_found', `There is no ${req.method} ${req.path}.${advice}`);
  });
  app.onError((error, context) => {
    const { response, code } = answerTo(error, world.settings.shapes);
    envOf(context).code = code;
    return response;
  });
  return app;
}
