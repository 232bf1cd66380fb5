// What a proxy does at its edges: fields that it adds, files of the app, bounds of held requests, and a service that is silent.
import { GenClient } from 'gen-client';
import { createSandbox } from 'gen-client/sandbox';
import { describe, expect, it } from 'vitest';
import { CLOCK, clockOf } from '../../src/runtime/clock.js';
import { type App, KEY, msUntil, openApp } from './support.js';

const ASK = { prompt: 'a fox' };
const createdBody = (app: App) =>
  JSON.parse(app.sandbox.requests.findLast(({ method }) => method === 'POST')?.body ?? '{}') as Record<string, unknown>;

describe('the user of a create', () => {
  const create = {
    images: () => ASK,
    videos: () => ASK,
    characters: () => ({ ...ASK, name: 'Fox' }),
    videoEdits: () => ({ ...ASK, model: 'svc-video-fast', source_video_url: 'https://a.test/a.mp4' }),
  };

  it.each([
    ['images', true],
    ['videos', true],
    ['characters', false],
    ['videoEdits', false],
  ])('is told to the service as a hash by %s: %s', async (verb, isTold) => {
    const app = openApp({ create });
    expect((await app.post(verb, { key: KEY, ask: {} })).status).toBe(200);
    const { safety_identifier: told } = createdBody(app);
    expect(told).toEqual(isTold ? expect.stringMatching(/^[\w-]{32}$/) : undefined);
  });

  it('is the same hash each time, another one for another user, and none where the app has its own', async () => {
    const app = openApp({ create: { videos: (ask: { own?: string }) => ({ ...ASK, safety_identifier: ask.own }) } });
    const told: unknown[] = [];
    for (const [key, user, own] of [
      ['a', 'ann'],
      ['b', 'ann'],
      ['c', 'ben'],
      ['d', 'ann', 'user-7'],
    ] as const) {
      expect((await app.post('videos', { key: `${KEY}${key}`, ask: { own } }, { user })).status).toBe(200);
      told.push(createdBody(app).safety_identifier);
    }
    expect(told[0]).toBe(told[1]);
    expect(told[2]).not.toBe(told[0]);
    expect(told[3]).toBe('user-7');
  });
});

describe('an upload field that the app returns', () => {
  const png = new Blob([new Uint8Array([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10])], { type: 'image/png' });
  const post = (value: unknown) =>
    openApp({ create: { videos: () => ({ ...ASK, first_frame_upload_id: value }) } }).post('videos', {
      key: KEY,
      ask: ASK,
    });

  it.each<[string, unknown]>([
    ['a file of the app', png],
    ['nothing', undefined],
    ['null', null],
  ])('is sent with %s', async (_, value) => {
    expect((await post(value)).status).toBe(200);
  });
});

describe('a service that does not answer', () => {
  it.each([
    [undefined, 'created'],
    ['processing', 'processing'],
    [7, 'created'],
  ])('leaves a page that has seen %j with the status %s after ten seconds', async (seen, status) => {
    const sandbox = createSandbox({ clock: 'manual' });
    const { apiKey, baseUrl } = sandbox;
    const fetch = () => new Promise<Response>(() => {});
    const client = new GenClient({ apiKey, baseUrl, fetch, ...{ [CLOCK]: clockOf(sandbox.client()) } });
    const app = openApp({ client, holdMs: 0 } as never);
    const ticket = await app.proxy.ticket('job_1', { id: 'ann' });
    const answer = app.post('watch', { ticket, seen });
    expect(await msUntil(sandbox, answer)).toBeGreaterThanOrEqual(10_000);
    expect(await answer).toMatchObject({ status: 200, body: { status, final: false, againMs: 5_000 } });
  });
});
