// An upload's three steps as separate calls, with each accepted response format.
import { expect, it } from 'vitest';
import { BASE_URL, json, rejection, stubbed } from '../transport/support.js';

const PARAMS = { file_name: 'fox.png', mime_type: 'image/png', file_size: 3, upload_type: 'IMAGE' } as const;
const respondWith = (body: unknown, init?: ResponseInit) => stubbed(() => json(JSON.stringify(body), init));
const url = 'https://storage.test/put/upl_1';
const headers = { 'content-type': 'image/png' };
const withoutHeaders = { upload_id: 'upl_1', direct_upload_url: url };
const record = { ...withoutHeaders, headers };

it.each<[string, object]>([
  ['data', { success: true, data: record }],
  ['data.upload', { success: true, data: { upload: record } }],
  ['upload', { upload: record }],
  ['the top level', record],
  [
    'data.upload, with URL and headers in data',
    { data: { upload: { upload_id: 'upl_1' }, direct_upload_url: url, headers } },
  ],
  ...['upload_headers', 'direct_upload_headers', 'required_headers'].map((field): [string, object] => [
    `data with ${field}`,
    { data: { ...withoutHeaders, [field]: headers } },
  ]),
  ['data with headers as pairs', { data: { ...withoutHeaders, headers: [['content-type', 'image/png']] } }],
  [
    'data with headers as objects',
    { data: { ...withoutHeaders, headers: [{ name: 'content-type', value: 'image/png' }] } },
  ],
])('step 1 accepts a response with the upload in %s', async (_, body) => {
  expect(await respondWith(body).client.uploads.create(PARAMS)).toMatchObject(record);
});

it.each<[string, unknown]>([
  ['data.upload_id', { data: { ...record, upload_id: '' } }],
  ['data.direct_upload_url', { data: { upload: { upload_id: 'upl_1' } } }],
])('step 1 without a valid %s rejects with a ResponseError that contains the idempotency key', async (path, body) => {
  const error = await rejection(respondWith(body).client.uploads.create(PARAMS, { idempotencyKey: 'order-1' }));
  expect(error).toMatchObject({ name: 'ResponseError', idempotencyKey: 'order-1', path });
});

it.each<[object | null, object]>([
  [{ data: { upload: { upload_id: 'upl_9', file_size: 3 } } }, { upload_id: 'upl_9', file_size: 3 }],
  [{ data: { status: 'ready' } }, { upload_id: 'upl_1', status: 'ready' }],
  [{ data: { upload_id: 7 } }, { upload_id: 'upl_1' }],
  [null, { upload_id: 'upl_1' }],
])('step 3 converts the response %j to %j', async (body, upload) => {
  const { client, requests } = respondWith(body);
  expect(await client.uploads.complete('upl_1')).toEqual(upload);
  expect(requests).toMatchObject([{ url: `${BASE_URL}/v1/uploads/complete`, body: '{"upload_id":"upl_1"}' }]);
});

it('an invalid upload or a misspelled option rejects before anything is sent', async () => {
  const { client, requests } = respondWith({});
  const file = new Blob(['x'], { type: 'image/png' });
  await expect(client.uploads.put('upl_1' as never, file)).rejects.toThrow(
    'upload must be what uploads.create returned',
  );
  for (const call of [
    client.uploads.upload(file, { onprogress() {} } as never),
    client.uploads.put(record, file, { onprogress() {} } as never),
  ])
    await expect(call).rejects.toThrow('has no option "onprogress"');
  expect(requests).toEqual([]);
});

it('an invalid returned header rejects with an UploadError, and the upload is deleted', async () => {
  const { client, requests } = respondWith({ data: { ...withoutHeaders, headers: { 'x-meta-name': 'лиса' } } });
  expect(await rejection(client.uploads.upload(new Blob(['x'], { type: 'image/png' })))).toMatchObject({
    name: 'UploadError',
    step: 'put',
    message: expect.stringContaining('"x-meta-name"'),
  });
  expect(requests.map(({ method }) => method)).toEqual(['POST', 'DELETE']);
});
