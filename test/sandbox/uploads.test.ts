import { describe, expect, test } from 'vitest';
import { UPLOAD_BYTES } from '../../src/rules/limits.js';
import { type PlainClient, setUp } from './plain-client.js';

const MB = 1024 * 1024;
const params = { file_name: 'a.mp4', mime_type: 'video/mp4', file_size: 10, upload_type: 'VIDEO' };
const bytes = new Uint8Array(10);

async function createUpload(client: PlainClient, overrides: object = {}) {
  return (await client.call('POST', '/v1/uploads', { ...params, ...overrides })).body.data;
}

const put = (client: PlainClient, url: string, init: RequestInit) =>
  client.sandbox.fetch(url, { method: 'PUT', ...init });

describe('step 2', () => {
  test('the direct URL requires no key, but exactly the returned headers', async () => {
    const client = setUp();
    const { direct_upload_url: url, headers } = await createUpload(client);
    expect((await put(client, url, { headers, body: bytes })).status).toBe(200);
    for (const name of Object.keys(headers)) {
      const changed = { ...headers, [name]: 'other' };
      expect((await put(client, url, { headers: changed, body: bytes })).status).toBe(403);
    }
  });

  test('a modified or expired URL is rejected', async () => {
    const client = setUp();
    const { direct_upload_url: url, headers } = await createUpload(client);
    expect((await put(client, `${url}0`, { headers, body: bytes })).status).toBe(403);
    const extendedUrl = url.replace(/expires=(\d+)/, (_: string, at: string) => `expires=${Number(at) + 1}`);
    expect((await put(client, extendedUrl, { headers, body: bytes })).status).toBe(403);
    await client.sandbox.advance(15 * 60_000);
    const expired = await put(client, url, { headers, body: bytes });
    expect(await expired.json()).toMatchObject({ error: { code: 'storage_url_expired' } });
  });

  test('PUT /v1/uploads with the key is equivalent', async () => {
    const client = setUp();
    const { upload_id } = await createUpload(client);
    const url = `${client.sandbox.baseUrl}/v1/uploads?upload_id=${upload_id}`;
    const headers = { authorization: `Bearer ${client.sandbox.apiKey}` };
    expect((await put(client, url, { headers, body: bytes })).status).toBe(200);
    expect((await client.call('POST', '/v1/uploads/complete', { upload_id })).body.data).toMatchObject({ upload_id });
  });

  test("bytes over the type's limit are rejected", async () => {
    const client = setUp();
    const audio = { upload_type: 'AUDIO', mime_type: 'audio/mpeg' };
    const { direct_upload_url: url, headers } = await createUpload(client, audio);
    const response = await put(client, url, { headers, body: new Uint8Array(UPLOAD_BYTES.AUDIO + 1) });
    expect(response.status).toBe(413);
  });

  test('a completed upload accepts no more bytes', async () => {
    const client = setUp();
    const { upload_id, direct_upload_url: url, headers } = await createUpload(client);
    await put(client, url, { headers, body: bytes });
    const complete = () => client.call('POST', '/v1/uploads/complete', { upload_id });
    expect((await complete()).status).toBe(200);
    const endpoint = `${client.sandbox.baseUrl}/v1/uploads?upload_id=${upload_id}`;
    for (const [to, allowed] of [
      [url, headers],
      [endpoint, { authorization: `Bearer ${client.sandbox.apiKey}` }],
    ]) {
      const rejected = await put(client, to, { headers: allowed, body: new Uint8Array(9) });
      expect([rejected.status, (await rejected.json()).error.code]).toEqual([409, 'upload_completed']);
    }
    expect((await complete()).status).toBe(200);
  });

  test('storage on another origin rejects the key', async () => {
    const client = setUp({ storage: 'other-origin' });
    const { direct_upload_url: url, headers } = await createUpload(client);
    expect(new URL(url).origin).not.toBe(client.sandbox.baseUrl);
    const withKey = { ...headers, authorization: `Bearer ${client.sandbox.apiKey}` };
    expect((await put(client, url, { headers: withKey, body: bytes })).status).toBe(403);
    expect((await put(client, url, { headers, body: bytes })).status).toBe(200);
  });
});

describe('step 3', () => {
  test('is rejected for a wrong size, and can be retried', async () => {
    const client = setUp();
    const { upload_id, direct_upload_url: url, headers } = await createUpload(client);
    const complete = () => client.call('POST', '/v1/uploads/complete', { upload_id });
    expect((await complete()).body.error).toMatchObject({
      code: 'upload_invalid',
      message: expect.stringContaining('no bytes'),
    });
    await put(client, url, { headers, body: new Uint8Array(11) });
    expect((await complete()).body.error.message).toContain('has received 11 bytes, but file_size is 10.');
    await put(client, url, { headers, body: bytes });
    expect((await complete()).status).toBe(200);
    expect((await complete()).status).toBe(200);
  });
});

test('an upload can be deleted only after the last queued or processing job that uses it has ended', async () => {
  const client = setUp();
  const id = await client.upload('IMAGE');
  const image = { prompt: 'a fox', reference_upload_ids: [id] };
  expect((await client.create('/v1/images', image)).status).toBe('queued');
  expect(await client.code('DELETE', `/v1/uploads/${id}`)).toBe('upload_in_use');
  await client.create('/v1/videos', { prompt: '[slow:9s]', first_frame_upload_id: id });
  await client.sandbox.advance(3000);
  expect(client.sandbox.jobs.map(({ status }) => status)).toEqual(['completed', 'processing']);
  expect(await client.code('DELETE', `/v1/uploads/${id}`)).toBe('upload_in_use');
  await client.sandbox.advance(6000);
  expect((await client.call('DELETE', `/v1/uploads/${id}`)).status).toBe(200);
  expect(await client.code('DELETE', `/v1/uploads/${id}`)).toBe('upload_not_found');
  expect(await client.code('POST', '/v1/images', image)).toBe('reference_upload_not_found');
});

test('a large file is not stored in memory', async () => {
  const client = setUp();
  const size = 150 * MB;
  const { upload_id, direct_upload_url: url, headers } = await createUpload(client, { file_size: size });
  const chunk = new Uint8Array(MB);
  let left = 150;
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => (left-- > 0 ? controller.enqueue(chunk) : controller.close()),
  });
  const bytesBefore = process.memoryUsage().arrayBuffers;
  await put(client, url, { headers, body, duplex: 'half' } as RequestInit);
  expect((await client.call('POST', '/v1/uploads/complete', { upload_id })).status).toBe(200);
  expect(process.memoryUsage().arrayBuffers - bytesBefore).toBeLessThan(60 * MB);
});
