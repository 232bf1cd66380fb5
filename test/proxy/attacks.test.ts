import { createBudget } from 'gen-client';
import { describe, expect, it, vi } from 'vitest';
import {
  ANN,
  APP,
  type App,
  completeUpload,
  INPUT,
  KEY,
  openApp,
  PAGE_HEADERS,
  type PageRequest,
  SECRET,
  sendBytes,
} from './support.js';

/** Creates a job as ann, and returns its ticket. */
async function createJob(app: App): Promise<string> {
  const { body } = await app.post('videos', { key: KEY, input: INPUT });
  return String(body.ticket);
}

describe('a request', () => {
  const cases: readonly (readonly [name: string, status: number, request: PageRequest])[] = [
    ['without a session', 401, { user: null }],
    ["from another site's page", 403, { headers: { 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' } }],
    [
      'from a page on a sibling subdomain',
      403,
      { headers: { 'sec-fetch-site': 'same-site', origin: 'https://a.app.test' } },
    ],
    ['from a sandboxed frame', 403, { headers: { 'sec-fetch-site': 'cross-site', origin: 'null' } }],
    ['from the address bar', 403, { headers: { 'sec-fetch-site': 'none' } }],
  ];
  it.each(cases)('%s is rejected with %i', async (_name, status, request) => {
    const app = openApp();
    const response = await app.post('videos', { key: KEY, input: INPUT }, request);
    expect(response.status).toBe(status);
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
    expect(app.sandbox.jobs).toHaveLength(0);
  });

  it('from an allowed origin is accepted, and only allowed origins get CORS headers', async () => {
    const app = openApp({ origins: ['https://shop.test'] });
    const preflight = (origin: string) => app.send('videos', { method: 'OPTIONS', headers: { origin } });
    expect(Object.fromEntries((await preflight('https://shop.test')).headers)).toMatchObject({
      'access-control-allow-origin': 'https://shop.test',
      'access-control-allow-headers': 'content-type, x-gen-page, x-gen-ticket',
    });
    const rejected = await preflight('https://evil.test');
    expect([rejected.status, rejected.headers.get('access-control-allow-origin')]).toEqual([405, null]);
    const headers = { 'sec-fetch-site': 'cross-site', origin: 'https://shop.test' };
    const response = await app.post('videos', { key: KEY, input: INPUT }, { headers });
    expect([response.status, response.headers.get('access-control-allow-credentials')]).toEqual([200, 'true']);
    expect(response.headers.get('vary')).toContain('Origin');
  });
});

it("a preflight request is rejected by default, even from the app's origin", async () => {
  expect((await openApp().send('videos', { method: 'OPTIONS', headers: { origin: APP } })).status).toBe(405);
});

describe("a page's request", () => {
  it.each(['images', 'speech', 'models', '__proto__', 'constructor', 'toString', 'v1', ''])(
    'for the unknown endpoint %j gets a 404',
    async (endpoint) => {
      expect((await openApp().post(endpoint, { key: KEY, input: INPUT })).status).toBe(404);
    },
  );

  it('to upload gets a 404 without the `upload` option', async () => {
    const app = openApp({ upload: undefined });
    for (const endpoint of ['upload', 'uploaded', 'bytes']) expect((await app.post(endpoint, {})).status).toBe(404);
  });

  it('with the wrong method gets a 405 that lists the allowed methods', async () => {
    const app = openApp();
    for (const [path, method, allow] of [
      ['videos', 'GET', 'POST'],
      ['watch', 'DELETE', 'POST'],
      ['file?t=x', 'POST', 'GET, HEAD'],
    ] as const) {
      const { status, headers } = await app.send(path, { method });
      expect([status, headers.get('allow')]).toEqual([405, allow]);
    }
  });

  it.each(['webhook_url', 'callback_url', 'idempotency_key'])('with %s in its input is rejected', async (name) => {
    const app = openApp();
    const response = await app.post('videos', { key: KEY, input: { ...INPUT, [name]: 'https://evil.test' } });
    expect(response).toMatchObject({ status: 400, body: { code: 'field_not_accepted' } });
    expect(app.sandbox.jobs).toHaveLength(0);
  });

  it("can't set the webhook or the key, even if the app copies them into the params", async () => {
    const app = openApp({
      create: {
        videos: (input: Record<string, string>) => ({
          prompt: 'a',
          webhook_url: input.url,
          idempotency_key: input.key,
        }),
      },
    });
    for (const input of [{ url: 'https://evil.test/hook' }, { key: "another job's key" }]) {
      const response = await app.post('videos', { key: KEY, input });
      expect(response).toMatchObject({ status: 400, body: { code: 'field_not_accepted' } });
    }
    expect(app.sandbox.jobs).toHaveLength(0);
  });

  it('gets a 500 if the app itself sets the key', async () => {
    const app = openApp({ create: { videos: () => ({ prompt: 'a', idempotency_key: 'order-17' }) } });
    expect((await app.post('videos', { key: KEY, input: INPUT })).status).toBe(500);
    expect(app.errors).toMatchObject([{ message: expect.stringContaining('idempotency_key is set by the proxy') }]);
  });

  it("can't set the model, the resolution, or any other param that the app doesn't copy", async () => {
    const app = openApp();
    await app.post('videos', { key: KEY, input: { ...INPUT, model: 'svc-video-pro', resolution: '4k', seed: 7 } });
    expect(app.sandbox.jobs[0]).toMatchObject({ modelId: 'svc-video-fast' });
  });

  it.each([
    ['__proto__', '{"key":"b5f1c0de-0000-4000-8000-000000000001","input":{"__proto__":{"model":"svc-video-pro"}}}'],
    ['a nested constructor', '{"key":"b5f1c0de-0000-4000-8000-000000000001","input":{"a":[{"constructor":1}]}}'],
    ['only form data', 'prompt=fox'],
    ['only an array', '[]'],
    ['an array as its input', '{"key":"b5f1c0de-0000-4000-8000-000000000001","input":[]}'],
    ['JSON nested 5,000 levels deep', `{"input":${'['.repeat(5_000)}${']'.repeat(5_000)}}`],
    ['an object as its key', '{"key":{},"input":{}}'],
    ['a one-character key', '{"key":"1","input":{"prompt":"a"}}'],
  ])('with %s in its body is a 400', async (_name, body) => {
    const app = openApp();
    expect((await app.post('videos', body)).status).toBe(400);
    expect(app.sandbox.jobs).toHaveLength(0);
  });

  it('with a 10 MB body is rejected before the proxy reads it in full', async () => {
    const app = openApp();
    let bytesRead = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        bytesRead += 65_536;
        if (bytesRead > 10_000_000) controller.close();
        else controller.enqueue(new Uint8Array(65_536));
      },
    });
    const init = { method: 'POST', headers: PAGE_HEADERS, body, duplex: 'half' } as RequestInit;
    expect((await app.send('videos', init)).status).toBe(413);
    expect(bytesRead).toBeLessThan(1_000_000);
  });

  it('with a stalled body times out after ten seconds', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const app = openApp();
    const body = new ReadableStream({ start: (stream) => stream.enqueue(new TextEncoder().encode('{"key":')) });
    const response = app.send('videos', { method: 'POST', headers: PAGE_HEADERS, body, duplex: 'half' } as RequestInit);
    await vi.advanceTimersByTimeAsync(9_999);
    expect(await Promise.race([response, 'not yet'])).toBe('not yet');
    await vi.advanceTimersByTimeAsync(2);
    vi.useRealTimers();
    expect((await response).status).toBe(408);
    const error = { code: 'body_timeout', message: 'The body did not arrive within 10 seconds.', retry: false };
    expect(await (await response).json()).toEqual(error);
  });
});

