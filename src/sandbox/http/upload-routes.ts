import { type Context, Hono } from 'hono';
import { signatureOf } from '../../webhooks/signature.js';
import { authenticate } from '../service/accounts.js';
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
import { servedFile, serveFile, succeed } from './answers.js';
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
        direct_upload_url: await signLink(world, caller.baseUrl, { area: 'uploads', id: upload.id, expiresAt }),
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
      for (const [name, value] of Object.entries(requiredHeaders(upload))) {
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
export function corsHeaders({ method, headers }: Request): Record<string, string> {
  const shared = {
    'access-control-allow-origin': '*',
    'access-control-expose-headers': 'etag, content-length, content-range, accept-ranges, retry-after',
  };
  if (method !== 'OPTIONS') return shared;
  return {
    ...shared,
    'access-control-allow-methods': 'GET, HEAD, PUT',
    'access-control-allow-headers': headers.get('access-control-request-headers') ?? '*',
    'access-control-allow-private-network': 'true',
    'access-control-max-age': '600',
    vary: 'access-control-request-headers',
  };
}

/** A link that works without a key until it expires, as object storage gives them out. */
interface StorageLink {
  readonly area: 'uploads' | 'outputs';
  readonly id: string;
  readonly expiresAt: number;
}

/** Signs a link to the storage: on the API's own origin, or on another one where the options say so. */
export async function signLink(world: World, baseUrl: string, link: StorageLink): Promise<string> {
  const root = world.settings.storage.isOtherOrigin ? storageUrlOf(baseUrl) : baseUrl;
  const signature = await sign(world, link);
  return `${root}/storage/${link.area}/${link.id}?expires=${link.expiresAt}&signature=${signature}`;
}

/** Checks the link by which a request came. Throws `storage_denied` or `storage_url_expired`. */
async function enter(world: World, { req }: Context, target: Omit<StorageLink, 'expiresAt'>): Promise<void> {
  const expiresAt = Number(req.query('expires'));
  if (req.query('signature') !== (await sign(world, { ...target, expiresAt }))) {
    throw new Refusal('storage_denied', 'The signature of this storage link does not match.');
  }
  if (world.timeline.now() >= expiresAt) throw new Refusal('storage_url_expired', 'This storage link has expired.');
  // Object storage takes a bearer key for a second way to sign in, and refuses it.
  const { isOtherOrigin, requiresKey } = world.settings.storage;
  if (isOtherOrigin && !requiresKey && req.header('authorization') !== undefined) {
    const message = 'A signed link takes no Authorization header. Send the API key to the API only.';
    throw new Refusal('storage_denied', message);
  }
}

/**
 * The same sandbox under another origin, as object storage has one: `localhost` for a server on 127.0.0.1 and the other way
 * round, else a host that begins with `storage.`.
 */
function storageUrlOf(baseUrl: string): string {
  const url = new URL(baseUrl);
  if (url.hostname === '127.0.0.1') url.hostname = 'localhost';
  else if (url.hostname === 'localhost') url.hostname = '127.0.0.1';
  else url.hostname = `storage.${url.hostname}`;
  return url.href.replace(/\/$/, '');
}

async function sign({ storageSecret }: World, { area, id, expiresAt }: StorageLink): Promise<string> {
  return (await signatureOf(storageSecret, String(expiresAt), `${area}/${id}`)).slice(0, 40);
}
