// The errors that a page receives: status, code, message, and headers.
import { createBudget } from 'gen-client';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { APP, type App, INPUT, KEY, openApp, PAGE_HEADERS, type PageRequest, sendBytes } from './support.js';

type Options = Parameters<typeof openApp>[0];
type PostArgs = readonly [verb: string, body: unknown, as?: PageRequest];

const VIDEO: PostArgs = ['videos', { key: KEY, input: INPUT }];
const FILE = { type: 'image/png', size: 10 };
const withHeaders = (headers: Record<string, string>): PostArgs =>
  [...VIDEO.slice(0, 2), { headers }] as unknown as PostArgs;
const uploadsOf = (value: unknown): Options => ({
  create: { videos: () => ({ prompt: 'a fox', first_frame_upload_id: value }) },
});

describe('a rejected request', () => {
  it.each<[string, PostArgs, string, Options?]>([
    ['with another content type', withHeaders({ 'content-type': 'text/json' }), '415 json_required'],
    ['with a content-length over the limit', withHeaders({ 'content-length': '131073' }), '413 body_too_large'],
    ["over the app's limit", VIDEO, '429 rate_limited retry-after: 5', { limit: async () => false }],
    ['with a long key', ['videos', { key: 'k'.repeat(129), input: INPUT }], '400 key_invalid'],
    ['with an empty prompt', ['videos', { key: KEY, input: { prompt: '' } }], '400 prompt_required'],
    ['with an array as its prompt', ['videos', { key: KEY, input: { prompt: ['a', 'b'] } }], '400 prompt_required'],
    ['without an input', ['videos', { key: KEY }], '400 invalid_input'],
    ['with nested lists of uploads', VIDEO, '400 upload_invalid', uploadsOf([[]])],
    ...[{ type: 7 }, { type: `image/${'x'.repeat(250)}` }, { size: '10' }, { size: 2 ** 53 }].map(
      (file): [string, PostArgs, string, Options] => [
        `to upload ${JSON.stringify(file).slice(0, 50)}`,
        ['upload', { ...FILE, ...file }],
        '400 upload_invalid',
        { upload: () => true },
      ],
    ),
    ['with bytes but no upload', ['bytes', {}], '404 not_found'],
    ['over the budget', VIDEO, '402 budget_exceeded', { budget: () => createBudget({ maxTokens: 0 }) }],
  ])('%s reports the reason, and creates no job', async (_, [verb, body, as], expected, options) => {
    const app = openApp(options);
    const { status, body: error, headers } = await app.post(verb, body, as);
    const retryAfter = headers.get('retry-after');
    expect(`${status} ${error.code}${retryAfter === null ? '' : ` retry-after: ${retryAfter}`}`).toBe(expected);
    expect(error.message).toEqual(expect.any(String));
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'application/json',
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    });
    expect([app.sandbox.jobs, app.errors]).toEqual([[], []]);
  });

  it("without the page's header gets an error with the header's name", async () => {
    const headers = { 'content-type': 'application/json', 'x-session': 'ann', 'sec-fetch-site': 'same-origin' };
    const response = await openApp().send('videos', { method: 'POST', headers, body: '{}' });
    expect([response.status, await response.json()]).toEqual([
      403,
      { code: 'foreign_origin', message: 'The header x-gen-page is missing.', retry: false },
    ]);
  });

  describe('from another host', () => {
    afterEach(() => void vi.unstubAllEnvs());
    const headers = { ...PAGE_HEADERS, origin: 'http://shop.test', host: 'upstream:3000' };
    const errorOfVideo = async () => (await openApp().send('videos', { method: 'POST', headers, body: '{}' })).json();

    const HINT =
      " The page's origin is http://shop.test, and the proxy's host is upstream:3000. Add the origin to origins, or let the reverse proxy forward the Host header.";
    it.each([
      ['lists both hosts in its message during development', 'development', HINT],
      ['lists neither in production', 'production', ''],
    ])('%s', async (_, environment, hint) => {
      vi.stubEnv('NODE_ENV', environment);
      const message = `Requests from this site are not allowed.${hint}`;
      expect(await errorOfVideo()).toEqual({ code: 'foreign_origin', message, retry: false });
    });
  });

  it.each([undefined, '', 7])('with the user ID %j from authorize is reported as an app error', async (id) => {
    const app = openApp({ authorize: () => ({ id }) as never });
    const { status, body } = await app.post(...VIDEO);
    expect([status, body.code]).toEqual([500, expect.any(String)]);
    expect(app.errors).toMatchObject([{ message: 'authorize must return { id } with a non-empty string, or null.' }]);
  });

  it.each([[undefined], ['a fox'], [['a fox']]])(
    'with the params %j from create is reported as an app error',
    async (returned) => {
      const app = openApp({ create: { videos: () => returned as never } });
      expect((await app.post(...VIDEO)).status).toBe(500);
      expect(app.errors).toMatchObject([
        { message: 'create: each function must return an object. Return the params of the create.' },
      ]);
    },
  );
});

