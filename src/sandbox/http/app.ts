import { Hono } from 'hono';
import { answerTo, Refusal } from '../service/refusal.js';
import type { World } from '../world/world.js';
import { characterRoutes } from './routes/characters.js';
import { docsRoutes } from './routes/docs.js';
import { imageRoutes } from './routes/images.js';
import { jobRoutes } from './routes/jobs.js';
import { modelRoutes } from './routes/models.js';
import { speechRoutes } from './routes/speech.js';
import { storageRoutes } from './routes/storage.js';
import { uploadRoutes } from './routes/uploads.js';
import { videoEditRoutes } from './routes/video-edits.js';
import { videoRoutes } from './routes/videos.js';
import { voiceRoutes } from './routes/voices.js';

/** The documented service as one function from Request to Response, under the base URL's path prefix. */
export function createApp(world: World): Hono {
  const api = new Hono();
  const routes = [imageRoutes, videoRoutes, videoEditRoutes, characterRoutes, jobRoutes, uploadRoutes];
  for (const route of [...routes, modelRoutes, voiceRoutes, speechRoutes, docsRoutes, storageRoutes]) {
    api.route('/', route(world));
  }
  const app = new Hono();
  app.route(new URL(world.settings.baseUrl).pathname, api);
  app.notFound(({ req }) => answerTo(new Refusal('not_found', `There is no ${req.method} ${req.path}.`)));
  app.onError(answerTo);
  return app;
}
