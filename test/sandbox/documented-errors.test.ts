import { expect, test } from 'vitest';
import jobErrors from '../fixtures/job-errors.json' with { type: 'json' };
import requestErrors from '../fixtures/request-errors.json' with { type: 'json' };
import { type Answer, type PlainClient, setUp } from './plain-client.js';

const prompt = 'a fox at dawn';
const video = { prompt };

/** How a plain client brings each documented request error about. */
const provoke: Record<string, () => Promise<Answer>> = {
  invalid_api_key: () => setUp().as('sk_wrong').call('GET', '/v1/voices'),
  insufficient_balance: () => setUp({ balanceTokens: 3 }).call('POST', '/v1/videos', video),
  account_not_active: () => keyed({ suspended: true }).call('POST', '/v1/videos', video),
  scope_missing: () => keyed({ scopes: ['videos:create'] }).call('POST', '/v1/images', video),
  job_not_found: () => setUp().call('GET', '/v1/jobs/job_unknown'),
  character_not_found: () => setUp().call('POST', '/v1/videos', { prompt, character_ids: ['nobody'] }),
  upload_not_found: () => setUp().call('DELETE', '/v1/uploads/upl_unknown'),
  reference_upload_not_found: () =>
    setUp().call('POST', '/v1/videos', { prompt, reference_image_upload_ids: ['upl_unknown'] }),
  video_edit_source_not_found: () =>
    setUp().call('POST', '/v1/video-edits', { ...edit, source_video_upload_id: 'upl_unknown' }),
  upload_in_use: async () => {
    const client = setUp();
    const id = await client.upload('IMAGE');
    await client.create('/v1/videos', { prompt, first_frame_upload_id: id });
    return client.call('DELETE', `/v1/uploads/${id}`);
  },
  character_pending: async () => {
    const client = setUp({ review: { character: 20_000 } });
    const id = await register(client);
    return client.call('POST', '/v1/videos', { prompt, character_ids: [id] });
  },
  upload_too_large: () => setUp().call('POST', '/v1/uploads', { ...file, file_size: 200 * 1024 * 1024 + 1 }),
  character_registration_failed: async () => {
    const client = setUp();
    const upload_id = await client.upload('IMAGE', 'rejected.png');
    return client.call('POST', '/v1/characters', { mode: 'register', name: 'Ada', upload_id });
  },
  rate_limited: async () => {
    const client = setUp({ limits: { 'videos.create': { limit: 1, windowMs: 60_000 } } });
    await client.create('/v1/videos');
    return client.call('POST', '/v1/videos', video);
  },
  prompt_required: () => setUp().call('POST', '/v1/videos', { prompt: '  ' }),
  prompt_too_long: () => setUp().call('POST', '/v1/images', { prompt: 'x'.repeat(100_000) }),
  model_not_found: () => setUp().call('POST', '/v1/videos', { prompt, model: 'svc-video-none' }),
  duration_not_supported: () => setUp().call('POST', '/v1/videos', { prompt, duration: 7 }),
  aspect_ratio_not_supported: () => setUp().call('POST', '/v1/images', { prompt, ratio: '21:9' }),
  resolution_not_supported: () => setUp().call('POST', '/v1/videos', { prompt, resolution: '4k' }),
  reference_combination_not_supported: () =>
    setUp().call('POST', '/v1/videos', {
      prompt,
      first_frame_url: 'https://cdn.example.com/a.png',
      reference_images: ['https://cdn.example.com/b.png'],
    }),
  character_prompt_unsafe: () =>
    setUp().call('POST', '/v1/characters', { name: 'Ada', prompt: 'an exact look-alike of a celebrity' }),
  person_match_prompt_unsafe: () =>
    setUp().call('POST', '/v1/images', {
      prompt: 'match the face of a real person',
      reference_image_urls: ['https://cdn.example.com/a.png'],
    }),
  upload_invalid: () => setUp().call('POST', '/v1/uploads', { ...file, upload_type: 'DOCUMENT' }),
  video_edit_model_not_supported: () =>
    setUp().call('POST', '/v1/video-edits', { ...edit, model: 'svc-video-gen-1-5', video: 'https://e.example/a.mp4' }),
  video_edit_source_required: () => setUp().call('POST', '/v1/video-edits', edit),
  // The document names its cause, the speech operation, and does not show it.
  voice_required: () => {
    const client = setUp();
    client.sandbox.faults.add({ status: 400, code: 'voice_required' });
    return client.call('POST', '/v1/speech', { text: 'hello' });
  },
  internal_error: () => {
    const client = setUp();
    client.sandbox.faults.add({ status: 500 });
    return client.call('POST', '/v1/videos', video);
  },
  dispatch_disabled: () => setUp({ dispatch: 'disabled' }).call('POST', '/v1/videos', video),
};

