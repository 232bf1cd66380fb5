import { describe, expect, test } from 'vitest';
import { setUp } from './plain-client.js';

const prompt = 'a fox at dawn';
const clip = 'https://cdn.example.com/broken-clip.mp4';
const image = 'https://cdn.example.com/a.png';
const WARNING = 'video_reference_fallback_omitted_clips';

describe('the fallback without clips', () => {
  test.each(['reference_video_urls', 'referenceVideoUrls', 'reference_videos'])(
    'a failing clip in %s is omitted with a warning',
    async (field) => {
      const client = setUp();
      const { body } = await client.call('POST', '/v1/videos', { prompt, [field]: [clip] });
      expect(body.data.warnings).toEqual([WARNING]);
      await client.sandbox.advance(3000);
      expect(await client.job(body.data.job.id)).toMatchObject({ status: 'completed', warnings: [WARNING] });
    },
  );

  test('a failing clip in content is omitted, too, and a valid clip causes no warning', async () => {
    const client = setUp();
    const content = [
      { type: 'text', text: prompt },
      { type: 'video_url', video_url: { url: clip }, role: 'reference_video' },
    ];
    expect((await client.create('/v1/videos', { content })).warnings).toEqual([WARNING]);
    const good = { prompt, reference_videos: ['https://cdn.example.com/good.mp4'] };
    expect((await client.create('/v1/videos', good)).warnings).toBeUndefined();
  });

  test('in strict mode, the job fails instead and its tokens are released', async () => {
    const client = setUp({ balanceTokens: 100 });
    const strict = { prompt, reference_videos: [clip], video_reference_mode: 'strict' };
    const { data } = (await client.call('POST', '/v1/videos', strict)).body;
    expect(data.job).toMatchObject({ status: 'failed', errorCode: 'reference_asset_failed', finalTokenCost: 0 });
    expect([data.warnings, data.balance_tokens]).toEqual([undefined, 100]);
  });
});

describe('a reference', () => {
  test("is declined if it is a photo of a real person, and fails the job if it can't be prepared", async () => {
    const client = setUp();
    const declined = { prompt, reference_upload_ids: [await client.upload('IMAGE', 'real-person.png')] };
    expect(await client.create('/v1/images', declined)).toMatchObject({ errorCode: 'reference_rejected' });
    const references = [{ type: 'image_url', url: 'https://cdn.example.com/broken.png' }];
    const failed = await client.create('/v1/images', { prompt, references });
    expect(failed).toMatchObject({ status: 'failed', errorCode: 'reference_asset_failed' });
  });

  test('of an edit, or its source, fails with reference_asset_failed, and the tokens are released', async () => {
    const client = setUp({ review: { asset: 30_000 } });
    const edit = { prompt: 'make it snow', model: 'svc-video-pro', video: 'https://cdn.example.com/a.mp4' };
    const reference_images = ['https://cdn.example.com/real-person.png'];
    for (const body of [edit, { ...edit, video: clip }, { ...edit, reference_images }]) {
      const job = await client.create('/v1/video-edits', body);
      expect(job).toMatchObject({ status: 'failed', errorCode: 'reference_asset_failed', finalTokenCost: 0 });
    }
    expect(client.sandbox.ledger()).toMatchObject({ reservedTokens: 0, spentTokens: 0 });
  });

  test('under review is rejected until the review ends, then accepted with a new idempotency key', async () => {
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

  test('that is a URL enters review on its first use', async () => {
    const client = setUp({ review: { asset: 30_000 } });
    const body = { prompt, reference_images: [image] };
    expect((await client.create('/v1/videos', body)).errorData).toEqual({ retry_after: 30 });
    await client.sandbox.advance(30_000);
    expect((await client.create('/v1/videos', body)).status).toBe('processing');
  });
});

test('text in content replaces the prompt', async () => {
  const client = setUp();
  await client.create('/v1/videos', { content: [{ type: 'text', text: prompt }] });
  expect(client.sandbox.jobs[0]?.prompt).toBe(prompt);
});
