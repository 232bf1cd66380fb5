import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import nodeFetch from 'node-fetch';
import * as undici from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ClientOptions, GenClient } from '../../src/index.js';
import { created, freshKey, rejection } from './support.js';

type CustomFetch = NonNullable<ClientOptions['fetch']>;

/** The requests that the service received, as `METHOD path body`. */
const receivedRequests: string[] = [];
let contentLength: string | undefined;
const service = createServer(async (request, response) => {
  const body = await textOf(request);
  receivedRequests.push(`${request.method} ${request.url} ${body}`);
  contentLength = request.headers['content-length'];
  if (request.url === '/moved') return response.writeHead(307, { location: '/v1/voices' }).end();
  if (request.url === '/v1/jobs/job_1/output') return response.end('the file');
  response.setHeader('content-type', 'application/json');
  response.end(request.method === 'POST' ? created() : '{"data":{"voices":["ann"]}}');
});
/** A proxy that tunnels connections and counts them. */
const proxy = createServer();
let tunnels = 0;
proxy.on('connect', (request: IncomingMessage, socket) => {
  tunnels += 1;
  const [host = '', port] = (request.url ?? '').split(':');
  const upstream = connect(Number(port), host, () => {
    socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
    upstream.pipe(socket).pipe(upstream);
  });
});

const origin = (server: typeof service) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += chunk;
  return text;
}

beforeAll(async () => {
  for (const server of [service, proxy]) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterAll(() => {
  for (const server of [service, proxy]) server.close().closeAllConnections();
});

/** Casts the fetch of another library, which has its own types. */
const asFetch = (fetch: unknown) => fetch as CustomFetch;
const fetches: readonly (readonly [string, () => CustomFetch])[] = [
  ["undici's own fetch", () => asFetch(undici.fetch)],
  ['node-fetch', () => asFetch(nodeFetch)],
  [
    "undici's fetch through a ProxyAgent",
    () => {
      const dispatcher = new undici.ProxyAgent({ uri: origin(proxy), proxyTunnel: true });
      return asFetch((url: string, init: undici.RequestInit) => undici.fetch(url, { ...init, dispatcher }));
    },
  ],
  [
    "the runtime's fetch through a ProxyAgent",
    () => {
      const dispatcher = new undici.ProxyAgent({ uri: origin(proxy), proxyTunnel: true });
      return asFetch((url: string, init: RequestInit) => fetch(url, Object.assign(init, { dispatcher })));
    },
  ],
];

describe.each(fetches)('%s', (name, createFetch) => {
  const createClient = () =>
    new GenClient({ apiKey: freshKey(), baseUrl: origin(service), fetch: createFetch(), maxRetries: 0 });

  it('sends creates, lists, uploads, and downloads', async () => {
    receivedRequests.length = 0;
    const client = createClient();
    const { job } = await client.videos.create({ prompt: 'a fox' });
    expect(job.id).toBe('job_1');
    expect((await client.voices.list()).voices).toEqual([{ id: 'ann' }]);
    const target = { upload_id: 'upl_1', direct_upload_url: `${origin(service)}/storage`, headers: {} };
    await client.uploads.put(target, new Blob(['the bytes']));
    expect(contentLength).toBe('9');
    expect(await (await client.jobs.output('job_1')).text()).toBe('the file');
    expect(receivedRequests).toEqual([
      'POST /v1/videos {"prompt":"a fox"}',
      'GET /v1/voices ',
      'PUT /storage the bytes',
      'GET /v1/jobs/job_1/output ',
    ]);
    if (name.includes('Proxy')) expect(tunnels).toBeGreaterThan(0);
  });

  it("follows a redirect within the service, and rejects with an abort's reason", async () => {
    const client = createClient();
    expect(await client.request({ method: 'GET', path: '/moved' })).toEqual({ voices: ['ann'] });
    const reason = new Error('enough');
    expect(await rejection(client.voices.list({ signal: AbortSignal.abort(reason) }))).toBe(reason);
  });

  it('rejects a redirected create without a retry', async () => {
    receivedRequests.length = 0;
    const error = await rejection(createClient().request({ method: 'POST', path: '/moved', body: { text: 'x' } }));
    expect(error).toMatchObject({ name: 'APIError', status: 307, recovery: 'change_request', attempts: 1 });
    expect(new Set(receivedRequests)).toEqual(new Set(['POST /moved {"text":"x"}']));
  });
});

it('a custom fetch is called with a URL and an init that contains the body', async () => {
  const calls: [string, RequestInit][] = [];
  const client = new GenClient({
    apiKey: freshKey(),
    baseUrl: 'https://service.test',
    fetch: async (url, init) => {
      calls.push([url, init]);
      return new Response(created());
    },
  });
  await client.videos.create({ prompt: 'a fox' });
  await client.voices.list().catch(() => {});
  expect(calls).toMatchObject([
    ['https://service.test/v1/videos', { method: 'POST', body: '{"prompt":"a fox"}' }],
    ['https://service.test/v1/voices', { method: 'GET', cache: 'no-store' }],
  ]);
});

it("a custom fetch that doesn't return a Response rejects the call with a GenError", async () => {
  const client = new GenClient({ apiKey: freshKey(), baseUrl: 'https://service.test', fetch: asFetch(async () => 7) });
  const error = await rejection(client.voices.list());
  expect(error).toMatchObject({ name: 'GenError', message: 'fetch must resolve with a Response, not 7.' });
});
