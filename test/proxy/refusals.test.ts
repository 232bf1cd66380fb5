// Every rejection as a page receives it: status, code, message, and headers.
import { createBudget } from 'gen-client';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { APP, type App, KEY, openApp, type PageRequest } from './support.js';

type Options = Parameters<typeof openApp>[0];
type Asked = readonly [verb: string, body: unknown, as?: PageRequest];

const INPUT = { prompt: 'a fox' };
const VIDEO: Asked = ['videos', { key: KEY, input: INPUT }];
const FILE = { type: 'image/png', size: 10 };
const withHeaders = (headers: Record<string, string>): Asked => [...VIDEO.slice(0, 2), { headers }] as unknown as Asked;
const uploadsOf = (value: unknown): Options => ({
  create: { videos: () => ({ prompt: 'a fox', first_frame_upload_id: value }) },
});

describe('a rejected request', () => {
  it.each<[string, Asked, string, Options?]>([
    ['of no address', ['nothing', {}], '404 not_found'],
    ['of another type', withHeaders({ 'content-type': 'text/json' }), '415 json_required'],
    ['of an announced size that is too large', withHeaders({ 'content-length': '131073' }), '413 body_too_large'],
    ['over the limit of the app', VIDEO, '429 rate_limited retry-after: 5', { limit: async () => false }],
    ['with a long key', ['videos', { key: 'k'.repeat(129), input: INPUT }], '400 key_invalid'],
    ['without an input', ['videos', { key: KEY }], '400 invalid_input'],
    ['with a list inside a list of uploads', VIDEO, '400 upload_invalid', uploadsOf([[]])],
    ...[{ type: 7 }, { type: `image/${'x'.repeat(250)}` }, { size: '10' }, { size: 2 ** 53 }].map(
      (file): [string, Asked, string, Options] => [
        `for the file ${JSON.stringify(file).slice(0, 50)}`,
        ['upload', { ...FILE, ...file }],
        '400 upload_invalid',
        { upload: () => true },
      ],
    ),
    ['with bytes of no upload', ['bytes', {}], '404 not_found'],
    ['over the budget', VIDEO, '402 budget_exceeded', { budget: () => createBudget({ maxTokens: 0 }) }],
  ])('%s gives the page the reason, and creates no job', async (_, [verb, body, as], expected, options) => {
    const app = openApp(options);
    const { status, body: told, headers } = await app.post(verb, body, as);
    const wait = headers.get('retry-after');
    expect(`${status} ${told.code}${wait === null ? '' : ` retry-after: ${wait}`}`).toBe(expected);
    expect(told.message).toEqual(expect.any(String));
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'application/json',
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    });
    expect([app.sandbox.jobs, app.errors]).toEqual([[], []]);
  });

  it("without the page's header returns the header's name", async () => {
    const headers = { 'content-type': 'application/json', 'x-session': 'ann', 'sec-fetch-site': 'same-origin' };
    const answer = await openApp().ask('videos', { method: 'POST', headers, body: '{}' });
    expect([answer.status, await answer.json()]).toEqual([
      403,
      { code: 'foreign_origin', message: 'The header x-gen-page is missing.', retry: false },
    ]);
  });

  it.each<[string, Record<string, string>, number]>([
    ['of an old browser on the same host', { origin: APP.replace('https', 'http') }, 200],
    ['of an old browser behind a proxy', { origin: 'https://shop.test', host: 'shop.test' }, 200],
    ['of an old browser on another host', { origin: 'https://shop.test' }, 403],
    ['with an origin that is no URL', { origin: 'null' }, 403],
    ['without an origin', {}, 200],
  ])('%s, %j: %i', async (_, more, status) => {
    const headers = {
      'content-type': 'application/json; charset=utf-8',
      'x-gen-page': '1',
      'x-session': 'ann',
      ...more,
    };
    const body = JSON.stringify({ key: KEY, input: INPUT });
    expect((await openApp().ask('videos', { method: 'POST', headers, body })).status).toBe(status);
  });

  describe('from another host', () => {
    afterEach(() => void vi.unstubAllEnvs());
    const headers = {
      'content-type': 'application/json',
      'x-gen-page': '1',
      'x-session': 'ann',
      origin: 'http://shop.test',
      host: 'upstream:3000',
    };
    const told = async () => (await openApp().ask('videos', { method: 'POST', headers, body: '{}' })).json();

    it('has both hosts in its message during development', async () => {
      expect(await told()).toEqual({
        code: 'foreign_origin',
        message:
          "This page may not use this address. Its origin is http://shop.test, and the proxy's host is upstream:3000. List the origin in origins, or let the reverse proxy pass on the Host header.",
        retry: false,
      });
    });

    it('has neither in production', async () => {
      vi.stubEnv('NODE_ENV', 'production');
      expect(await told()).toEqual({
        code: 'foreign_origin',
        message: 'This page may not use this address.',
        retry: false,
      });
    });
  });

  it.each([undefined, '', 7])('of a user whose ID is %j is an error of the app', async (id) => {
    const app = openApp({ authorize: () => ({ id }) as never });
    const { status, body } = await app.post(...VIDEO);
    expect([status, body.code]).toEqual([500, expect.any(String)]);
    expect(app.errors).toMatchObject([
      { message: 'authorize must return the user as { id }, with a non-empty string, or null.' },
    ]);
  });

  it.each([undefined, 'a fox', ['a fox']])('for which the app returns %j is an error of the app', async (returned) => {
    const app = openApp({ create: { videos: () => returned as never } });
    expect((await app.post(...VIDEO)).status).toBe(500);
    expect(app.errors).toMatchObject([{ message: 'create: its functions must return the params of the call.' }]);
  });
});

