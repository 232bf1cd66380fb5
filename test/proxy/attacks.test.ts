import { createBudget } from 'gen-client';
import { describe, expect, it, vi } from 'vitest';
import { APP, type App, KEY, openApp, type PageRequest, SECRET, uploadOf } from './support.js';

const INPUT = { prompt: 'a fox' };

/** A job of a user, with its ticket. */
async function jobOf(app: App, user = 'ann'): Promise<string> {
  const { body } = await app.post('videos', { key: KEY, input: INPUT }, { user });
  return String(body.ticket);
}

describe('requests are accepted from', () => {
  const cases: readonly (readonly [name: string, status: number, as: PageRequest])[] = [
    ['nobody without a session', 401, { user: null }],
    ['no page of another site', 403, { headers: { 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' } }],
    ['no page of a sister site', 403, { headers: { 'sec-fetch-site': 'same-site', origin: 'https://a.app.test' } }],
    [
      'no page of an old browser on another origin',
      403,
      { headers: { 'sec-fetch-site': '', origin: 'https://evil.test' } },
    ],
    ['no sandboxed frame', 403, { headers: { 'sec-fetch-site': 'cross-site', origin: 'null' } }],
    ['no address typed into the browser', 403, { headers: { 'sec-fetch-site': 'none' } }],
  ];
  it.each(cases)('%s: %i', async (_name, status, as) => {
    const app = openApp();
    const answer = await app.post('videos', { key: KEY, input: INPUT }, as);
    expect(answer.status).toBe(status);
    expect(answer.headers.get('access-control-allow-origin')).toBeNull();
    expect(app.sandbox.jobs).toHaveLength(0);
  });

  it('no form, which can set neither the header nor the content type', async () => {
    const app = openApp();
    const form = { method: 'POST', headers: { 'x-session': 'ann', 'content-type': 'text/plain' }, body: '{}' };
    expect((await app.ask('videos', form)).status).toBe(403);
    const typed = { ...form, headers: { ...form.headers, 'x-gen-page': '1' } };
    expect((await app.ask('videos', typed)).status).toBe(415);
    expect(app.sandbox.jobs).toHaveLength(0);
  });

  it('a listed origin, and only such origins get CORS headers', async () => {
    const app = openApp({ origins: ['https://shop.test'] });
    const preflight = (origin: string) => app.ask('videos', { method: 'OPTIONS', headers: { origin } });
    expect((await preflight('https://shop.test')).headers.get('access-control-allow-origin')).toBe('https://shop.test');
    const sent = (await preflight('https://shop.test')).headers.get('access-control-allow-headers');
    expect(sent).toBe('content-type, x-gen-page, x-gen-ticket');
    const refused = await preflight('https://evil.test');
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([405, null]);
    const headers = { 'sec-fetch-site': 'cross-site', origin: 'https://shop.test' };
    const answer = await app.post('videos', { key: KEY, input: INPUT }, { headers });
    expect([answer.status, answer.headers.get('access-control-allow-credentials')]).toEqual([200, 'true']);
    expect(answer.headers.get('vary')).toContain('Origin');
  });

  it('only the own origin by default, including its preflight', async () => {
    expect((await openApp().ask('videos', { method: 'OPTIONS', headers: { origin: APP } })).status).toBe(405);
  });
});

describe('a page can request', () => {
  it.each(['images', 'speech', 'models', '__proto__', 'constructor', 'toString', 'v1', ''])(
    'no verb %j',
    async (verb) => {
      expect((await openApp().post(verb, { key: KEY, input: INPUT })).status).toBe(404);
    },
  );

  it('no uploads if the app has no policy for them', async () => {
    const app = openApp({ upload: undefined });
    for (const verb of ['upload', 'uploaded', 'bytes']) expect((await app.post(verb, {})).status).toBe(404);
  });

  it('no verb by another method, and no file by POST', async () => {
    const app = openApp();
    for (const [path, method, allow] of [
      ['videos', 'GET', 'POST'],
      ['watch', 'DELETE', 'POST'],
      ['file?t=x', 'POST', 'GET, HEAD'],
    ] as const) {
      const { status, headers } = await app.ask(path, { method });
      expect([status, headers.get('allow')]).toEqual([405, allow]);
    }
  });

  it.each(['webhook_url', 'callback_url', 'idempotency_key'])('no %s', async (name) => {
    const app = openApp();
    const answer = await app.post('videos', { key: KEY, input: { ...INPUT, [name]: 'https://evil.test' } });
    expect(answer).toMatchObject({ status: 400, body: { code: 'field_not_accepted' } });
    expect(app.sandbox.jobs).toHaveLength(0);
  });

  it('no webhook through another field of a careless app, and no key', async () => {
    const app = openApp({
      create: {
        videos: (input: Record<string, string>) => ({
          prompt: 'a',
          webhook_url: input.hook,
          idempotency_key: input.own,
        }),
      },
    });
    const smuggled = await app.post('videos', { key: KEY, input: { hook: 'https://evil.test/hook' } });
    expect(smuggled.status).toBe(400);
    await app.post('videos', { key: KEY, input: { own: 'the key of another job' } });
    expect(app.sandbox.requests.at(-1)?.headers['idempotency-key']).not.toContain('another');
  });

  it("no model, resolution, or anything else that the app doesn't pass on", async () => {
    const app = openApp();
    await app.post('videos', { key: KEY, input: { ...INPUT, model: 'svc-video-pro', resolution: '4k', seed: 7 } });
    expect(app.sandbox.jobs[0]).toMatchObject({ modelId: 'svc-video-fast' });
  });

  it.each([
    ['a prototype', '{"key":"b5f1c0de-0000-4000-8000-000000000001","input":{"__proto__":{"model":"svc-video-pro"}}}'],
    ['a prototype further in', '{"key":"b5f1c0de-0000-4000-8000-000000000001","input":{"a":[{"constructor":1}]}}'],
    ['no JSON', 'prompt=fox'],
    ['a list', '[]'],
    ['an input that is a list', '{"key":"b5f1c0de-0000-4000-8000-000000000001","input":[]}'],
    ['JSON as deep as a stack', `{"input":${'['.repeat(5_000)}${']'.repeat(5_000)}}`],
    ['a key that is an object', '{"key":{},"input":{}}'],
    ['a short key', '{"key":"1","input":{"prompt":"a"}}'],
  ])('nothing with a body with %s, which is a 400', async (_name, body) => {
    const app = openApp();
    expect((await app.post('videos', body)).status).toBe(400);
    expect(app.sandbox.jobs).toHaveLength(0);
  });

  it('no array instead of a string, which is rejected before it is paid for', async () => {
    const app = openApp();
    const answer = await app.post('videos', { key: KEY, input: { prompt: ['a', 'b'] } });
    expect(answer).toMatchObject({ status: 400, body: { code: 'prompt_required' } });
    expect(app.sandbox.jobs).toHaveLength(0);
  });

  it('nothing with a body of 10 MB, which is rejected before it is read in full', async () => {
    const app = openApp();
    let sent = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += 65_536;
        if (sent > 10_000_000) controller.close();
        else controller.enqueue(new Uint8Array(65_536));
      },
    });
    const headers = { 'content-type': 'application/json', 'x-gen-page': '1', 'x-session': 'ann' };
    const response = await app.ask('videos', { method: 'POST', headers, body, duplex: 'half' } as RequestInit);
    expect(response.status).toBe(413);
    expect(sent).toBeLessThan(1_000_000);
  });

  it('nothing with a body that never ends, which is canceled after ten seconds', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const app = openApp();
    const body = new ReadableStream<Uint8Array>({ start: (it) => it.enqueue(new TextEncoder().encode('{"key":')) });
    const headers = { 'content-type': 'application/json', 'x-gen-page': '1', 'x-session': 'ann' };
    const answer = app.ask('videos', { method: 'POST', headers, body, duplex: 'half' } as RequestInit);
    await vi.advanceTimersByTimeAsync(9_999);
    expect(await Promise.race([answer, 'not yet'])).toBe('not yet');
    await vi.advanceTimersByTimeAsync(2);
    vi.useRealTimers();
    expect((await answer).status).toBe(408);
    const why = { code: 'body_timeout', message: 'The body did not arrive in time.', retry: false };
    expect(await (await answer).json()).toEqual(why);
  });
});

