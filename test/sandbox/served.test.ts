// Robustness of the in-process fetch and the server: prefixes, aborts, large bodies, and many requests.
import { getEventListeners } from 'node:events';
import { request } from 'node:http';
import { expect, test } from 'vitest';
import { createSandbox } from '../../src/sandbox/index.js';
import { setUp } from './plain-client.js';

const MB = 1024 * 1024;

test('fetch works unbound, with a Request, and under a path prefix', async () => {
  const { fetch, baseUrl, apiKey } = setUp({ baseUrl: 'https://gen.example/api/' }).sandbox;
  expect(baseUrl).toBe('https://gen.example/api');
  const upload = { file_name: 'a.mp4', mime_type: 'video/mp4', file_size: 1, upload_type: 'VIDEO' };
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const init = { method: 'POST', headers, body: JSON.stringify(upload) };
  const { data } = await (await fetch(new Request(`${baseUrl}/v1/uploads`, init))).json();
  expect(data.direct_upload_url).toMatch(/^https:\/\/gen\.example\/api\/storage\//);
  expect((await fetch(data.direct_upload_url, { method: 'PUT', headers: data.headers, body: 'x' })).status).toBe(200);
  expect((await fetch('https://gen.example/v1/models')).status).toBe(404);
});

test.each(['', '/api'])(
  'the billing link opens a page that explains how to top up, under the prefix "%s"',
  async (prefix) => {
    const { sandbox, call } = setUp({ balanceTokens: 0, baseUrl: `https://gen.example${prefix}` });
    const { body } = await call('POST', '/v1/videos', { prompt: 'a fox' });
    const page = await sandbox.fetch(body.data.top_up_url);
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=UTF-8']);
    expect(await page.text()).toContain('sandbox.topUp(20)');
  },
);

test("an abort rejects with the signal's reason and leaves no listener", async () => {
  const { fetch, baseUrl } = setUp().sandbox;
  const aborted = AbortSignal.abort(new Error('stopped'));
  await expect(fetch(`${baseUrl}/v1/models`, { signal: aborted })).rejects.toThrow('stopped');
  const { signal } = new AbortController();
  await (await fetch(`${baseUrl}/v1/models`, { signal })).text();
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

test('two concurrent calls of advance add up', async () => {
  const { sandbox } = setUp();
  const start = sandbox.now();
  await Promise.all([sandbox.advance(1000), sandbox.advance(500)]);
  expect(sandbox.now() - start).toBe(1500);
});

test('the request log contains only the latest requests', async () => {
  const { sandbox } = setUp();
  const { fetch, baseUrl } = sandbox;
  for (let at = 0; at < 11_002; at++) await fetch(`${baseUrl}/v1/models?at=${at}`, { method: 'HEAD' });
  expect([sandbox.requests.length < 11_000, sandbox.requests.at(-1)?.query]).toEqual([true, '?at=11001']);
});

test('a JSON body of more than 1 MiB is rejected before the key is checked', async () => {
  const client = setUp().as('');
  expect(await client.code('POST', '/v1/videos', 'x'.repeat(MB + 1))).toBe('request_too_large');
  expect(await client.code('POST', '/v1/videos', 'x'.repeat(MB))).toBe('invalid_api_key');
  expect((await client.call('POST', '/_sandbox/outcomes', 'x'.repeat(MB + 1))).status).toBe(413);
});

test.each([undefined, 600 * MB])("the server doesn't read a body of %s bytes in full", async (length) => {
  const server = await createSandbox().listen();
  const headers = { 'content-type': 'text/plain', ...(length === undefined ? {} : { 'content-length': length }) };
  let sent = 0;
  const status = await new Promise((resolve, reject) => {
    const { port } = new URL(server.url);
    const call = request({ port, path: '/v1/videos', method: 'POST', headers }, (response) => {
      response.resume();
      resolve(response.statusCode);
      call.destroy();
    });
    call.on('error', (error) => (sent > 0 ? resolve(413) : reject(error)));
    const chunk = Buffer.alloc(MB);
    const pump = () => {
      while (!call.destroyed && sent < 600 && call.write(chunk)) sent += 1;
      if (!call.destroyed && sent < 600) call.once('drain', pump);
    };
    pump();
  });
  expect([status, sent < 60]).toEqual([413, true]);
  expect((await fetch(`${server.url}/v1/models`)).status).toBe(200);
  await server.close();
});