const edit = { model: 'svc-video-pro', prompt };
const file = { file_name: 'a.mp4', mime_type: 'video/mp4', file_size: 10, upload_type: 'VIDEO' };

function keyed(options: Parameters<PlainClient['sandbox']['createKey']>[0]): PlainClient {
  const client = setUp();
  return client.as(client.sandbox.createKey(options));
}

async function register(client: PlainClient): Promise<string> {
  const upload_id = await client.upload('IMAGE');
  const { body } = await client.call('POST', '/v1/characters', { mode: 'register', name: 'Ada', upload_id });
  return body.data.character.character_id;
}

test.each(requestErrors)('the request error $code comes with HTTP $status', async ({ code, status }) => {
  const answer = await provoke[code]?.();
  expect(answer?.body).toMatchObject({ success: false, error: { code, message: expect.any(String) } });
  expect(answer?.status).toBe(status);
});

test('there are 29 request errors and 7 job errors, and no other is provoked here', () => {
  expect(requestErrors).toHaveLength(29);
  expect(jobErrors).toHaveLength(7);
  expect(Object.keys(provoke).sort()).toEqual(requestErrors.map(({ code }) => code).sort());
});

test.each(jobErrors)('a prompt can ask for the job error $code', async ({ code }) => {
  const client = setUp();
  const { id } = await client.create('/v1/videos', { prompt: `a fox [fail:${code}]` });
  await client.sandbox.advance(3000);
  expect(await client.job(id)).toMatchObject({
    status: 'failed',
    errorCode: code,
    errorMessage: expect.any(String),
    finalTokenCost: 0,
    providerOutputUrl: null,
  });
});

test('insufficient_balance links to the billing page', async () => {
  const { body } = (await provoke.insufficient_balance?.()) ?? {};
  expect(body.data.top_up_url).toMatch(/^https:.*\/development\?section=billing$/);
});

test('character_pending and rate_limited say how many seconds to wait', async () => {
  const pending = await provoke.character_pending?.();
  expect(pending?.body.data.retry_after).toBe(20);
  const limited = await provoke.rate_limited?.();
  expect(limited?.headers.get('retry-after')).toBe('60');
});

test('reference_asset_pending carries retry_after in errorData', async () => {
  const client = setUp({ review: { asset: 45_000 } });
  const id = await client.upload('IMAGE');
  const job = await client.create('/v1/videos', { prompt, reference_image_upload_ids: [id] });
  expect(job).toMatchObject({ status: 'failed', errorCode: 'reference_asset_pending', errorData: { retry_after: 45 } });
});

test('a body that is no JSON object, and an unknown path, get codes of the sandbox’s own', async () => {
  const client = setUp();
  expect(await client.code('POST', '/v1/videos', '[1]')).toBe('invalid_request');
  expect(await client.code('POST', '/v1/videos', '{"prompt":')).toBe('invalid_request');
  expect(await client.code('POST', '/v1/videos', { prompt, watermark: 'yes' })).toBe('invalid_request');
  expect(await client.code('POST', '/v1/nothing', {})).toBe('not_found');
});
