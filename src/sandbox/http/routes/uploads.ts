import { Hono } from 'hono';
import {
  completeUpload,
  createUpload,
  deleteUpload,
  directUrlExpiry,
  findUpload,
  receiveBytes,
  requiredHeaders,
  viewUpload,
} from '../../service/uploads.js';
import type { Shapes } from '../../world/shapes.js';
import type { StoredUpload } from '../../world/store.js';
import type { World } from '../../world/world.js';
import { acknowledge, succeed, succeedBare } from '../answers.js';
import { admit, createOnce, fieldsIn, replayed, signLink, uploadBody } from '../caller.js';

/** POST and PUT /v1/uploads, POST /v1/uploads/complete, DELETE /v1/uploads/{upload_id}. */
export function uploadRoutes(world: World): Hono {
  const { shapes } = world.settings;
  return new Hono()
    .post('/v1/uploads', async (context) => {
      const caller = admit(world, context, { scope: 'uploads:create', lane: 'uploads.create' });
      const { id, isReplay } = createOnce(world, context, {
        caller,
        kind: 'upload',
        create: (fields) => createUpload(world, caller.account.id, fields).id,
      });
      const upload = findUpload(world, caller.account.id, id);
      const expiresAt = directUrlExpiry(upload);
      const record = {
        ...viewUpload(upload),
        direct_upload_url: await signLink(world, caller.baseUrl, { area: 'uploads', id, expiresAt }),
        method: 'PUT',
        headers: headersFor(upload, shapes),
        expires_at: new Date(expiresAt).toISOString(),
      };
      return uploadAnswer(record, shapes, replayed(isReplay));
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
      return shapes.empty === 'none' ? acknowledge({}, shapes) : uploadAnswer(viewUpload(upload), shapes);
    })
    .delete('/v1/uploads/:id', (context) => {
      const { account } = admit(world, context, { scope: 'uploads:delete', lane: 'uploads.delete' });
      const upload = findUpload(world, account.id, context.req.param('id'));
      deleteUpload(world, upload);
      return acknowledge({ upload_id: upload.id, deleted: true }, shapes);
    });
}

function uploadAnswer(
  record: Record<string, unknown>,
  { upload }: Shapes,
  headers: Record<string, string> = {},
): Response {
  if (upload === 'bare') return succeedBare(record, headers);
  return succeed(upload === 'nested' ? { upload: record } : record, headers);
}

/** The headers for the PUT, in one of the forms in which services hand them out. */
function headersFor(upload: StoredUpload, { uploadHeaders }: Shapes): unknown {
  const entries = Object.entries(requiredHeaders(upload));
  if (uploadHeaders === 'pairs') return entries;
  if (uploadHeaders === 'records') return entries.map(([name, value]) => ({ name, value }));
  if (uploadHeaders === 'lower-case')
    return Object.fromEntries(entries.map(([name, value]) => [name.toLowerCase(), value]));
  const length: [string, string][] = uploadHeaders === 'with-length' ? [['Content-Length', `${upload.fileSize}`]] : [];
  return Object.fromEntries([...entries, ...length]);
}
