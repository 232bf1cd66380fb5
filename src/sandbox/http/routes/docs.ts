import { Hono } from 'hono';
import { JOB_ERRORS, REQUEST_ERRORS } from '../../../errors/codes.js';
import type { World } from '../../world/world.js';
import { admit, succeed } from '../caller.js';
import { listModels } from './models.js';

/** GET /api/service/developers/docs.json: machine-readable integration data, in a shape of the sandbox's choice. */
export function docsRoutes(world: World): Hono {
  return new Hono().get('/api/service/developers/docs.json', (context) => {
    const { baseUrl } = admit(world, context, {});
    const requestErrors = Object.entries(REQUEST_ERRORS).map(([code, [status]]) => ({ code, status }));
    const jobErrors = Object.keys(JOB_ERRORS).map((code) => ({ code }));
    return succeed({ baseUrl, version: 'v1', models: listModels(), requestErrors, jobErrors });
  });
}
