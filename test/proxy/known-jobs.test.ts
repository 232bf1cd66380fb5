// Creates with a repeated key, and watches of finished jobs.
import { describe, expect, it, vi } from 'vitest';
import { ANN, type App, INPUT, KEY, openApp, SECRET, watchFrom } from './support.js';

const MINUTE_MS = 60_000;
const requestsOf = ({ sandbox }: App, method: string) =>
  sandbox.requests.filter((request) => request.method === method);

describe('a repeated key', () => {
  it("uses no slot, so 60 repetitions don't delay another user's create", async () => {
    const app = openApp({}, { clock: 'manual' });
    const { body } = await app.post('videos', { key: KEY, input: INPUT });
    for (let times = 0; times < 60; times++) {
      const repeated = await app.post('videos', { key: KEY, input: INPUT });
      expect(repeated).toMatchObject({ status: 200, body: { ticket: expect.any(String), tokens: body.tokens } });
    }
    expect(requestsOf(app, 'POST')).toHaveLength(1);
    // Another user's create with the same key is a different job.
    expect(await app.post('videos', { key: KEY, input: INPUT }, { user: 'ben' })).toMatchObject({ status: 200 });
    expect(app.sandbox.jobs).toHaveLength(2);
  });

  it('shares one create among concurrent requests', async () => {
    const app = openApp();
    const responses = await Promise.all(
      Array.from({ length: 20 }, () => app.post('videos', { key: KEY, input: INPUT })),
    );
    expect(responses.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
    expect(requestsOf(app, 'POST')).toHaveLength(1);
  });

  it('returns the outcome once the job has ended', async () => {
    const app = openApp({}, { clock: 'manual' });
    const { body } = await app.post('videos', { key: KEY, input: INPUT });
    await app.sandbox.advance(5 * MINUTE_MS);
    await app.post('watch', { ticket: body.ticket });
    const requestsBefore = app.sandbox.requests.length;
    const repeated = await app.post('videos', { key: KEY, input: INPUT });
    expect(repeated.body).toMatchObject({ status: 'completed', phase: 'done', url: expect.any(String) });
    expect(app.sandbox.requests).toHaveLength(requestsBefore);
  });

  it.each([
    ['another prompt', 'videos', { prompt: 'a crow' }],
    ['an additional field', 'videos', { ...INPUT, seed: 7 }],
    ['another verb', 'images', INPUT],
  ])('is rejected with %s, during its create and after it', async (_, verb, input) => {
    const app = openApp({ create: { videos: () => INPUT, images: () => INPUT } });
    const first = app.post('videos', { key: KEY, input: INPUT });
    const rejected = { status: 400, body: { code: 'idempotency_key_reused' } };
    expect(await app.post(verb, { key: KEY, input })).toMatchObject(rejected);
    expect((await first).status).toBe(200);
    expect(await app.post(verb, { key: KEY, input })).toMatchObject(rejected);
    expect([app.sandbox.jobs.length, app.errors]).toEqual([1, []]);
  });

  it('accepts another input if no job was created', async () => {
    const app = openApp();
    expect((await app.post('videos', { key: KEY, input: { prompt: '' } })).status).toBe(400);
    expect((await app.post('videos', { key: KEY, input: INPUT })).status).toBe(200);
  });

  it('returns its job after a deploy that changes the params, and after a secret rotation', async () => {
    const app = openApp();
    const { body } = await app.post('videos', { key: KEY, input: INPUT });
    const create = vi.spyOn(app.client.videos, 'create');
    const deployed = openApp({
      client: app.client,
      secret: [`${SECRET} that is new`, SECRET],
      create: { videos: () => ({ model: 'svc-video-pro', prompt: 'a fox, new version' }) },
    });
    const repeated = await deployed.post('videos', { key: KEY, input: INPUT });
    expect(repeated.status).toBe(200);
    expect(app.sandbox.jobs).toHaveLength(1);
    // The key identifies the input, not the params, so changed params cause no error or warning.
    expect(await create.mock.results[0]?.value).toMatchObject({ warnings: [] });
    for (const { ticket } of [body, repeated.body]) expect((await deployed.post('watch', { ticket })).status).toBe(200);
  });
});

describe('a finished job', () => {
  async function finishedJob(app: App, isFailed = false) {
    const { job } = await app.client.videos.create(INPUT);
    if (isFailed) app.sandbox.finish(job.id, { status: 'failed', errorCode: 'generation_rejected' });
    else await app.sandbox.advance(5 * MINUTE_MS);
    return app.proxy.ticket(job, ANN);
  }

  it.each([
    ['completed', false, { phase: 'done', url: expect.any(String), progress: 1, etaMs: 0 }],
    ['failed', true, { phase: 'failed', error: { code: 'generation_rejected', message: expect.any(String) } }],
  ])(
    'with the status %s is polled only once, even if a page watches it an hour later',
    async (status, isFailed, fields) => {
      const app = openApp({}, { clock: 'manual' });
      const ticket = await finishedJob(app, isFailed);
      const first = await app.post('watch', { ticket });
      expect(first.body).toMatchObject({ status, ...fields });
      const polls = requestsOf(app, 'GET').length;
      await app.sandbox.advance(60 * MINUTE_MS);
      const later = await app.post('watch', { ticket, seen: status });
      expect(later.body).toMatchObject({ status, ...fields });
      expect(requestsOf(app, 'GET')).toHaveLength(polls);
      expect((await app.post('watch', { ticket }, { user: 'ben' })).status).toBe(404);
    },
  );

  it('is returned immediately, even if the user has reached the limit of open requests', async () => {
    const app = openApp({}, { clock: 'manual', jobDurationMs: MINUTE_MS });
    const ended = await finishedJob(app);
    await app.post('watch', { ticket: ended });
    const { body } = await app.post('videos', { key: KEY, input: INPUT });
    await app.post('watch', { ticket: body.ticket });
    const held = Array.from({ length: 65 }, () => watchFrom(app, String(body.ticket)));
    expect((await Promise.race(held.map(({ response }) => response))).status).toBe(429);
    const gallery = await Promise.all(Array.from({ length: 200 }, () => app.post('watch', { ticket: ended })));
    expect(new Set(gallery.map(({ status }) => status))).toEqual(new Set([200]));
    for (const { disconnect } of held) disconnect();
  });
});
