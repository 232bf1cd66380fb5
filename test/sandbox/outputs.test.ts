import { beforeAll, describe, expect, test } from 'vitest';
import { type PlainClient, setUp } from './plain-client.js';

let client: PlainClient;
let url: string;
let bytes: Uint8Array;
let etag: string;

const get = (headers: Record<string, string> = {}, method = 'GET') =>
  client.sandbox.fetch(url, { method, headers: { authorization: `Bearer ${client.sandbox.apiKey}`, ...headers } });

beforeAll(async () => {
  client = setUp();
  const { id } = await client.create('/v1/images');
  await client.sandbox.advance(3000);
  url = (await client.job(id)).providerOutputUrl;
  const response = await get();
  bytes = new Uint8Array(await response.arrayBuffer());
  etag = response.headers.get('etag') ?? '';
});

describe('the file', () => {
  test('is complete, with a content type and an ETag', async () => {
    const response = await get();
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'image/png']);
    expect(response.headers.get('content-length')).toBe(String(bytes.length));
    expect([...bytes.subarray(1, 4)]).toEqual([0x50, 0x4e, 0x47]);
    expect(etag).toMatch(/^"[^"]+"$/);
  });

  test('has the same headers with HEAD', async () => {
    const { status, headers, body } = await get({}, 'HEAD');
    expect([status, headers.get('etag'), body]).toEqual([200, etag, null]);
    expect(headers.get('content-length')).toBe(String(bytes.length));
  });

  test.each([
    ['bytes=10-19', 10, 20],
    ['bytes=10-', 10, undefined],
    ['bytes=0-99999999', 0, undefined],
  ])('is sent in part for Range %s', async (range, from, to) => {
    const response = await get({ range });
    const part = new Uint8Array(await response.arrayBuffer());
    expect(response.status).toBe(206);
    expect(Buffer.from(part).equals(Buffer.from(bytes.slice(from, to)))).toBe(true);
    expect(response.headers.get('content-range')).toBe(`bytes ${from}-${from + part.length - 1}/${bytes.length}`);
    expect(response.headers.get('content-length')).toBe(String(part.length));
  });

  test('gets a 416 for a Range past the end', async () => {
    const response = await get({ range: 'bytes=99999999-' });
    expect([response.status, response.headers.get('content-range')]).toEqual([416, `bytes */${bytes.length}`]);
  });

  test.each(['bytes=5-2', 'bytes=0-1,4-5', 'lines=0-1'])('is sent in full for the invalid Range %s', async (range) => {
    expect((await get({ range })).status).toBe(200);
  });

  test("is sent in full if If-Range doesn't match", async () => {
    const range = 'bytes=10-19';
    expect((await get({ range, 'if-range': etag })).status).toBe(206);
    expect((await get({ range, 'if-range': '"other"' })).status).toBe(200);
  });
});

test('an output link requires the key, and expires after a day', async () => {
  const client = setUp();
  const { id } = await client.create('/v1/videos');
  expect(await client.code('GET', `/v1/jobs/${id}/output`)).toBe('output_not_ready');
  await client.sandbox.advance(3000);
  expect((await client.as('').call('GET', `/v1/jobs/${id}/output`)).status).toBe(401);
  await client.sandbox.advance(86_399_999);
  expect((await client.call('HEAD', `/v1/jobs/${id}/output`)).status).toBe(200);
  await client.sandbox.advance(1);
  const expired = await client.call('GET', `/v1/jobs/${id}/output`);
  expect([expired.status, expired.body.error.code]).toEqual([410, 'output_expired']);
  expect(Date.parse(expired.body.data.expired_at)).toBe(client.sandbox.now());
});

test("output links have the request's origin", async () => {
  const client = setUp();
  const { id } = await client.create('/v1/images');
  await client.sandbox.advance(3000);
  const { url: base, close } = await client.sandbox.listen();
  const headers = { authorization: `Bearer ${client.sandbox.apiKey}` };
  const { data } = await (await fetch(`${base}/v1/jobs/${id}`, { headers })).json();
  expect(data.job.providerOutputUrl).toBe(`${base}/v1/jobs/${id}/output`);
  const file = await fetch(data.job.providerOutputUrl, { headers });
  expect([file.status, file.headers.get('content-type')]).toEqual([200, 'image/png']);
  const head = await fetch(data.job.providerOutputUrl, { method: 'HEAD', headers });
  expect(head.headers.get('content-length')).toBe(String((await file.arrayBuffer()).byteLength));
  await close();
});

test.each([
  ['/v1/videos', { prompt: 'a fox', duration: 4, resolution: '480p' }, 'video/mp4'],
  ['/v1/video-edits', { prompt: 'a fox', model: 'svc-video-mini', video: 'https://e.example/a.mp4' }, 'video/mp4'],
  ['/v1/characters', { prompt: 'a fox', name: 'Ada' }, 'image/png'],
])('the output of %s with %j is %s', async (path, body, type) => {
  const client = setUp();
  const { id } = await client.create(path, body);
  await client.sandbox.advance(3000);
  expect((await client.call('GET', `/v1/jobs/${id}/output`)).headers.get('content-type')).toBe(type);
});
