import { describe, expect, test } from 'vitest';
import { setUp } from './plain-client.js';

const prompt = 'a fox at dawn';
const clip = 'https://cdn.example.com/broken-clip.mp4';
const image = 'https://cdn.example.com/a.png';
const WARNING = 'video_reference_fallback_omitted_clips';

describe('start and end frames beside reference images', () => {
  const frames = [
    { first_frame_url: image },
    { last_frame_url: image },
    { content: [{ type: 'image_url', image_url: image, role: 'first_frame' }] },
  ];
  const images = [{ reference_image_urls: [image] }, { referenceImageUrls: [image] }, { reference_images: [image] }];
  const pairs = frames.flatMap((frame) => images.map((one) => [frame, one] as const));

  test.each(pairs)('%j with %j is refused', async (frame, one) => {
    const body = { prompt, ...frame, ...one };
    expect(await setUp().code('POST', '/v1/videos', body)).toBe('reference_combination_not_supported');
  });

  test('frames alone and reference images alone pass', async () => {
    const client = setUp();
    await client.create('/v1/videos', { prompt, first_frame_url: image, last_frame_url: image });
    await client.create('/v1/videos', { prompt, reference_images: [image], reference_audios: [image] });
    expect(client.sandbox.jobs).toHaveLength(2);
  });
});

describe('the fallback without clips', () => {
  test.each(['reference_video_urls', 'referenceVideoUrls', 'reference_videos'])(
    'a failing clip under %s is left out, with the warning',
    async (field) => {
      const client = setUp();
      const { body } = await client.call('POST', '/v1/videos', { prompt, [field]: [clip] });
      expect(body.data.warnings).toEqual([WARNING]);
      expect(body.data.job).toMatchObject({ status: 'processing', warnings: [WARNING] });
      await client.sandbox.advance(3000);
      expect(await client.job(body.data.job.id)).toMatchObject({ status: 'completed', warnings: [WARNING] });
    },
  );

  test('a clip in content, and one that a test makes fail, are left out too', async () => {
    const client = setUp();
    const content = [
      { type: 'text', text: prompt },
      { type: 'video_url', video_url: { url: clip }, role: 'reference_video' },
    ];
    expect((await client.create('/v1/videos', { content })).warnings).toEqual([WARNING]);
    client.sandbox.outcomes.next({ clipsFail: true });
    const good = { prompt, reference_videos: ['https://cdn.example.com/good.mp4'] };
    expect((await client.create('/v1/videos', good)).warnings).toEqual([WARNING]);
    expect((await client.create('/v1/videos', good)).warnings).toBeUndefined();
  });

  test('in strict mode the job fails instead and its tokens are released', async () => {
    const client = setUp({ balanceTokens: 100 });
    const strict = { prompt, reference_videos: [clip], video_reference_mode: 'strict' };
    const { data } = (await client.call('POST', '/v1/videos', strict)).body;
    expect(data.job).toMatchObject({ status: 'failed', errorCode: 'reference_asset_failed', finalTokenCost: 0 });
    expect(data.warnings).toBeUndefined();
    expect(data.balance_tokens).toBe(100);
  });

  test('an unknown mode is refused rather than taken for the fallback', async () => {
    const body = { prompt, reference_videos: [clip], video_reference_mode: 'strcit' };
    expect(await setUp().code('POST', '/v1/videos', body)).toBe('invalid_request');
  });
});

describe('what becomes of a reference', () => {
  test('a photo of a real person is declined', async () => {
    const client = setUp();
    const id = await client.upload('IMAGE', 'real-person.png');
    const job = await client.create('/v1/images', { prompt, reference_upload_ids: [id] });
    expect(job).toMatchObject({ status: 'failed', errorCode: 'reference_rejected' });
  });

  test('one that cannot be prepared fails the job', async () => {
    const references = [{ type: 'image_url', url: 'https://cdn.example.com/broken.png' }];
    const job = await setUp().create('/v1/images', { prompt, references });
    expect(job).toMatchObject({ status: 'failed', errorCode: 'reference_asset_failed' });
  });

  test('one under review is refused until its review is over, then taken under a new key', async () => {
    const client = setUp({ review: { asset: 30_000 } });
    const id = await client.upload('IMAGE');
    const body = { prompt, first_frame_upload_id: id };
    await client.sandbox.advance(10_000);
    const early = await client.create('/v1/videos', body, { 'idempotency-key': 'k1' });
    expect(early).toMatchObject({ errorCode: 'reference_asset_pending', errorData: { retry_after: 20 } });
    await client.sandbox.advance(20_000);
    expect((await client.create('/v1/videos', body, { 'idempotency-key': 'k1' })).id).toBe(early.id);
    expect((await client.create('/v1/videos', body, { 'idempotency-key': 'k2' })).status).toBe('processing');
  });

  test('a URL is under review from its first use on', async () => {
    const client = setUp({ review: { asset: 30_000 } });
    const body = { prompt, reference_images: [image] };
    expect((await client.create('/v1/videos', body)).errorData).toEqual({ retry_after: 30 });
    await client.sandbox.advance(30_000);
    expect((await client.create('/v1/videos', body)).status).toBe('processing');
  });

  test.each([
    ['reference_image_upload_ids', 'VIDEO'],
    ['reference_video_upload_ids', 'IMAGE'],
    ['reference_audio_upload_ids', 'VIDEO'],
  ] as const)('%s takes no upload of type %s', async (field, type) => {
    const client = setUp();
    const id = await client.upload(type);
    expect(await client.code('POST', '/v1/videos', { prompt, [field]: [id] })).toBe('reference_upload_not_found');
  });

  test('an upload without its bytes, or of another account, is unknown', async () => {
    const client = setUp();
    const params = { file_name: 'a.png', mime_type: 'image/png', file_size: 64, upload_type: 'IMAGE' };
    const { upload_id } = (await client.call('POST', '/v1/uploads', params)).body.data;
    const theirs = await client.as(client.sandbox.createKey({ account: 'other' })).upload('IMAGE');
    for (const id of [upload_id, theirs]) {
      const body = { prompt, first_frame_upload_id: id };
      expect(await client.code('POST', '/v1/videos', body)).toBe('reference_upload_not_found');
    }
  });
});

test('content stands in for the prompt, and its text counts for the length', async () => {
  const client = setUp();
  const job = await client.create('/v1/videos', { content: [{ type: 'text', text: prompt }] });
  expect(client.sandbox.jobs.find(({ id }) => id === job.id)?.prompt).toBe(prompt);
  const long = [{ type: 'text', text: 'x'.repeat(100_000) }];
  expect(await client.code('POST', '/v1/videos', { content: long })).toBe('prompt_too_long');
  expect(await client.code('POST', '/v1/videos', { prompt, content: [{ type: 'smell' }] })).toBe('invalid_request');
});
