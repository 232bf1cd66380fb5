import { expect, test } from 'vitest';
import { setUp } from './plain-client.js';

const params = { file_name: 'a.mp4', mime_type: 'video/mp4', file_size: 10, upload_type: 'VIDEO' };
const origin = 'https://app.example.com';

test('storage responds to a preflight, so pages on other origins can upload', async () => {
  const client = setUp();
  const { data } = (await client.call('POST', '/v1/uploads', params)).body;
  const requestedHeaders = 'content-type,x-storage-upload-id';
  const preflight = await client.sandbox.fetch(data.direct_upload_url, {
    method: 'OPTIONS',
    headers: {
      origin,
      'access-control-request-method': 'PUT',
      'access-control-request-headers': requestedHeaders,
      'access-control-request-private-network': 'true',
    },
  });
  expect([preflight.status, await preflight.text()]).toEqual([204, '']);
  expect(preflight.headers.get('access-control-allow-origin')).toBe('*');
  expect(preflight.headers.get('access-control-allow-methods')).toContain('PUT');
  expect(preflight.headers.get('access-control-allow-headers')).toBe(requestedHeaders);
  expect(preflight.headers.get('access-control-allow-private-network')).toBe('true');
});

test('responses to a PUT, including errors and faults, have CORS headers', async () => {
  const client = setUp({ storage: 'other-origin' });
  const { data } = (await client.call('POST', '/v1/uploads', params)).body;
  const put = (headers: Record<string, string>) =>
    client.sandbox.fetch(data.direct_upload_url, {
      method: 'PUT',
      headers: { ...headers, origin },
      body: new Uint8Array(10),
    });
  for (const [headers, status] of [
    [data.headers, 200],
    [{}, 403],
  ] as const) {
    const response = await put(headers);
    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([status, '*']);
    expect(response.headers.get('access-control-expose-headers')).toContain('etag');
  }
  client.sandbox.faults.add({ match: { method: 'PUT' }, status: 503 });
  expect((await put(data.headers)).headers.get('access-control-allow-origin')).toBe('*');
});
