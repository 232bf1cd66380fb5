import { describe, expect, it } from 'vitest';
import { MODELS } from '../../src/index.js';
import { type Clock, systemClock } from '../../src/runtime/clock.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { SHAPES } from '../../src/sandbox/world/shapes.js';
import { created, freshKey, json, rejection, stubbed } from '../transport/support.js';
import { virtualClock } from '../waiting/virtual-clock.js';

/** A service that lists `models`, and counts how often it is asked. */
function service(models: unknown, options: object = {}) {
  const { client, seen } = stubbed(
    ({ url }) =>
      url.endsWith('/v1/models') ? (typeof models === 'function' ? models() : json(models)) : json(created()),
    { catalog: 'live', ...options },
  );
  return {
    client,
    asked: () => seen.filter(({ url }) => url.endsWith('/v1/models')).length,
    sent: () => seen.filter(({ method }) => method === 'POST').length,
  };
}

const live = { data: { models: [{ id: 'svc-video-fast', durations: [4, 5, 7], resolutions: ['480p', '1080p'] }] } };
const prompt = 'x';
const params = (more: object) => ({ prompt, ...more }) as { prompt: string };

describe("catalog: 'live'", () => {
  it('asks before it refuses, and sends what the service has come to offer', async () => {
    const { client, asked, sent } = service(live);
    await client.videos.create(params({ duration: 5 }));
    expect(asked()).toBe(0);
    await client.videos.create(params({ duration: 7 }));
    await client.videos.create(params({ duration: 7, resolution: '1080p' }));
    expect([asked(), sent()]).toEqual([1, 3]);
  });

  it('only its word refuses, and the message lists what it offers', async () => {
    const { client, sent } = service(live);
    const error = await rejection(client.videos.create(params({ duration: 30 })));
    expect(error).toMatchObject({ name: 'PreflightError', code: 'duration_not_supported', param: 'duration' });
    expect(String(error)).toContain('duration: 30 is not offered by svc-video-fast; it offers 4, 5, 7.');
    expect(sent()).toBe(0);
  });

  it('covers images and edits, and not the rules that no list tells', async () => {
    const { client, asked, sent } = service({
      models: [
        { alias: 'svc-image-fast', mediaLimits: { aspect_ratios: ['2:1'] } },
        { name: 'pro', aliases: ['svc-video-pro'], limits: { supported_durations: ['5s', '20s'] } },
      ],
    });
    await client.images.create(params({ model: 'svc-image-fast', ratio: '2:1' }));
    await client.videoEdits.create(
      params({ model: 'svc-video-pro', duration: 20, video: 'https://a.test/a.mp4' }) as never,
    );
    expect([asked(), sent()]).toEqual([1, 2]);
    await rejection(service(live).client.videos.create({} as never));
    const fresh = service(live);
    await rejection(fresh.client.videos.create({} as never));
    expect(fresh.asked()).toBe(0);
  });

  it.each<[string, unknown]>([
    ['an answer of another kind', { hello: 'world' }],
    ['an empty list', { data: { models: [] } }],
    ['durations that are not numbers', { data: { models: [{ id: 'svc-video-fast', durations: ['short', 'long'] }] } }],
    ['a list without the model', { data: { models: [{ id: 'svc-video-next', durations: [7] }] } }],
    ['a failure', () => json({}, { status: 503 })],
    ['no JSON', () => new Response('<html>')],
  ])('%s leaves it to the compiled table', async (_, models) => {
    const { client, sent } = service(models);
    const error = await rejection(client.videos.create(params({ duration: 7 })));
    expect(String(error)).toContain('it offers 4, 5, 6, 8, 10.');
    expect(sent()).toBe(0);
  });

  it('asks once an hour, for all clients of the account, and once for calls at the same time', async () => {
    let now = 1_000;
    const clock: Clock = { now: () => now, after: (ms, fire) => systemClock.after(ms, fire) };
    const options = { apiKey: freshKey(), [Symbol.for('gen-client.clock')]: clock };
    const one = service(live, options);
    await Promise.all([7, 7, 7].map((duration) => one.client.videos.create(params({ duration }))));
    const other = service(live, options);
    await other.client.videos.create(params({ duration: 7 }));
    now += 3_599_000;
    await one.client.videos.create(params({ duration: 7 }));
    expect([one.asked(), other.asked()]).toEqual([1, 0]);
    now += 2_000;
    await one.client.videos.create(params({ duration: 7 }));
    expect(one.asked()).toBe(2);
  });

  it('is not asked by default, nor without preflight', async () => {
    const compiled = service(live, { catalog: undefined });
    await rejection(compiled.client.videos.create(params({ duration: 7 })));
    expect(compiled.asked()).toBe(0);
    const open = service(live);
    await open.client.videos.create(params({ duration: 7 }), { preflight: false });
    expect(open.asked()).toBe(0);
  });

  it.each([
    ['of the call', { timeoutMs: 500 }, 500],
    ['of five seconds, however long the call may last', {}, 5_000],
  ])('waits for the answer within the limit %s', async (_, options, mostMs) => {
    const clock = virtualClock();
    const { client, sent } = service(() => new Promise(() => {}), { [Symbol.for('gen-client.clock')]: clock });
    const startMs = clock.now();
    const error = await clock.until(rejection(client.videos.create(params({ duration: 7 }), options)));
    expect(error).toMatchObject({ name: 'PreflightError', code: 'duration_not_supported' });
    expect(clock.now() - startMs).toBe(mostMs);
    expect(sent()).toBe(0);
  });

  it('remembers for a minute that the service could not answer', async () => {
    const clock = virtualClock();
    const options = { [Symbol.for('gen-client.clock')]: clock };
    const { client, asked } = service(() => json({}, { status: 503 }), options);
    const refused = () => clock.until(rejection(client.videos.create(params({ duration: 7 }))));
    for (let call = 0; call < 20; call++) await refused();
    await clock.advance(59_000);
    await refused();
    expect(asked()).toBe(1);
    await clock.advance(2_000);
    await refused();
    expect(asked()).toBe(2);
  });

  it('an abort ends the question', async () => {
    const controller = new AbortController();
    const reason = new Error('enough');
    const { client, sent } = service(() => {
      controller.abort(reason);
      return new Promise(() => {});
    });
    const refused = client.videos.create(params({ duration: 7 }), { signal: controller.signal });
    expect(await rejection(refused)).toBe(reason);
    expect(sent()).toBe(0);
  });
});

describe('models.drift()', () => {
  it.each(SHAPES.list)('tells no difference to the sandbox, whose list is %s', async (list) => {
    const drift = await createSandbox({ shapes: { list } }).client().models.drift();
    expect(drift).toEqual({ added: [], removed: [], changed: [] });
  });

  it('tells new aliases, missing ones and changed limits', async () => {
    const kept = Object.entries(MODELS).flatMap(([id, row]) => (id === 'svc-video-mini' ? [] : [{ id, ...row }]));
    const models = kept.map((model) => (model.id === 'svc-video-fast' ? { ...model, durations: [4, 5, 7] } : model));
    const { client } = service({ models: [...models, { id: 'svc-video-gen-3', durations: [60] }] });
    expect(await client.models.drift()).toEqual({
      added: ['svc-video-gen-3'],
      removed: ['svc-video-mini'],
      changed: [{ model: 'svc-video-fast', limit: 'durations', compiled: [4, 5, 6, 8, 10], live: [4, 5, 7] }],
    });
    const bare = service({ models: models.map(({ id }) => ({ id })) });
    expect(await bare.client.models.drift()).toEqual({ added: [], removed: ['svc-video-mini'], changed: [] });
  });
});