describe('a ticket', () => {
  it("is rejected in another user's session, for jobs, files, and uploads", async () => {
    const app = openApp();
    const ticket = await createJob(app);
    expect((await app.post('watch', { ticket }, { user: 'ben' })).status).toBe(404);
    let { body } = await app.post('watch', { ticket });
    while (body.phase === 'waiting') ({ body } = await app.post('watch', { ticket, seen: body.status }));
    const file = (user: string) => app.send(String(body.url), { headers: { 'x-session': user } });
    expect((await file('ben')).status).toBe(404);
    expect((await file('ann')).status).toBe(200);
    const { put } = await completeUpload(app);
    expect((await app.post('uploaded', { put }, { user: 'ben' })).status).toBe(404);
    expect((await app.send(String(body.url))).status).toBe(401);
  });

  it('of the wrong kind is rejected', async () => {
    const app = openApp();
    const ticket = await createJob(app);
    const { ticket: upload, put } = await completeUpload(app);
    const link = (await app.proxy.link('job_x', { expiresInMs: 1000 })).split('=')[1];
    const { ticket: session } = (await app.post('session', {})).body;
    for (const invalid of [session, upload, put, link])
      expect((await app.post('watch', { ticket: invalid })).status).toBe(404);
    for (const invalid of [session, ticket, upload, link])
      expect((await app.post('uploaded', { put: invalid })).status).toBe(404);
    for (const invalid of [session, ticket, upload, put])
      expect((await app.send(`file?t=${invalid}`, { headers: { 'x-session': 'ann' } })).status).toBe(404);
    for (const invalid of [ticket, upload, put, link])
      expect((await app.post('videos', { key: KEY, input: INPUT, session: invalid })).status).toBe(403);
  });

  it("is rejected if it is forged, modified, truncated, empty, or another proxy's", async () => {
    const app = openApp();
    const ticket = await createJob(app);
    const foreignTicket = await openApp({ secret: `${SECRET} of another app` }).proxy.ticket('job_1', ANN);
    const [body = '', signature = ''] = ticket.split('.');
    const content = JSON.parse(Buffer.from(body, 'base64url').toString());
    const rewritten = Buffer.from(JSON.stringify({ ...content, id: 'job_other' })).toString('base64url');
    const forged = [
      foreignTicket,
      `${rewritten}.${signature}`,
      body,
      `${body}.`,
      `${ticket}.${signature}`,
      '',
      '.',
      `${ticket}=`,
      'x'.repeat(20_000),
    ];
    for (const invalid of [...forged, null, 5, {}, [ticket]]) {
      expect((await app.post('watch', { ticket: invalid })).status).toBe(404);
    }
  });

  it('expires', async () => {
    const app = openApp({}, { clock: 'manual' });
    const link = await app.proxy.link('job_1', { expiresInMs: 1_000 });
    const ticket = await app.proxy.ticket('job_1', ANN);
    await app.sandbox.advance(1_000);
    expect((await app.send(link)).status).toBe(401);
    await app.sandbox.advance(24 * 3_600_000);
    expect((await app.post('watch', { ticket })).status).toBe(404);
  });

  it('signed with the previous secret is valid during a rotation', async () => {
    const original = openApp();
    const ticket = await createJob(original);
    const rotated = openApp({ client: original.client, secret: [`${SECRET} that is new`, SECRET] });
    expect((await rotated.post('watch', { ticket })).status).toBe(200);
    const renewed = openApp({ client: original.client, secret: `${SECRET} that is new` });
    expect((await renewed.post('watch', { ticket })).status).toBe(404);
  });

  it('reveals neither the user nor a storage credential', async () => {
    const app = openApp();
    const { put, id } = await completeUpload(app);
    const content = Buffer.from(put.split('.')[0] ?? '', 'base64url').toString();
    expect(content).toContain(id);
    // Compares entire values, because base64 can contain the three letters by chance.
    expect(Object.values(JSON.parse(content) as object)).not.toContain('ann');
    expect(content).not.toMatch(/https?:|Authorization|Bearer/i);
  });
});

