import { type Context, Hono } from 'hono';
import { signatureOf } from '../../webhooks/signature.js';
import { Refusal } from '../service/request.js';
import {
  completeUpload,
  createUpload,
  deleteUpload,
  directUrlExpiry,
  findUpload,
  receiveBytes,
  requiredHeaders,
  viewUpload,
} from '../service/uploads.js';
import type { World } from '../world/world.js';
import { succeed } from './answers.js';
import { admit, createOnce, fieldsIn, uploadBody } from './caller.js';

/** POST and PUT /v1/uploads, POST /v1/uploads/complete, DELETE /v1/uploads/{upload_id}. */
export function uploadRoutes(world: World): Hono {
  return new Hono()
    .post('/v1/uploads', async (context) => {
      const caller = admit(world, context, { scope: 'uploads:create', lane: 'uploads.create' });
      const { item: upload, headers } = createOnce(world, context, {
        caller,
        kind: 'upload',
        known: world.state.uploads,
        create: (fields) => createUpload(world, caller.account.id, fields),
      });
      const expiresAt = directUrlExpiry(upload);
      const record = {
        ...viewUpload(upload),
        direct_upload_url: await signedUrl(world, caller.baseUrl, { id: upload.id, expiresAt }),
        method: 'PUT',
        headers: requiredHeaders(upload),
        expires_at: new Date(expiresAt).toISOString(),
      };
      return succeed(record, headers);
    })
    .put('/v1/uploads', async (context) => {
      const { account } = admit(world, context, { scope: 'uploads:create', lane: 'uploads.put' });
      const upload = findUpload(world, account.id, context.req.query('upload_id'));
      await receiveBytes(upload, uploadBody(context));
      return succeed({ upload_id: upload.id, received_bytes: upload.receivedBytes });
    })
    .post('/v1/uploads/complete', (context) => {
      const { account } = admit(world, context, { scope: 'uploads:create' });
      const upload = findUpload(world, account.id, fieldsIn(context).text('upload_id'));
      completeUpload(world, upload);
      return succeed(viewUpload(upload));
    })
    .delete('/v1/uploads/:id', (context) => {
      const { account } = admit(world, context, { scope: 'uploads:delete', lane: 'uploads.delete' });
      const upload = findUpload(world, account.id, context.req.param('id'));
      deleteUpload(world, upload);
      return succeed({ upload_id: upload.id, deleted: true });
    });
}

/** Where direct upload URLs lead: signed links that work without a key. */
export function storageRoutes(world: World): Hono {
  const app = new Hono();
  if (world.settings.storage.hasCors) app.options('/storage/*', () => new Response(null, { status: 204 }));
  return app.put('/storage/uploads/:id', async (context) => {
    const id = context.req.param('id');
    await checkLink(world, context, id);
    const upload = world.state.uploads.get(id);
    if (upload === undefined) throw new Refusal('storage_denied', 'This upload was deleted.');
    for (const [name, value] of Object.entries(requiredHeaders(upload))) {
      if (context.req.header(name) === value) continue;
      throw new Refusal('storage_denied', `The header ${name} must be exactly "${value}".`);
    }
    await receiveBytes(upload, uploadBody(context));
    return new Response(null, { status: 200, headers: { etag: `"${id}"` } });
  });
}

/**
 * The headers with which storage lets the pages of any origin in, as a bucket for browser uploads does. The links themselves
 * are the permission.
 */
export function corsHeaders({ method, headers }: Request): Record<string, string> {
  const shared = {
    'access-control-allow-origin': '*',
    'access-control-expose-headers': 'etag, retry-after',
  };
  if (method !== 'OPTIONS') return shared;
  return {
    ...shared,
    'access-control-allow-methods': 'PUT',
    'access-control-allow-headers': headers.get('access-control-request-headers') ?? '*',
    'access-control-allow-private-network': 'true',
    'access-control-max-age': '600',
    vary: 'access-control-request-headers',
  };
}

/** The URL of step 2: on the API's own origin, or on another one where the options say so. */
async function signedUrl(world: World, baseUrl: string, { id, expiresAt }: { id: string; expiresAt: number }) {
  const root = world.settings.storage.isOtherOrigin ? storageUrlOf(baseUrl) : baseUrl;
  return `${root}/storage/uploads/${id}?expires=${expiresAt}&signature=${await sign(world, id, expiresAt)}`;
}

/** Checks the link by which a request came. Throws `storage_denied` or `storage_url_expired`. */
async function checkLink(world: World, { req }: Context, id: string): Promise<void> {
  const expiresAt = Number(req.query('expires'));
  if (req.query('signature') !== (await sign(world, id, expiresAt))) {
    throw new Refusal('storage_denied', 'The signature of this storage link does not match.');
  }
  if (world.timeline.now() >= expiresAt) throw new Refusal('storage_url_expired', 'This storage link has expired.');
  // Object storage takes a bearer key for a second way to sign in, and refuses it.
  if (world.settings.storage.isOtherOrigin && req.header('authorization') !== undefined) {
    const message = 'A signed link takes no Authorization header. Send the API key to the API only.';
    throw new Refusal('storage_denied', message);
  }
}

/** Another origin, as object storage has one: `localhost` for 127.0.0.1 and the other way round, else `storage.<host>`. */
function storageUrlOf(baseUrl: string): string {
  const url = new URL(baseUrl);
  const twins: Readonly<Record<string, string>> = { '127.0.0.1': 'localhost', localhost: '127.0.0.1' };
  url.hostname = twins[url.hostname] ?? `storage.${url.hostname}`;
  return url.href.replace(/\/$/, '');
}

async function sign({ storageSecret }: World, id: string, expiresAt: number): Promise<string> {
  return (await signatureOf(storageSecret, String(expiresAt), id)).slice(0, 40);
}