describe('tickets', () => {
  it('of another user are rejected: job, file, and upload', async () => {
    const app = openApp();
    const ticket = await jobOf(app);
    expect((await app.post('watch', { ticket }, { user: 'ben' })).status).toBe(404);
    let { body } = await app.post('watch', { ticket });
    while (body.phase === 'waiting') ({ body } = await app.post('watch', { ticket, seen: body.status }));
    const file = (user: string) => app.ask(String(body.url), { headers: { 'x-session': user } });
    expect((await file('ben')).status).toBe(404);
    expect((await file('ann')).status).toBe(200);
    const { put } = await uploadOf(app);
    expect((await app.post('uploaded', { put }, { user: 'ben' })).status).toBe(404);
    expect((await app.ask(String(body.url))).status).toBe(401);
  });

  it('of another kind are rejected', async () => {
    const app = openApp();
    const ticket = await jobOf(app);
    const { ticket: upload, put } = await uploadOf(app);
    const link = (await app.proxy.link('job_x', { expiresInMs: 1000 })).split('=')[1];
    for (const wrong of [upload, put, link]) expect((await app.post('watch', { ticket: wrong })).status).toBe(404);
    for (const wrong of [ticket, upload, link]) expect((await app.post('uploaded', { put: wrong })).status).toBe(404);
    for (const wrong of [ticket, upload, put]) {
      expect((await app.ask(`file?t=${wrong}`, { headers: { 'x-session': 'ann' } })).status).toBe(404);
    }
  });

  it('of another proxy, or modified, cut, doubled, or empty, are rejected', async () => {
    const app = openApp();
    const ticket = await jobOf(app);
    const other = await openApp({ secret: `${SECRET} of another app` }).proxy.ticket('job_1', { id: 'ann' });
    const [body = '', signature = ''] = ticket.split('.');
    const content = JSON.parse(Buffer.from(body, 'base64url').toString());
    const rewritten = Buffer.from(JSON.stringify({ ...content, id: 'job_other' })).toString('base64url');
    const forged = [
      other,
      `${rewritten}.${signature}`,
      body,
      `${body}.`,
      `${ticket}.${signature}`,
      '',
      '.',
      `${ticket}=`,
      'x'.repeat(20_000),
    ];
    for (const wrong of [...forged, null, 5, {}, [ticket]]) {
      expect((await app.post('watch', { ticket: wrong })).status).toBe(404);
    }
  });

  it('expire', async () => {
    const app = openApp({}, { clock: 'manual' });
    const link = await app.proxy.link('job_1', { expiresInMs: 1_000 });
    const ticket = await app.proxy.ticket('job_1', { id: 'ann' });
    await app.sandbox.advance(1_000);
    expect((await app.ask(link)).status).toBe(401);
    await app.sandbox.advance(24 * 3_600_000);
    expect((await app.post('watch', { ticket })).status).toBe(404);
  });

  it('of the previous secret are valid during a rotation', async () => {
    const before = openApp();
    const ticket = await jobOf(before);
    const rotated = openApp({ client: before.client, secret: [`${SECRET} that is new`, SECRET] });
    expect((await rotated.post('watch', { ticket })).status).toBe(200);
    const after = openApp({ client: before.client, secret: `${SECRET} that is new` });
    expect((await after.post('watch', { ticket })).status).toBe(404);
  });

  it('reveal neither the user nor a storage credential', async () => {
    const app = openApp();
    const { put, id } = await uploadOf(app);
    const readable = Buffer.from(put.split('.')[0] ?? '', 'base64url').toString();
    expect(readable).toContain(id);
    // The user is looked for as a value: three letters stand in random text by chance.
    expect(Object.values(JSON.parse(readable) as object)).not.toContain('ann');
    expect(readable).not.toMatch(/https?:|Authorization|Bearer/i);
  });
});