describe('an upload', () => {
  it('can be referenced only by its ticket, never by its raw ID', async () => {
    const app = openApp({
      create: { videos: (input: { id: string }) => ({ prompt: 'a fox', first_frame_upload_id: input.id.trim() }) },
    });
    const { id, ticket } = await completeUpload(app);
    for (const raw of [id, ` ${id} `]) {
      expect((await app.post('videos', { key: KEY, input: { id: raw } })).status).toBe(404);
    }
    expect((await app.post('videos', { key: KEY, input: { id: ticket } }, { user: 'ben' })).status).toBe(404);
    expect(app.sandbox.jobs.filter(({ mediaType }) => mediaType === 'video')).toHaveLength(0);
    expect((await app.post('videos', { key: KEY, input: { id: ticket } })).status).toBe(200);
  });

  const png = new Blob([new Uint8Array([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10])], { type: 'image/png' });
  it.each<[string, (app: App) => unknown]>([
    ['an ID', async (app) => (await completeUpload(app)).id],
    ['a file', () => png],
    ['undefined', () => undefined],
    ['null', () => null],
  ])('can be set to %s by the app', async (_, value) => {
    const app = openApp();
    const first_frame_upload_id = await value(app);
    const create = { videos: () => ({ ...INPUT, first_frame_upload_id }) };
    const appWithUpload = openApp({ client: app.client, create });
    expect((await appWithUpload.post('videos', { key: KEY, input: INPUT })).status).toBe(200);
  });

  it.each([
    ['with a type that the app rejects', { type: 'video/mp4', size: 10 }],
    ['with a size that the app rejects', { type: 'image/png', size: 2_000_000 }],
    ['without a size', { type: 'image/png' }],
    ['with a negative size', { type: 'image/png', size: -1 }],
    ['of an HTML page', { type: 'text/html', size: 10 }],
  ])('%s is a 400', async (_name, file) => {
    const app = openApp();
    expect((await app.post('upload', file)).status).toBe(400);
    expect(app.sandbox.requests).toHaveLength(0);
  });

  it('is relayed only to its target, and only up to its declared size', async () => {
    const app = openApp();
    const { body } = await app.post('upload', { type: 'image/png', size: 10 });
    const target = { 'x-target': 'https://evil.test' };
    const send = (path: string, init?: RequestInit) => app.send(`${path}?url=https://evil.test`, init);
    expect((await sendBytes({ send }, String(body.put), new Uint8Array(11), { headers: target })).status).toBe(413);
    const paths = app.sandbox.requests.map(({ method, path }) => `${method} ${path}`);
    expect(paths).toEqual(['POST /v1/uploads', expect.stringMatching(/^PUT \/storage\/uploads\/upl_/)]);
  });
});

