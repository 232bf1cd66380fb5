import { Hono } from 'hono';
import { Refusal } from '../../service/refusal.js';
import {
  completeUpload,
  directUrlExpiry,
  findUpload,
  makeUpload,
  receiveBytes,
  requiredHeaders,
  viewUpload,
} from '../../service/uploads.js';
import type { World } from '../../world/world.js';
import { admit, fieldsIn, once, succeed } from '../caller.js';
import { signLink } from '../storage-links.js';

/** POST and PUT /v1/uploads, POST /v1/uploads/complete, DELETE /v1/uploads/{upload_id}. */
export function uploadRoutes(world: World): Hono {
  return new Hono()
    .post('/v1/uploads', async (context) => {
      const caller = admit(world, context, { scope: 'uploads:create', lane: 'uploads.create' });
      const { id, isReplay } = once(world, context, {
        caller,
        kind: 'upload',
        make: (fields) => makeUpload(world, caller.account.id, fields).id,
      });
      const upload = findUpload(world, caller.account.id, id);
      const expiresAt = directUrlExpiry(upload);
      const data = {
        ...viewUpload(upload),
        direct_upload_url: await signLink(world, caller.baseUrl, { area: 'uploads', id, expiresAt }),
        method: 'PUT',
        headers: requiredHeaders(upload),
        expires_at: new Date(expiresAt).toISOString(),
      };
      return succeed(data, isReplay ? { 'idempotency-replayed': 'true' } : {});
    })
    .put('/v1/uploads', async (context) => {
      const { account } = admit(world, context, { scope: 'uploads:create', lane: 'uploads.put' });
      const upload = findUpload(world, account.id, context.req.query('upload_id'));
      await receiveBytes(upload, context.req.raw.body);
      return succeed({ upload_id: upload.id, received_bytes: upload.receivedBytes });
    })
    .post('/v1/uploads/complete', (context) => {
      const { account } = admit(world, context, { scope: 'uploads:create' });
      const fields = fieldsIn(context);
      const upload = findUpload(world, account.id, fields.text('upload_id'));
      completeUpload(world, upload);
      return succeed(viewUpload(upload));
    })
    .delete('/v1/uploads/:id', (context) => {
      const { account } = admit(world, context, { scope: 'uploads:delete', lane: 'uploads.delete' });
      const { id } = findUpload(world, account.id, context.req.param('id'));
      if (world.state.uploadUses.has(id)) {
        throw new Refusal(
          'upload_in_use',
          `${id} is used by a queued or processing job; delete it after the job ends.`,
        );
      }
      world.state.uploads.delete(id);
      return succeed({ upload_id: id, deleted: true });
    });
}