describe('an upload', () => {
  const begin = async (app: App, file: object) => String((await app.post('upload', file)).body.put);
  const send = (app: App, put: string, body: BodyInit | null, more: Record<string, string> = {}) =>
    app.ask('bytes', {
      method: 'POST',
      headers: { 'x-gen-page': '1', 'x-session': 'ann', 'x-gen-ticket': put, ...more },
      body,
    });

  it.each<[BodyInit | null, Record<string, string>, string]>([
    [new Uint8Array(11), { 'content-length': '11' }, '413 The file does not have the announced size.'],
    [new Uint8Array(9), { 'content-length': '9' }, '400 The file does not have the announced size.'],
    [new Uint8Array(11), {}, '413 The file does not have the announced size.'],
    [null, {}, '400 The file is empty.'],
  ])('of different bytes than announced, %# with %j, is rejected: %s', async (body, headers, expected) => {
    const app = openApp();
    const answer = await send(app, await begin(app, FILE), body, headers);
    const { code, message } = (await answer.json()) as { code: string; message: string };
    expect([code, `${answer.status} ${message}`]).toEqual(['size_mismatch', expected]);
  });

  it.each([
    ['C:\\pictures\\fox.png', 'fox.png'],
    ['/home/ann/fox.png', 'fox.png'],
    ['pictures/', 'upload'],
    ['', 'upload'],
    ['x'.repeat(256), 'upload'],
    [undefined, 'upload'],
  ])('with the name %j is %j', async (name, expected) => {
    const app = openApp();
    await begin(app, { ...FILE, name });
    expect(JSON.parse(app.sandbox.requests.at(-1)?.body ?? '')).toMatchObject({
      file_name: expected,
      upload_type: 'IMAGE',
    });
  });

  it('can be sent for ten minutes, plus time for its size, and used for a day', async () => {
    const app = openApp({ upload: () => true }, { clock: 'manual' });
    const image = await (await app.client.jobs.output(await finished(app))).bytes();
    const put = await begin(app, { type: 'image/png', size: image.byteLength });
    const late = await begin(app, { type: 'image/png', size: 10_000_000 });
    expect((await send(app, put, image.slice())).status).toBe(200);
    const { body } = await app.post('uploaded', { put });
    await app.sandbox.advance(600_000 + image.byteLength / 100);
    expect((await app.post('uploaded', { put })).status).toBe(404);
    expect((await send(app, late, new Uint8Array(1), { 'content-length': '1' })).status).toBe(400);
    await app.sandbox.advance(100_000);
    expect((await send(app, late, new Uint8Array(1), { 'content-length': '1' })).status).toBe(404);
    const use = (key: string) =>
      app.post('videos', { key: `${KEY}${key}`, input: { ...INPUT, first_frame_upload_id: body.upload } });
    expect((await use('a')).status).toBe(200);
    await app.sandbox.advance(24 * 3_600_000);
    expect((await use('b')).status).toBe(404);
  });

  async function finished(app: App) {
    const { job } = await app.client.images.create({ prompt: 'a fox' });
    await app.sandbox.advance(600_000);
    return app.client.jobs.get(job.id);
  }
});