describe('a per-user budget', () => {
  it("can't be spent by another user", async () => {
    const budgets = new Map(['ann', 'ben'].map((id) => [id, createBudget({ maxTokens: 16, scope: `page-${id}` })]));
    const app = openApp({ budget: ({ id }) => budgets.get(id) ?? createBudget({ maxTokens: 0 }) });
    expect((await app.post('videos', { key: KEY, input: INPUT })).status).toBe(200);
    const second = await app.post('videos', { key: `${KEY}2`, input: INPUT });
    expect(second).toMatchObject({ status: 402, body: { code: 'budget_exceeded' } });
    expect((await app.post('videos', { key: KEY, input: INPUT }, { user: 'ben' })).status).toBe(200);
    expect((await app.post('videos', { key: KEY, input: INPUT })).status).toBe(200);
    expect(app.sandbox.jobs).toHaveLength(2);
  });
});

describe('onError', () => {
  it.each([
    ['a wrong API key', { apiKey: 'wrong' }, {}],
    ['an empty balance', {}, { balanceTokens: 0 }],
  ])(
    "receives the error caused by %s, while the page gets a 502 without the service's code",
    async (_name, options, sandboxOptions) => {
      const { client } = openApp({}, sandboxOptions);
      const app = openApp({ client: client.withOptions(options) });
      const { status, body } = await app.post('videos', { key: KEY, input: INPUT });
      expect([status, body.code]).toEqual([502, 'service_error']);
      expect(JSON.stringify(body)).not.toMatch(/key|balance|token|top/i);
      expect(app.errors).toHaveLength(1);
    },
  );

  it('receives an error thrown by `authorize`, while the page gets a 500 without details', async () => {
    const app = openApp({
      authorize: () => {
        throw new Error('database password');
      },
    });
    const { status, body } = await app.post('videos', { key: KEY, input: INPUT });
    expect([status, JSON.stringify(body)]).toEqual([500, expect.not.stringContaining('password')]);
    expect(app.errors).toHaveLength(1);
  });
});
