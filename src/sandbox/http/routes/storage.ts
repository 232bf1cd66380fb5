import { type Context, Hono } from 'hono';
import { Refusal } from '../../service/refusal.js';
import { findUpload, receiveBytes, requiredHeaders } from '../../service/uploads.js';
import type { World } from '../../world/world.js';
import { serveFile } from '../serve-file.js';
import { checkLink } from '../storage-links.js';

/** Where direct upload URLs, and outputs on another origin, lead: signed links that work without a key. */
export function storageRoutes(world: World): Hono {
  return new Hono()
    .put('/storage/uploads/:id', async (context) => {
      const id = context.req.param('id');
      await enter(world, context, { area: 'uploads', id });
      const upload = world.state.uploads.get(id);
      if (upload === undefined) throw new Refusal('storage_denied', 'This upload was deleted.');
      for (const [name, value] of Object.entries(requiredHeaders(findUpload(world, upload.account, id)))) {
        if (context.req.header(name) === value) continue;
        throw new Refusal('storage_denied', `The header ${name} must be exactly "${value}".`);
      }
      await receiveBytes(upload, context.req.raw.body);
      return new Response(null, { status: 200, headers: { etag: `"${id}"` } });
    })
    .get('/storage/outputs/:id', async (context) => {
      const id = context.req.param('id');
      await enter(world, context, { area: 'outputs', id });
      const job = world.state.jobs.get(id);
      if (job === undefined) throw new Refusal('storage_denied', 'This file is gone.');
      const file = { ...world.media.fileOf(job), modifiedAt: job.completedAt ?? job.createdAt };
      return serveFile(context.req.raw, file);
    });
}

async function enter(
  world: World,
  context: Context,
  target: { area: 'uploads' | 'outputs'; id: string },
): Promise<void> {
  await checkLink(world, context.req.url, target);
  // Storage on an origin of its own takes a bearer key for a second way to sign in, and refuses it.
  if (world.settings.isOtherOrigin && context.req.header('authorization') !== undefined) {
    throw new Refusal('storage_denied', 'A signed link takes no Authorization header; send the API key nowhere else.');
  }
}