describe('uploads', () => {
  it("are accepted only by their ticket: a raw ID of the workspace isn't, not even trimmed", async () => {
    const app = openApp({
      create: { videos: (input: { id: string }) => ({ prompt: 'a fox', first_frame_upload_id: input.id.trim() }) },
    });
    const { id, ticket } = await uploadOf(app);
    for (const raw of [id, ` ${id} `]) {
      expect((await app.post('videos', { key: KEY, input: { id: raw } })).status).toBe(404);
    }
    expect((await app.post('videos', { key: KEY, input: { id: ticket } }, { user: 'ben' })).status).toBe(404);
    expect(app.sandbox.jobs.filter(({ mediaType }) => mediaType === 'video')).toHaveLength(0);
    expect((await app.post('videos', { key: KEY, input: { id: ticket } })).status).toBe(200);
  });

  it('can be IDs of the app itself', async () => {
    const app = openApp();
    const { id } = await uploadOf(app);
    const own = openApp({
      client: app.client,
      create: { videos: () => ({ prompt: 'a fox', first_frame_upload_id: id }) },
    });
    expect((await own.post('videos', { key: KEY, input: INPUT })).status).toBe(200);
  });

  it.each([
    ['a type that the app refuses', { type: 'video/mp4', size: 10 }],
    ['a size that the app refuses', { type: 'image/png', size: 2_000_000 }],
    ['no size', { type: 'image/png' }],
    ['a negative size', { type: 'image/png', size: -1 }],
    ['a page', { type: 'text/html', size: 10 }],
  ])('of %s are a 400', async (_name, file) => {
    const app = openApp();
    expect((await app.post('upload', file)).status).toBe(400);
    expect(app.sandbox.requests).toHaveLength(0);
  });

  it('are relayed only to their own target, and not beyond their size', async () => {
    const app = openApp();
    const { body } = await app.post('upload', { type: 'image/png', size: 10 });
    const headers = { 'x-gen-page': '1', 'x-session': 'ann', 'x-gen-ticket': String(body.put) };
    const send = (bytes: number, more: Record<string, string> = {}) =>
      app.ask('bytes?url=https://evil.test', {
        method: 'POST',
        headers: { ...headers, ...more, 'x-target': 'https://evil.test' },
        body: new Uint8Array(bytes),
      });
    expect((await send(11, { 'content-length': '11' })).status).toBe(413);
    expect((await send(11)).status).toBe(413);
    const paths = app.sandbox.requests.map(({ method, path }) => `${method} ${path}`);
    expect(paths).toEqual(['POST /v1/uploads', expect.stringMatching(/^PUT \/storage\/uploads\/upl_/)]);
  });
});