it.each<[string, Record<string, string>, number]>([
  ['from the same host', { origin: APP.replace('https', 'http') }, 200],
  ['from behind a reverse proxy', { origin: 'https://shop.test', host: 'shop.test' }, 200],
  ['from another host', { origin: 'https://shop.test' }, 403],
  ['with an invalid origin', { origin: 'null' }, 403],
  ['without an origin', {}, 200],
])('a request of an old browser %s, with %j, returns %i', async (_, originHeaders, status) => {
  const headers = { ...PAGE_HEADERS, 'content-type': 'application/json; charset=utf-8', ...originHeaders };
  const body = JSON.stringify({ key: KEY, input: INPUT });
  expect((await openApp().send('videos', { method: 'POST', headers, body })).status).toBe(status);
});

describe('an upload', () => {
  const begin = async (app: App, file: object) => String((await app.post('upload', file)).body.put);

  it.each<[BodyInit | null, Record<string, string>, string]>([
    [new Uint8Array(11), { 'content-length': '11' }, '413 The file size differs from the declared size.'],
    [new Uint8Array(9), { 'content-length': '9' }, '400 The file size differs from the declared size.'],
    [new Uint8Array(11), {}, '413 The file size differs from the declared size.'],
    [null, {}, '400 The file is empty.'],
  ])('of %o with %j is rejected with %s', async (body, headers, expected) => {
    const app = openApp();
    const response = await sendBytes(app, await begin(app, FILE), body, { headers });
    const { code, message } = (await response.json()) as { code: string; message: string };
    expect([code, `${response.status} ${message}`]).toEqual(['size_mismatch', expected]);
  });

  it.each([
    ['C:\\pictures\\fox.png', 'fox.png'],
    ['/home/ann/fox.png', 'fox.png'],
    ['pictures/', 'upload'],
    ['', 'upload'],
    ['x'.repeat(256), 'upload'],
    [undefined, 'upload'],
  ])('named %j is sent as %j', async (name, expected) => {
    const app = openApp();
    await begin(app, { ...FILE, name });
    expect(JSON.parse(app.sandbox.requests.at(-1)?.body ?? '')).toMatchObject({
      file_name: expected,
      upload_type: 'IMAGE',
    });
  });

  it('can be sent for ten minutes plus time for its size, and used for a day', async () => {
    const app = openApp({ upload: () => true }, { clock: 'manual' });
    const { job } = await app.client.images.create(INPUT);
    await app.sandbox.advance(600_000);
    const image = await (await app.client.jobs.output(await app.client.jobs.get(job.id))).bytes();
    const put = await begin(app, { type: 'image/png', size: image.byteLength });
    const largePut = await begin(app, { type: 'image/png', size: 10_000_000 });
    expect((await sendBytes(app, put, image.slice())).status).toBe(200);
    const { body } = await app.post('uploaded', { put });
    await app.sandbox.advance(600_000 + image.byteLength / 100);
    expect((await app.post('uploaded', { put })).status).toBe(404);
    const sendLarge = async () => (await sendBytes(app, largePut, 'x', { headers: { 'content-length': '1' } })).status;
    expect(await sendLarge()).toBe(400);
    await app.sandbox.advance(100_000);
    expect(await sendLarge()).toBe(404);
    const use = (key: string) =>
      app.post('videos', { key: `${KEY}${key}`, input: { ...INPUT, first_frame_upload_id: body.upload } });
    expect((await use('a')).status).toBe(200);
    await app.sandbox.advance(24 * 3_600_000);
    expect((await use('b')).status).toBe(404);
  });
});
