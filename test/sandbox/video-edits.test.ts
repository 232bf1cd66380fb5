import { expect, test } from 'vitest';
import { setUp } from './plain-client.js';

const base = { prompt: 'make it snow', video: 'https://cdn.example.com/a.mp4' };

/** The two doors of an edit (spec: POST /v1/video-edits, rule 8). */
const doors = [
  ['/v1/video-edits', {}],
  ['/v1/videos', { intent: 'video_edit' }],
] as const;

test.each(doors)('%s with %j: the 2.0 family edits, and nothing else', async (path, intent) => {
  const client = setUp();
  for (const model of ['svc-video-pro', 'svc-video-fast', 'svc-video-mini']) {
    const { body } = await client.call('POST', path, { ...base, ...intent, model });
    expect(body.data.job).toMatchObject({ status: 'processing', modelId: model, mediaType: 'video' });
  }
  for (const model of ['svc-video-gen-1-5', 'svc-video-gen-2-5', 'svc-image-pro', 'svc-video-none']) {
    const code = await client.code('POST', path, { ...base, ...intent, model });
    expect([model, code]).toEqual([model, 'video_edit_model_not_supported']);
  }
  expect(client.sandbox.jobs.every(({ kind }) => kind === 'edit')).toBe(true);
});

test('a model is required at /v1/video-edits; by intent it is the default', async () => {
  const client = setUp();
  expect(await client.code('POST', '/v1/video-edits', base)).toBe('video_edit_model_not_supported');
  expect((await client.create('/v1/videos', { ...base, intent: 'video_edit' })).modelId).toBe('svc-video-fast');
});

test.each(doors)('%s with %j: the source may be an upload or a URL', async (path, intent) => {
  const client = setUp();
  const model = 'svc-video-pro';
  const upload = await client.upload('VIDEO');
  const sources = [{ source_video_upload_id: upload }, { video: base.video }, { source_video_url: base.video }];
  for (const source of sources) {
    await client.create(path, { prompt: base.prompt, ...intent, model, ...source });
  }
  expect(await client.code('POST', path, { prompt: base.prompt, ...intent, model })).toBe('video_edit_source_required');
});

test.each(['IMAGE', 'AUDIO'] as const)('an upload of type %s as the source is refused before billing', async (type) => {
  const client = setUp({ balanceTokens: 100 });
  const id = await client.upload(type);
  const body = { model: 'svc-video-pro', prompt: 'make it snow', source_video_upload_id: id };
  expect(await client.code('POST', '/v1/video-edits', body)).toBe('video_edit_source_not_found');
  expect(client.sandbox.ledger().entries).toHaveLength(1);
});

test('whatever befalls source or references ends as reference_asset_failed, with the tokens released', async () => {
  const client = setUp({ review: { asset: 30_000 } });
  const model = 'svc-video-pro';
  const bad = [
    { video: 'https://cdn.example.com/broken.mp4' },
    { video: base.video },
    { video: base.video, reference_images: ['https://cdn.example.com/real-person.png'] },
  ];
  for (const source of bad) {
    const job = await client.create('/v1/video-edits', { prompt: base.prompt, model, ...source });
    expect(job).toMatchObject({ status: 'failed', errorCode: 'reference_asset_failed', finalTokenCost: 0 });
  }
  expect(client.sandbox.ledger()).toMatchObject({ reservedTokens: 0, spentTokens: 0 });
});

test('one’s own face may be edited; celebrity, public-figure, deepfake and impersonation wording may not', async () => {
  const client = setUp();
  const edit = { ...base, model: 'svc-video-pro' };
  const own = 'replace the face with my own face from the reference image, an exact match of my appearance';
  expect((await client.call('POST', '/v1/video-edits', { ...edit, prompt: own })).status).toBe(200);
  for (const who of ['a celebrity', 'a public figure', 'a deepfake', 'an impersonation of the mayor']) {
    const prompt = `make the dancer ${who}`;
    expect(await client.code('POST', '/v1/video-edits', { ...edit, prompt })).toBe('person_match_prompt_unsafe');
  }
});

test('the ratio is adaptive unless given, and the modes are transform, restyle and extend', async () => {
  const client = setUp();
  const edit = { ...base, model: 'svc-video-fast' };
  for (const edit_mode of ['transform', 'restyle', 'extend'])
    await client.create('/v1/video-edits', { ...edit, edit_mode });
  await client.create('/v1/video-edits', { ...edit, ratio: '9:16', duration: 8, resolution: '480p' });
  expect(await client.code('POST', '/v1/video-edits', { ...edit, edit_mode: 'melt' })).toBe('invalid_request');
  expect(await client.code('POST', '/v1/video-edits', { ...edit, duration: 7 })).toBe('duration_not_supported');
  expect(await client.code('POST', '/v1/video-edits', { ...edit, prompt: '' })).toBe('prompt_required');
  expect(await client.code('POST', '/v1/video-edits', { ...edit, resolution: '4k' })).toBe('resolution_not_supported');
});
