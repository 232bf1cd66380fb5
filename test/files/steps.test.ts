// The three steps of an upload as calls of their own: in which forms the service may answer them.
import { describe, expect, it } from 'vitest';
import { BASE_URL, json, rejection, stubbed } from '../transport/support.js';

const FOX = { file_name: 'fox.png', mime_type: 'image/png', file_size: 3, upload_type: 'IMAGE' } as const;
const answering = (body: unknown, init?: ResponseInit) => stubbed(() => json(JSON.stringify(body), init));

describe('step 1, uploads.create', () => {
  const url = 'https://storage.test/put/upl_1';
  const headers = { 'content-type': 'image/png' };
  const record = { upload_id: 'upl_1', direct_upload_url: url, headers };

  it.each<[string, object]>([
    ['data', { success: true, data: record }],
    ['data.upload', { success: true, data: { upload: record } }],
    ['its name alone', { upload: record }],
    ['nothing around it', record],
    [
      'data.upload beside the URL and headers',
      { data: { upload: { upload_id: 'upl_1' }, direct_upload_url: url, headers } },
    ],
  ])('is read from %s', async (_, body) => {
    expect(await answering(body).client.uploads.create(FOX)).toMatchObject(record);
  });

  it.each(['headers', 'upload_headers', 'direct_upload_headers', 'required_headers'])(
    'has the headers to send from the field %s, also where they are listed',
    async (field) => {
      const { headers: _, ...bare } = record;
      for (const given of [headers, [['content-type', 'image/png']], [{ name: 'content-type', value: 'image/png' }]]) {
        const { client } = answering({ data: { ...bare, [field]: given } });
        expect(await client.uploads.create(FOX)).toMatchObject(record);
      }
    },
  );

  it.each([undefined, null, 'none'])('has no headers to send where the service says %j', async (given) => {
    const { client } = answering({ data: { ...record, headers: given, upload_headers: null } });
    expect(await client.uploads.create(FOX)).toEqual({ ...record, headers: {}, upload_headers: null });
  });

  it.each<[string, unknown]>([
    ['data.upload_id', { data: { ...record, upload_id: '' } }],
    ['data.upload_id', { data: 'upl_1' }],
    ['data.direct_upload_url', { data: { upload: { upload_id: 'upl_1' } } }],
  ])('without a usable %s is a ResponseError', async (path, body) => {
    const error = await rejection(answering(body).client.uploads.create(FOX, { idempotencyKey: 'order-1' }));
    expect(error).toMatchObject({
      name: 'ResponseError',
      message: `POST ${BASE_URL}/v1/uploads: the response has no usable "${path}"`,
      idempotencyKey: 'order-1',
      path,
    });
  });

  it('that is answered with nothing is a failure, because the upload may be there', async () => {
    const { client } = stubbed(() => new Response(null, { status: 200 }), { maxRetries: 0 });
    expect(await rejection(client.uploads.create(FOX))).toMatchObject({
      name: 'ResponseError',
      message: `POST ${BASE_URL}/v1/uploads: the service answered 200 with an empty body`,
    });
  });
});

describe('step 3, uploads.complete', () => {
  it.each<[object | null, object]>([
    [
      { success: true, data: { upload_id: 'upl_9', status: 'ready' } },
      { upload_id: 'upl_9', status: 'ready' },
    ],
    [{ data: { upload: { upload_id: 'upl_9', file_size: 3 } } }, { upload_id: 'upl_9', file_size: 3 }],
    [{ data: { status: 'ready' } }, { upload_id: 'upl_1', status: 'ready' }],
    [{ data: { upload_id: '' } }, { upload_id: 'upl_1' }],
    [{ data: { upload_id: 7 } }, { upload_id: 'upl_1' }],
    [{ data: 'done' }, { upload_id: 'upl_1' }],
    [null, { upload_id: 'upl_1' }],
  ])('answered with %j gives %j', async (body, upload) => {
    const { client, seen } = answering(body);
    expect(await client.uploads.complete('upl_1')).toEqual(upload);
    expect(seen.map(({ method, url, body }) => [method, url, body])).toEqual([
      ['POST', `${BASE_URL}/v1/uploads/complete`, '{"upload_id":"upl_1"}'],
    ]);
  });
});

describe('a deletion, uploads.delete', () => {
  it.each<[unknown, object]>([
    [{ success: true, data: { deleted: true } }, { deleted: true }],
    [{ data: 'deleted' }, { data: 'deleted' }],
    [null, {}],
  ])('answered with %j gives %j', async (body, result) => {
    expect(await answering(body).client.uploads.delete('upl_1')).toEqual(result);
  });
});

it.each([undefined, null, 'upl_1', ['upl_1']])(
  'uploads.put refuses %j in place of what step 1 gave',
  async (upload) => {
    const { client, seen } = answering({});
    const error = await rejection(client.uploads.put(upload as never, new Blob(['x'])));
    expect(error).toMatchObject({
      name: 'GenError',
      message: expect.stringMatching(/^upload must be what uploads.create gave, not /),
    });
    expect(seen).toEqual([]);
  },
);

it.each<[string, (client: ReturnType<typeof stubbed>['client']) => Promise<unknown>]>([
  [
    'uploads.upload',
    ({ uploads }) => uploads.upload(new Blob(['x'], { type: 'image/png' }), { onprogress() {} } as never),
  ],
  [
    'uploads.put',
    ({ uploads }) =>
      uploads.put({ direct_upload_url: 'https://a.test', headers: {} }, new Blob(['x']), { onprogress() {} } as never),
  ],
])('%s refuses a misspelt option by its own name, before it sends anything', async (name, call) => {
  const { client, seen } = answering({});
  expect(await rejection(call(client))).toMatchObject({
    message: expect.stringContaining(`${name} has no option "onprogress"`),
  });
  expect(seen).toEqual([]);
});
