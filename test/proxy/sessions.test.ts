// A page's video from the create to the file, its session, and edge cases of the proxy.
import { GenClient } from 'gen-client';
import { createSandbox } from 'gen-client/sandbox';
import { describe, expect, it } from 'vitest';
import { CLOCK, clockOf } from '../../src/runtime/clock.js';
import { type App, KEY, msUntil, openApp } from './support.js';

const INPUT = { prompt: 'a fox' };
const createdBody = (app: App) =>
  JSON.parse(app.sandbox.requests.findLast(({ method }) => method === 'POST')?.body ?? '{}') as Record<string, unknown>;

describe('the user of a create', () => {
  const create = {
    images: () => INPUT,
    videos: () => INPUT,
    characters: () => ({ ...INPUT, name: 'Fox' }),
    videoEdits: () => ({ ...INPUT, model: 'svc-video-fast', source_video_url: 'https://a.test/a.mp4' }),
  };

  it.each([
    ['images', true],
    ['videos', true],
    ['characters', false],
    ['videoEdits', false],
  ])('is sent to the service as a hash with %s: %s', async (verb, isHashed) => {
    const app = openApp({ create });
    expect((await app.post(verb, { key: KEY, input: {} })).status).toBe(200);
    const { safety_identifier: identifier } = createdBody(app);
    expect(identifier).toEqual(isHashed ? expect.stringMatching(/^[\w-]{32}$/) : undefined);
  });

  it("has one stable hash, and the app's own value replaces it", async () => {
    const app = openApp({
      create: { videos: (input: { own?: string }) => ({ ...INPUT, safety_identifier: input.own }) },
    });
    const identifiers: unknown[] = [];
    for (const [key, user, own] of [
      ['a', 'ann'],
      ['b', 'ann'],
      ['c', 'ben'],
      ['d', 'ann', 'user-7'],
    ] as const) {
      expect((await app.post('videos', { key: `${KEY}${key}`, input: { own } }, { user })).status).toBe(200);
      identifiers.push(createdBody(app).safety_identifier);
    }
    expect(identifiers[0]).toBe(identifiers[1]);
    expect(identifiers[2]).not.toBe(identifiers[0]);
    expect(identifiers[3]).toBe('user-7');
  });
});

describe('an upload field that the app sets', () => {
  const png = new Blob([new Uint8Array([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10])], { type: 'image/png' });
  const post = (value: unknown) =>
    openApp({ create: { videos: () => ({ ...INPUT, first_frame_upload_id: value }) } }).post('videos', {
      key: KEY,
      input: INPUT,
    });

  it.each<[string, unknown]>([
    ["the app's own file", png],
    ['undefined', undefined],
    ['null', null],
  ])('accepts %s', async (_, value) => {
    expect((await post(value)).status).toBe(200);
  });
});

describe("a service that doesn't respond", () => {
  it.each([[undefined], ['processing'], [7]])(
    'reports no change to a page that has seen %j after ten seconds',
    async (seen) => {
      const sandbox = createSandbox({ clock: 'manual' });
      const { apiKey, baseUrl } = sandbox;
      const fetch = () => new Promise<Response>(() => {});
      const client = new GenClient({ apiKey, baseUrl, fetch, ...{ [CLOCK]: clockOf(sandbox.client()) } });
      const app = openApp({ client, holdMs: 0 } as never);
      const ticket = await app.proxy.ticket('job_1', { id: 'ann' });
      const response = app.post('watch', { ticket, seen });
      expect(await msUntil(sandbox, response)).toBeGreaterThanOrEqual(10_000);
      expect(await response).toMatchObject({ status: 200, body: { againMs: 5_000 } });
    },
  );
});

it("rejects a create with another user's session ticket", async () => {
  const app = openApp();
  const { status, body } = await app.post('session', {});
  expect([status, Object.keys(body)]).toEqual([200, ['ticket']]);
  const create = { key: KEY, input: INPUT, session: body.ticket };
  expect(await app.post('videos', create, { user: 'ben' })).toMatchObject({
    status: 403,
    body: { code: 'other_user', message: 'Another user has signed in. Reload the page.' },
  });
  expect([app.sandbox.jobs, app.errors]).toEqual([[], []]);
  expect((await app.post('videos', create)).status).toBe(200);
  // Even if the proxy knows the job.
  expect((await app.post('videos', create, { user: 'ben' })).status).toBe(403);
  expect(app.sandbox.jobs).toHaveLength(1);
});

it.each([['forged'], [''], [7], [null], [{}]])('rejects the session ticket %j', async (session) => {
  const app = openApp();
  expect(await app.post('videos', { key: KEY, input: INPUT, session })).toMatchObject({ status: 403 });
  expect(app.sandbox.jobs).toEqual([]);
});

it('accepts neither a session ticket as another ticket nor the reverse', async () => {
  const app = openApp();
  const { ticket } = (await app.post('session', {})).body;
  expect((await app.post('watch', { ticket })).status).toBe(404);
  expect((await app.post('uploaded', { put: ticket })).status).toBe(404);
  expect((await app.send(`file?t=${ticket}`, { headers: { 'x-session': 'ann' } })).status).toBe(404);
  const job = await app.proxy.ticket('job_1', { id: 'ann' });
  expect((await app.post('videos', { key: KEY, input: INPUT, session: job })).status).toBe(403);
});

it("issues tickets only to signed-in users, and counts them against the app's limit", async () => {
  expect((await openApp().post('session', {}, { user: null })).status).toBe(401);
  expect((await openApp({ limit: ({ verb }) => verb !== 'session' }).post('session', {})).status).toBe(429);
});

it('accepts stored tickets for a month', async () => {
  const app = openApp({ holdMs: 0 }, { clock: 'manual', jobDurationMs: 1_000 });
  const session = (await app.post('session', {})).body.ticket;
  const { ticket } = (await app.post('videos', { key: KEY, input: INPUT, session })).body;
  await app.sandbox.advance(29 * 24 * 3_600_000);
  expect((await app.post('watch', { ticket })).status).toBe(200);
  expect((await app.post('videos', { key: `${KEY}2`, input: INPUT, session })).status).toBe(200);
});

describe('a page that creates a video', () => {
  it('gets a ticket, follows the job to its end, and plays its file', async () => {
    const app = openApp();
    const created = await app.post('videos', { key: KEY, input: { prompt: 'a fox at dawn' } });
    expect(created.status).toBe(200);
    expect(created.headers.get('cache-control')).toBe('no-store');
    const { tokens } = created.body;
    expect(tokens).toBeGreaterThan(0);
    let response = created.body;
    while (response.phase === 'waiting') {
      expect(response.tokens).toBe(tokens);
      const next = await app.post('watch', { ticket: created.body.ticket, seen: response.status });
      expect(next.status).toBe(200);
      response = next.body;
    }
    expect(response).toMatchObject({ status: 'completed', progress: 1, tokens });
    const file = await app.send(String(response.url), { headers: { 'x-session': 'ann', range: 'bytes=0-99' } });
    expect(file.status).toBe(206);
    expect(file.headers.get('content-type')).toContain('video/mp4');
    expect(file.headers.get('referrer-policy')).toBe('no-referrer');
    expect((await file.arrayBuffer()).byteLength).toBe(100);
  });

  it('gets a link that opens without a session', async () => {
    const app = openApp();
    const job = await app.client.videos.createAndWait({ prompt: 'a fox' });
    const link = await app.proxy.link(job, { expiresInMs: 60_000 });
    expect((await app.send(link)).status).toBe(200);
  });
});
