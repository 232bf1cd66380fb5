// How the service's list of models may be written, and what is read of it.
import { describe, expect, it } from 'vitest';
import { MODELS } from '../../src/index.js';
import { virtualClock } from '../waiting/virtual-clock.js';
import { BASE_URL, created, freshKey, json, rejection, stubbed } from './support.js';

const ID = 'svc-video-fast';
const IMAGES = 'svc-image-fast';

/** What `models.drift()` says of one model that the service tells of in this form. */
async function driftOf(model: unknown, own = ID) {
  const others = Object.keys(MODELS).filter((id) => id !== own);
  const models = [model, ...others.map((id) => ({ id }))];
  return stubbed(() => json({ data: { models } })).client.models.drift();
}

const changed = (limit: string, live: readonly (number | string)[], model = ID) => ({
  added: [],
  removed: [],
  changed: [{ model, limit, compiled: expect.any(Array), live }],
});
const SAME = { added: [], removed: [], changed: [] };

describe('the limits of a model', () => {
  it.each<[string, string, unknown[], readonly (number | string)[]]>([
    ...[
      'durations',
      'duration',
      'Durations',
      'supported_durations',
      'allowedDurations',
      'duration_seconds',
      'durations-s',
    ].map((name): [string, string, unknown[], number[]] => [name, 'durations', [1, 2], [1, 2]]),
    ['durations', 'durations', ['5', '7s', '9 s', '11 sec', '12 seconds'], [5, 7, 9, 11, 12]],
    ...['aspect_ratios', 'ratios', 'supportedAspectRatios', 'allowed_ratios', 'ASPECT-RATIOS'].map(
      (name): [string, string, unknown[], string[]] => [name, 'aspectRatios', ['2:1'], ['2:1']],
    ),
    ...['resolutions', 'supported_resolutions', 'allowedResolutions'].map(
      (name): [string, string, unknown[], string[]] => [name, 'resolutions', ['8k'], ['8k']],
    ),
  ])('are read from %s as %s: %j', async (name, limit, list, live) => {
    const model = limit === 'aspectRatios' ? IMAGES : ID;
    expect(await driftOf({ id: model, [name]: list }, model)).toEqual(changed(limit, live, model));
  });

  it.each<[string, object]>([
    ['in an object', { limits: { durations: [1] } }],
    ['in an object of an object of an object', { a: { b: { c: { durations: [1] } } } }],
    ['beside others', { name: 'x', tags: ['a'], limits: { durations: [1] } }],
    ['nearest first', { deeper: { durations: [2] }, durations: [1] }],
    ['nearest first, in the other order', { durations: [1], deeper: { durations: [2] } }],
  ])('are read %s', async (_, fields) => {
    expect(await driftOf({ id: ID, ...fields })).toMatchObject({ changed: [{ limit: 'durations', live: [1] }] });
  });

  it.each<[string, object]>([
    ['four objects deep', { a: { b: { c: { d: { durations: [1] } } } } }],
    ['in a list', { limits: [{ durations: [1] }] }],
    ['without a value', { durations: [] }],
    ['that are no list', { durations: 1 }],
    ['of which one cannot be read', { durations: [1, 'long'] }],
    ['that are not above 0', { durations: [0] }],
    ['that are not texts', { resolutions: [720] }],
    ['with another ending', { durations_max: [1], maxDurations: [1], aspect_ratio: ['2:1'], resolution: ['8k'] }],
    ['with another word before them', { old_durations: [1], image_resolutions: ['8k'], my_ratios: ['2:1'] }],
    ['with another unit', { durations: ['1 m'] }],
  ])('are not read %s', async (_, fields) => {
    expect(await driftOf({ id: ID, ...fields })).toEqual(SAME);
  });

  it.each<[string, object]>([
    ['id', { id: ID }],
    ['alias', { alias: ID }],
    ['name', { name: ID }],
    ['model', { model: ID }],
    ['one of its aliases', { aliases: ['other', ID], id: 'svc-image-fast' }],
  ])('are those of the model by %s', async (_, name) => {
    expect((await driftOf({ ...name, durations: [1] })).changed).toContainEqual({
      model: ID,
      limit: 'durations',
      compiled: MODELS[ID].durations,
      live: [1],
    });
  });

  it('are the same in another order, and others where one is missing or more', async () => {
    const own = [...MODELS[ID].durations];
    expect(await driftOf({ id: ID, durations: own.toReversed() })).toEqual(SAME);
    expect(await driftOf({ id: ID, durations: own.slice(1) })).toEqual(changed('durations', own.slice(1)));
    expect(await driftOf({ id: ID, durations: [...own, 60] })).toEqual(changed('durations', [...own, 60]));
    const replaced = [...own.slice(1), 60];
    expect(await driftOf({ id: ID, durations: replaced })).toEqual(changed('durations', replaced));
  });

  it('and names that are not texts are no names', async () => {
    expect(await driftOf({ id: ID, alias: 7, aliases: [null] })).toEqual(SAME);
  });
});

