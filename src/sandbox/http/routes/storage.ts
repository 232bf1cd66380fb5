import { type Context, Hono } from 'hono';
import { authenticate } from '../../service/accounts.js';
import { Refusal } from '../../service/request.js';
import { findUpload, receiveBytes, requiredHeaders } from '../../service/uploads.js';
import { servedFile } from '../../service/view-job.js';
import type { World } from '../../world/world.js';
import { checkLink, uploadBody } from '../caller.js';
import { serveFile } from '../serve-file.js';

/** Where direct upload URLs, and outputs on another origin, lead: signed links that work without a key. */
export function storageRoutes(world: World): Hono {
  const app = new Hono();
  if (world.settings.storage.hasCors) app.options('/storage/*', () => new Response(null, { status: 204 }));
  return app
    .put('/storage/uploads/:id', async (context) => {
      const id = context.req.param('id');
      await enter(world, context, { area: 'uploads', id });
      const upload = world.state.uploads.get(id);
      if (upload === undefined) throw new Refusal('storage_denied', 'This upload was deleted.');
      if (world.settings.storage.requiresKey) checkKeyOf(world, context, upload.account);
      for (const [name, value] of Object.entries(requiredHeaders(findUpload(world, upload.account, id)))) {
        if (context.req.header(name) === value) continue;
        throw new Refusal('storage_denied', `The header ${name} must be exactly "${value}".`);
      }
      await receiveBytes(upload, uploadBody(context));
      return new Response(null, { status: 200, headers: { etag: `"${id}"` } });
    })
    .get('/storage/outputs/:id', async (context) => {
      const id = context.req.param('id');
      await enter(world, context, { area: 'outputs', id });
      const job = world.state.jobs.get(id);
      if (job === undefined) throw new Refusal('storage_denied', 'This file was deleted.');
      return serveFile(context.req.raw, servedFile(world, job));
    });
}

function checkKeyOf(world: World, context: Context, account: string): void {
  const caller = authenticate(world, context.req.header('authorization'), 'uploads:create');
  if (caller.id !== account) throw new Refusal('storage_denied', 'The API key is of another workspace.');
}

/**
 * The headers with which storage lets the pages of any origin in, as a bucket for browser uploads does. The links themselves
 * are the permission.
 */
export function corsHeaders({ method, headers }: Request): [name: string, value: string][] {
  const shared: [string, string][] = [
    ['access-control-allow-origin', '*'],
    ['access-control-expose-headers', 'etag, content-length, content-range, accept-ranges, retry-after'],
  ];
  if (method !== 'OPTIONS') return shared;
  const asked = headers.get('access-control-request-headers') ?? '*';
  return [
    ...shared,
    ['access-control-allow-methods', 'GET, HEAD, PUT'],
    ['access-control-allow-headers', asked],
    ['access-control-allow-private-network', 'true'],
    ['access-control-max-age', '600'],
    ['vary', 'access-control-request-headers'],
  ];
}

async function enter(
  world: World,
  context: Context,
  target: { area: 'uploads' | 'outputs'; id: string },
): Promise<void> {
  await checkLink(world, context.req.url, target);
  // Object storage takes a bearer key for a second way to sign in, and refuses it.
  const { isOtherOrigin, requiresKey } = world.settings.storage;
  if (isOtherOrigin && !requiresKey && context.req.header('authorization') !== undefined) {
    throw new Refusal(
      'storage_denied',
      'A signed link takes no Authorization header. Send the API key to the API only.',
    );
  }
}