describe('money', () => {
  it("one user can't spend another user's budget", async () => {
    const budgets = new Map(['ann', 'ben'].map((id) => [id, createBudget({ maxTokens: 16, scope: `page-${id}` })]));
    const app = openApp({ budget: ({ id }) => budgets.get(id) ?? createBudget({ maxTokens: 0 }) });
    expect((await app.post('videos', { key: KEY, input: INPUT })).status).toBe(200);
    const over = await app.post('videos', { key: `${KEY}2`, input: INPUT });
    expect(over).toMatchObject({ status: 402, body: { code: 'budget_exceeded' } });
    expect((await app.post('videos', { key: KEY, input: INPUT }, { user: 'ben' })).status).toBe(200);
    expect((await app.post('videos', { key: KEY, input: INPUT })).status).toBe(200);
    expect(app.sandbox.jobs).toHaveLength(2);
  });
});

describe("errors of the app aren't those of the page", () => {
  it.each([
    ['a wrong key', { apiKey: 'wrong' }, {}],
    ['an empty balance', {}, { balanceTokens: 0 }],
  ])(
    "%s is a 502 without the service's code, and onError is called with it",
    async (_name, options, sandboxOptions) => {
      const app = openApp({}, sandboxOptions);
      const own = openApp({ client: app.client.withOptions(options) });
      const { status, body } = await own.post('videos', { key: KEY, input: INPUT });
      expect([status, body.code]).toEqual([502, 'service_error']);
      expect(JSON.stringify(body)).not.toMatch(/key|balance|token|top/i);
      expect(own.errors).toHaveLength(1);
    },
  );

  it('a function of the app that throws is a 500 without details', async () => {
    const app = openApp({
      authorize: () => {
        throw new Error('password of the database');
      },
    });
    const { status, body } = await app.post('videos', { key: KEY, input: INPUT });
    expect([status, JSON.stringify(body)]).toEqual([500, expect.not.stringContaining('password')]);
    expect(app.errors).toHaveLength(1);
  });

  it("errors of the page aren't reported to onError", async () => {
    const app = openApp();
    await app.post('videos', { key: KEY, input: { prompt: '' } });
    await app.post('videos', { key: 'x', input: INPUT });
    expect(app.errors).toEqual([]);
  });
});
