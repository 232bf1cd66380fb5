// Session tickets, which bind a page's creates to its user, and the user's hash for the service.
import { describe, expect, it } from 'vitest';
import { type App, INPUT, KEY, openApp } from './support.js';

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

  it("has a stable hash, which the app's value replaces", async () => {
    const app = openApp({
      create: { videos: (input: { identifier?: string }) => ({ ...INPUT, safety_identifier: input.identifier }) },
    });
    const identifiers: unknown[] = [];
    for (const [key, user, identifier] of [
      ['a', 'ann'],
      ['b', 'ann'],
      ['c', 'ben'],
      ['d', 'ann', 'user-7'],
    ] as const) {
      expect((await app.post('videos', { key: `${KEY}${key}`, input: { identifier } }, { user })).status).toBe(200);
      identifiers.push(createdBody(app).safety_identifier);
    }
    expect(identifiers[0]).toBe(identifiers[1]);
    expect(identifiers[2]).not.toBe(identifiers[0]);
    expect(identifiers[3]).toBe('user-7');
  });
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
  // The key's job now exists.
  expect((await app.post('videos', create, { user: 'ben' })).status).toBe(403);
  expect(app.sandbox.jobs).toHaveLength(1);
});

it.each([['forged'], [''], [7], [null], [{}]])('rejects the session ticket %j', async (session) => {
  const app = openApp();
  expect(await app.post('videos', { key: KEY, input: INPUT, session })).toMatchObject({ status: 403 });
  expect(app.sandbox.jobs).toEqual([]);
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
