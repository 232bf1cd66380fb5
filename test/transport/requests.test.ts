// Outgoing requests: methods, paths, queries, headers, and bodies, to the service and to storage.
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { RawRequest } from '../../src/client/endpoint.js';
import { type ClientOptions, GenClient, type RequestEvent } from '../../src/index.js';
import { VERSION } from '../../src/runtime/version.js';
import { BASE_URL, created, freshKey, json, PROMPT, stubbed, stubbedTransport } from './support.js';

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

/** Creates a transport whose fetch records its calls. */
function recordingTransport(options: ClientOptions = {}) {
  const inits: RequestInit[] = [];
  const fetch = async (_url: string, init: RequestInit) => {
    inits.push(init);
    return new Response('');
  };
  return { transport: stubbedTransport(fetch, options), inits };
}

describe('a call to the service', () => {
  it("sends its own headers, the client's, and the call's, and no others", async () => {
    const apiKey = freshKey();
    const { client, requests } = stubbed(() => json(created()), { apiKey, headers: { 'X-Tenant': 'acme' } });
    await client.videos.create(PROMPT, { idempotencyKey: 'order-1', headers: { 'X-Trace': 't1' } });
    await client.request({ method: 'GET', path: '/v1/x' }, { headers: { 'x-tenant': 'other' } });
    const always = {
      accept: 'application/json',
      'user-agent': `gen-client/${VERSION}`,
      authorization: `Bearer ${apiKey}`,
    };
    expect(requests).toEqual([
      {
        method: 'POST',
        url: `${BASE_URL}/v1/videos`,
        headers: {
          ...always,
          'content-type': 'application/json',
          'idempotency-key': 'order-1',
          'x-tenant': 'acme',
          'x-trace': 't1',
        },
        body: JSON.stringify(PROMPT),
      },
      { method: 'GET', url: `${BASE_URL}/v1/x`, headers: { ...always, 'x-tenant': 'other' }, body: '' },
    ]);
  });

  it.each<[RawRequest['method'], boolean]>([
    ['GET', false],
    ['DELETE', false],
    ['PUT', false],
    ['POST', true],
    ['PATCH', true],
  ])('with %s sends an idempotency key: %s', async (method, hasKey) => {
    const { client, requests } = stubbed(() => json({}));
    await client.request({ method, path: '/v1/x' }, { idempotencyKey: 'order-1' });
    expect(requests[0]?.headers['idempotency-key']).toBe(hasKey ? 'order-1' : undefined);
  });

  it('sends its original params even if they change while it waits', async () => {
    const limited = () => json({}, { status: 429, headers: { 'retry-after': '0' } });
    const { client, requests } = stubbed([limited, () => json(created())]);
    const params = { prompt: 'before' };
    const call = client.videos.create(params);
    params.prompt = 'after';
    await call;
    expect(requests.map(({ body }) => body)).toEqual(['{"prompt":"before"}', '{"prompt":"before"}']);
  });

  it('uses the current global fetch, including later patches', async () => {
    const client = new GenClient({ apiKey: freshKey(), baseUrl: BASE_URL });
    const patched = vi.fn(async (_url: string, _init: RequestInit) => json({ data: 7 }));
    vi.stubGlobal('fetch', patched);
    expect(await client.request({ method: 'GET', path: '/v1/x' })).toBe(7);
    expect(patched.mock.calls[0]?.[0]).toBe(`${BASE_URL}/v1/x`);
    expect(patched.mock.calls[0]?.[1]).toMatchObject({ method: 'GET', redirect: 'manual', cache: 'no-store' });
    await client.request({ method: 'POST', path: '/v1/x', body: { a: 1 } });
    expect(patched.mock.calls[1]?.[1]).toMatchObject({ method: 'POST', redirect: 'manual', body: '{"a":1}' });
    expect(patched.mock.calls[1]?.[1]).not.toHaveProperty('cache');
  });

  it('is reported to the hooks with its path below the base URL, without its query', async () => {
    const events: RequestEvent[] = [];
    const hooks: ClientOptions['hooks'] = { onRequest: (event) => void events.push(event) };
    const { client } = stubbed(() => json({}), { hooks });
    await client.request({ method: 'GET', path: '/v1/x', query: { token: 'hidden' } });
    const { transport } = recordingTransport({ hooks });
    const target = { name: 'put', headers: {}, repeatable: true, body: () => 'x' };
    await transport.transfer({ ...target, url: `${BASE_URL}/v1/uploads?upload_id=1` });
    await transport.transfer({ ...target, url: 'https://storage.test/put?signature=hidden' });
    await transport.transfer({ ...target, url: `${BASE_URL}s/put` });
    expect(events.map(({ method, path, attempt, limit }) => [method, path, attempt, limit])).toEqual([
      ['GET', '/v1/x', 1, undefined],
      ['PUT', '/v1/uploads', 1, undefined],
      ['PUT', 'https://storage.test/put', 1, undefined],
      ['PUT', `${BASE_URL}s/put`, 1, undefined],
    ]);
  });
});

describe('bytes sent to storage', () => {
  const url = 'https://storage.test/put?signature=1';
  const target = { name: 'put', url, repeatable: true };

  it.each<[string, () => BodyInit]>([
    ['a Blob', () => new Blob(['abc'])],
    ['a DataView', () => new DataView(new ArrayBuffer(3))],
    ['an ArrayBuffer', () => new ArrayBuffer(3)],
  ])('have no length header if the runtime sets it: %s', async (_, body) => {
    const { transport, inits } = recordingTransport();
    await transport.transfer({ ...target, headers: { 'content-length': '3', 'x-a': '1' }, body });
    expect(Object.fromEntries(new Headers(inits[0]?.headers))).toEqual({ 'x-a': '1' });
  });

  it("have the caller's length if they are a stream, and fail on a redirect", async () => {
    const { transport, inits } = recordingTransport();
    const body = () => new Blob(['abc']).stream();
    await transport.transfer({ ...target, repeatable: false, headers: { 'content-length': '3', 'x-a': '1' }, body });
    await transport.transfer({ ...target, repeatable: false, headers: { 'x-a': '1' }, body });
    expect(inits.map(({ headers }) => Object.fromEntries(new Headers(headers)))).toEqual([
      { 'content-length': '3', 'x-a': '1' },
      { 'x-a': '1' },
    ]);
    const expected = { method: 'PUT', duplex: 'half', redirect: 'error' };
    expect(inits).toMatchObject([expected, expected]);
    // A Node stream, which every library's fetch on Node can send.
    expect(inits[0]?.body).toHaveProperty('pipe');
  });

  it('are a web stream if the runtime has no Node streams', async () => {
    vi.spyOn(process, 'getBuiltinModule').mockReturnValue(undefined);
    const { transport, inits } = recordingTransport();
    const stream = new Blob(['abc']).stream();
    await transport.transfer({ ...target, repeatable: false, headers: {}, body: () => stream });
    expect(inits[0]?.body).toBe(stream);
  });
});