describe("catalog: 'live'", () => {
  const prompt = 'a fox at dawn';
  const asking = (answer: () => Response | Promise<Response>, options: object = {}) => {
    const clock = virtualClock();
    const { client, seen } = stubbed(({ url }) => (url.endsWith('/v1/models') ? answer() : json(created())), {
      catalog: 'live',
      [Symbol.for('gen-client.clock')]: clock,
      ...options,
    });
    const create = (duration: number) => client.videos.create({ prompt, duration: duration as never });
    const asked = () => seen.filter(({ url }) => url.endsWith('/v1/models')).length;
    return { client, clock, seen, create, asked };
  };
  const live = (...durations: number[]) => json({ models: [{ id: ID, durations }] });

  it('sends what the service offers, and no other value, with its params', async () => {
    const { create, seen } = asking(() => live(7));
    await create(7);
    expect(seen.map(({ method, url, body }) => [method, url, body])).toEqual([
      ['GET', `${BASE_URL}/v1/models`, ''],
      ['POST', `${BASE_URL}/v1/videos`, JSON.stringify({ prompt, duration: 7 })],
    ]);
    expect(await rejection(create(9))).toMatchObject({
      name: 'PreflightError',
      message: 'duration: 9 is not offered by svc-video-fast; it offers 7.',
    });
    expect(seen).toHaveLength(2);
  });

  it('is asked once, and leaves the refusal to the compiled table, where it cannot be reached', async () => {
    const { create, asked } = asking(() => json({}, { status: 503 }));
    const error = await rejection(create(7));
    expect(error).toMatchObject({ name: 'PreflightError', code: 'duration_not_supported' });
    expect(asked()).toBe(1);
  });

  it('is believed for an hour, and a failed read for a minute', async () => {
    const answers = [() => live(7), () => json({}, { status: 503 }), () => live(9)];
    const { create, clock, asked } = asking(() => (answers.shift() ?? (() => live(9)))());
    await create(7);
    await clock.advance(3_599_999);
    await create(7);
    expect(asked()).toBe(1);
    await clock.advance(1);
    expect(await rejection(create(7))).toMatchObject({ name: 'PreflightError' });
    expect(asked()).toBe(2);
    await clock.advance(59_999);
    expect(await rejection(create(9))).toMatchObject({ name: 'PreflightError' });
    expect(asked()).toBe(2);
    await clock.advance(1);
    await create(9);
    expect(asked()).toBe(3);
  });

  it('is asked once by calls of the same moment, and by each of them on Workers', async () => {
    for (const [perRequest, times] of [
      [false, 1],
      [true, 3],
    ] as const) {
      const clock = { ...virtualClock(), perRequest };
      const options = { apiKey: freshKey(), [Symbol.for('gen-client.clock')]: clock };
      const { create, asked } = asking(() => live(7), options);
      await Promise.all([create(7), create(7), create(7)]);
      expect(asked()).toBe(times);
      await create(7);
      expect(asked()).toBe(times);
    }
  });

  it('an abort of one call says nothing about the service to the next', async () => {
    let isAway = true;
    const { client, create, asked } = asking(() => (isAway ? new Promise<Response>(() => {}) : live(7)));
    const controller = new AbortController();
    const aborted = rejection(client.videos.create({ prompt, duration: 7 as never }, { signal: controller.signal }));
    await new Promise(setImmediate);
    controller.abort('enough');
    expect(await aborted).toBe('enough');
    isAway = false;
    await create(7);
    expect(asked()).toBe(2);
  });
});
