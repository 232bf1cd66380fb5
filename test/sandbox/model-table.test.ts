import { expect, test } from 'vitest';
import created from '../fixtures/bodies/created-job.json' with { type: 'json' };
import bodies from '../fixtures/bodies/job-completed.json' with { type: 'json' };
import models from '../fixtures/models.json' with { type: 'json' };
import requestErrors from '../fixtures/request-errors.json' with { type: 'json' };
import { setUp } from './plain-client.js';

const prompt = 'a fox at dawn';
const every = {
  durations: [3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30, 31],
  sizes: ['480p', '720p', '1080p', '4k', '8k'],
};

test.each(models.filter(({ kind }) => kind === 'video'))(
  '$alias takes the documented durations and resolutions, and no other',
  async (row) => {
    const client = setUp({ balanceTokens: 1_000_000 });
    const { durations = [], resolutions } = row;
    for (const duration of every.durations) {
      const { status, body } = await client.call('POST', '/v1/videos', { prompt, model: row.alias, duration });
      const isOffered = durations.includes(duration);
      expect([duration, status, body.error?.code]).toEqual(
        isOffered ? [duration, 200, undefined] : [duration, 400, 'duration_not_supported'],
      );
    }
    for (const resolution of every.sizes) {
      const { status, body } = await client.call('POST', '/v1/videos', { prompt, model: row.alias, resolution });
      const isOffered = resolutions.includes(resolution);
      expect([resolution, status, body.error?.code]).toEqual(
        isOffered ? [resolution, 200, undefined] : [resolution, 400, 'resolution_not_supported'],
      );
    }
  },
);

test.each(models.filter(({ kind }) => kind === 'image'))(
  '$alias takes the documented ratios and resolutions, and no other',
  async (row) => {
    const client = setUp({ balanceTokens: 1_000_000 });
    for (const ratio of ['1:1', '4:5', '3:4', '9:16', '16:9', '21:9', '2:1']) {
      const { body } = await client.call('POST', '/v1/images', { prompt, model: row.alias, ratio });
      const isOffered = row.aspectRatios?.includes(ratio);
      expect([ratio, body.error?.code]).toEqual([ratio, isOffered ? undefined : 'aspect_ratio_not_supported']);
    }
    for (const resolution of ['standard', 'high', '720p']) {
      const { body } = await client.call('POST', '/v1/images', { prompt, model: row.alias, resolution });
      const isOffered = row.resolutions.includes(resolution);
      expect([resolution, body.error?.code]).toEqual([resolution, isOffered ? undefined : 'resolution_not_supported']);
    }
  },
);

test('an image model makes no video and a video model no image', async () => {
  const client = setUp();
  expect(await client.code('POST', '/v1/videos', { prompt, model: 'svc-image-pro' })).toBe('model_not_found');
  expect(await client.code('POST', '/v1/images', { prompt, model: 'svc-video-pro' })).toBe('model_not_found');
  expect(await client.code('POST', '/v1/images', { prompt, model: 'toString' })).toBe('model_not_found');
});

test('the model list is public, names every alias and its prompt limit', async () => {
  const { status, body } = await setUp().as('').call('GET', '/v1/models');
  expect(status).toBe(200);
  expect(body.data.models.map(({ alias }: { alias: string }) => alias)).toEqual(models.map(({ alias }) => alias));
  for (const model of body.data.models) expect(model.maxPromptChars).toBeGreaterThan(0);
});

test('everything but the model list needs a key', async () => {
  const nobody = setUp().as('');
  const paths = [
    '/v1/voices',
    '/v1/characters',
    '/v1/jobs/x',
    '/v1/jobs/x/output',
    '/api/service/developers/docs.json',
  ];
  for (const path of paths) expect([path, await nobody.code('GET', path)]).toEqual([path, 'invalid_api_key']);
  for (const path of ['/v1/images', '/v1/videos', '/v1/video-edits', '/v1/characters', '/v1/uploads']) {
    expect([path, await nobody.code('POST', path, { prompt })]).toEqual([path, 'invalid_api_key']);
  }
});

test('a create and a finished job have the documented fields', async () => {
  const client = setUp();
  const { body } = await client.call('POST', '/v1/videos', { prompt });
  expect(Object.keys(body.data)).toEqual(expect.arrayContaining(Object.keys(created.data)));
  expect(Object.keys(body.data.job)).toEqual(expect.arrayContaining(Object.keys(created.data.job)));
  await client.sandbox.advance(3000);
  const job = await client.job(body.data.job.id);
  expect(Object.keys(job)).toEqual(expect.arrayContaining(Object.keys(bodies.data.job)));
  expect(job).toMatchObject({ modelId: 'svc-video-fast', mediaType: 'video', status: 'completed' });
});

test('voices and integration data are listed', async () => {
  const client = setUp();
  expect((await client.call('GET', '/v1/voices')).body.data.voices.length).toBeGreaterThan(0);
  const docs = (await client.call('GET', '/api/service/developers/docs.json')).body.data;
  expect(docs.models).toHaveLength(models.length);
  expect(docs.requestErrors).toHaveLength(requestErrors.length);
});
