// Where the document is strict, a program that is wrong must fail here as it would fail there.
import { describe, expect, test } from 'vitest';
import { png, receiver, setUp } from './plain-client.js';

const prompt = 'a fox at dawn';
const image = 'https://cdn.example.com/a.png';
const clip = 'https://cdn.example.com/a.mp4';
const audio = 'https://cdn.example.com/a.mp3';
const edit = { prompt, model: 'svc-video-pro', video: clip };

describe('a reference URL is public and HTTPS, in every field', () => {
  const fields: readonly (readonly [path: string, body: (url: string) => object])[] = [
    ['/v1/images', (url) => ({ prompt, references: [{ type: 'image_url', url }] })],
    ['/v1/images', (url) => ({ prompt, reference_image_urls: [url] })],
    ['/v1/images', (url) => ({ prompt, referenceImageUrls: [url] })],
    ['/v1/images', (url) => ({ prompt, reference_images: [url] })],
    ['/v1/videos', (url) => ({ prompt, first_frame_url: url })],
    ['/v1/videos', (url) => ({ prompt, first_frame_url: image, last_frame_url: url })],
    ['/v1/videos', (url) => ({ prompt, reference_video_urls: [url] })],
    ['/v1/videos', (url) => ({ prompt, reference_audios: [url] })],
    ['/v1/videos', (url) => ({ prompt, content: [{ type: 'image_url', image_url: url, role: 'first_frame' }] })],
    [
      '/v1/videos',
      (url) => ({ prompt, content: [{ type: 'video_url', video_url: { url }, role: 'reference_video' }] }),
    ],
    ['/v1/videos', (url) => ({ prompt, content: [{ type: 'audio_url', audio_url: url, role: 'reference_audio' }] })],
    ['/v1/videos', (url) => ({ ...edit, intent: 'video_edit', video: url })],
    ['/v1/video-edits', (url) => ({ ...edit, video: undefined, source_video_url: url })],
    ['/v1/video-edits', (url) => ({ ...edit, reference_images: [url] })],
  ];
  const wrong = [
    'javascript:alert(1)',
    'file:///etc/passwd',
    'http://cdn.example.com/a.png',
    'a.png',
    'https://localhost/a.png',
    'https://127.0.0.1/a.png',
    'https://10.0.0.7/a.png',
    'https://192.168.1.1/a.png',
    'https://[::1]/a.png',
    'https://minio/a.png',
    'https://files.internal/a.png',
  ];

  test.each(fields)('%s %o', async (path, body) => {
    const client = setUp();
    for (const url of wrong)
      expect([url, await client.code('POST', path, body(url))]).toEqual([url, 'invalid_request']);
    expect((await client.call('POST', path, body('https://a.test/x'))).status).toBe(200);
    expect(client.sandbox.jobs).toHaveLength(1);
  });
});

describe('a field that the document does not list for a call has no effect', () => {
  test('aspect_ratio on an image makes no other picture, and ratio does', async () => {
    const client = setUp({ jobDurationMs: 0 });
    const sizeOf = async (body: object) => {
      const { id } = await client.create('/v1/images', { prompt, ...body });
      const { sandbox } = client;
      const headers = { authorization: `Bearer ${sandbox.apiKey}` };
      const file = await sandbox.fetch(`${sandbox.baseUrl}/v1/jobs/${id}/output`, { headers });
      const view = new DataView(await file.arrayBuffer());
      return [view.getUint32(16), view.getUint32(20)];
    };
    expect(await sizeOf({ aspect_ratio: '16:9' })).toEqual([1024, 1024]);
    expect(await sizeOf({ aspect_ratio: 'wide', seconds: 'x', generate_audio: 7 })).toEqual([1024, 1024]);
    expect(await sizeOf({ ratio: '16:9' })).toEqual([1360, 765]);
  });

  test('a character takes aspect_ratio, and neither ratio nor a model', async () => {
    const client = setUp();
    const body = { prompt, name: 'Ada' };
    expect(await client.code('POST', '/v1/characters', { ...body, aspect_ratio: '1:9' })).toBe(
      'aspect_ratio_not_supported',
    );
    expect(await client.create('/v1/characters', { ...body, ratio: '1:9', model: 'x' })).toMatchObject({
      modelId: 'svc-image-pro',
    });
  });
});

describe('an empty string is refused', () => {
  test.each([
    ['/v1/images', { ratio: '' }, 'aspect_ratio_not_supported'],
    ['/v1/images', { resolution: '' }, 'resolution_not_supported'],
    ['/v1/images', { model: '' }, 'model_not_found'],
    ['/v1/images', { reference_upload_ids: [''] }, 'invalid_request'],
    ['/v1/images', { reference_image_urls: [''] }, 'invalid_request'],
    ['/v1/images', { references: [{ type: 'image_url', url: '' }] }, 'invalid_request'],
    ['/v1/images', { character_ids: [''] }, 'character_not_found'],
    ['/v1/images', { idempotency_key: '' }, 'invalid_request'],
    ['/v1/images', { callback_url: '' }, 'invalid_request'],
    ['/v1/characters', { name: 'Ada', reference_upload_ids: [' '] }, 'invalid_request'],
    ['/v1/videos', { first_frame_upload_id: '' }, 'invalid_request'],
    ['/v1/videos', { last_frame_url: '' }, 'invalid_request'],
    ['/v1/videos', { reference_video_upload_ids: ['upl_1', ''] }, 'invalid_request'],
    ['/v1/videos', { webhook_url: '' }, 'invalid_request'],
    ['/v1/videos', { safety_identifier: '' }, 'invalid_request'],
    ['/v1/videos', { video_reference_mode: '' }, 'invalid_request'],
    ['/v1/video-edits', { ...edit, source_video_upload_id: '', video: undefined }, 'invalid_request'],
    ['/v1/video-edits', { ...edit, video: '' }, 'invalid_request'],
  ] as const)('%s %j', async (path, body, code) => {
    const client = setUp();
    expect(await client.code('POST', path, { prompt, ...body })).toBe(code);
    expect(client.sandbox.jobs).toEqual([]);
  });
});

test.each([
  ['/v1/videos', { intent: 'foo' }],
  ['/v1/videos', { video_reference_mode: 'loose' }],
  ['/v1/images', { response_format: 'b64_json' }],
  ['/v1/video-edits', { ...edit, edit_mode: 'remix' }],
  ['/v1/video-edits', { ...edit, source_video_url: clip }],
  ['/v1/video-edits', { ...edit, source_video_upload_id: 'upl_1' }],
])('a value that the document does not give, and a second source, are refused: %s %j', async (path, body) => {
  expect(await setUp().code('POST', path, { prompt, ...body })).toBe('invalid_request');
});

describe('one kind of reference per request', () => {
  const frames = { first_frame_url: image };
  const images = { reference_images: [image] };
  const clips = { reference_videos: [clip] };
  const sound = { reference_audios: [audio] };
  const content = { content: [{ type: 'image_url', image_url: image, role: 'first_frame' }] };
  const refused = async (references: object) =>
    (await setUp().code('POST', '/v1/videos', { prompt, ...references })) === 'reference_combination_not_supported';

  test.each([
    ['frames and images', { ...frames, ...images }],
    ['frames and clips', { ...frames, ...clips }],
    ['frames and audio', { ...frames, ...sound }],
    ['a frame in content and clips', { ...content, ...clips }],
  ])('%s are refused', async (_, references) => {
    expect(await refused(references)).toBe(true);
  });

  test('images, clips and audio guide a video together', async () => {
    for (const references of [
      frames,
      images,
      clips,
      sound,
      { ...images, ...clips },
      { ...images, ...clips, ...sound },
    ]) {
      expect([references, await refused(references)]).toEqual([references, false]);
    }
  });

  test('an edit takes images and audio beside its source, and neither frames nor clips', async () => {
    const client = setUp();
    expect((await client.call('POST', '/v1/video-edits', { ...edit, ...images, ...sound })).status).toBe(200);
    for (const references of [
      frames,
      clips,
      { last_frame_upload_id: 'upl_1' },
      { reference_video_upload_ids: ['upl_1'] },
    ]) {
      const code = await client.code('POST', '/v1/video-edits', { ...edit, ...references });
      expect(code).toBe('reference_combination_not_supported');
    }
  });
});

describe('content', () => {
  test.each([
    [
      { type: 'image_url', image_url: image },
      'content: an item of type image_url needs role "first_frame", not undefined.',
    ],
    [
      { type: 'image_url', image_url: image, role: 'reference_video' },
      'content: an item of type image_url needs role "first_frame", not "reference_video".',
    ],
    [
      { type: 'video_url', video_url: { url: clip }, role: 'first_frame' },
      'content: an item of type video_url needs role "reference_video", not "first_frame".',
    ],
    [
      { type: 'audio_url', audio_url: audio, role: 'reference_video' },
      'content: an item of type audio_url needs role "reference_audio", not "reference_video".',
    ],
    [
      { type: 'video_url', video_url: clip, role: 'reference_video' },
      `content: video_url must be an object with url, not "${clip}".`,
    ],
    [
      { type: 'image_url', image_url: { url: image }, role: 'first_frame' },
      'image_url must be a string, not an object.',
    ],
    [
      { type: 'constructor' },
      'content must have items of type text, image_url, video_url, audio_url, not "constructor".',
    ],
    ['text', 'content must be a list of objects, not "text".'],
  ])('%j is refused', async (item, message) => {
    const refused = await setUp().call('POST', '/v1/videos', { prompt, content: [item] });
    expect([refused.status, refused.body.error]).toEqual([400, { code: 'invalid_request', message }]);
  });
});

test('adaptive is a ratio of edits only', async () => {
  const client = setUp();
  for (const field of ['aspect_ratio', 'ratio']) {
    expect(await client.code('POST', '/v1/videos', { prompt, [field]: 'adaptive' })).toBe('aspect_ratio_not_supported');
    expect((await client.call('POST', '/v1/video-edits', { ...edit, [field]: 'adaptive' })).status).toBe(200);
  }
});

test('camera_fixed is left out beside frames and images, as the document says', async () => {
  const client = setUp();
  for (const picture of [{ first_frame_url: image }, { reference_images: [image] }]) {
    for (const camera_fixed of [true, false]) {
      expect(await client.code('POST', '/v1/videos', { prompt, camera_fixed, ...picture })).toBe('invalid_request');
    }
  }
  expect(
    (await client.call('POST', '/v1/videos', { prompt, camera_fixed: true, reference_videos: [clip] })).status,
  ).toBe(200);
});

test('a completed upload takes no other bytes (once, a second PUT broke complete and left the upload usable)', async () => {
  const client = setUp();
  const params = { file_name: 'a.png', mime_type: 'image/png', file_size: 64, upload_type: 'IMAGE' };
  const { data } = (await client.call('POST', '/v1/uploads', params)).body;
  const put = (url: string, headers: Record<string, string>, size: number) =>
    client.sandbox.fetch(url, { method: 'PUT', headers, body: new Uint8Array(size) });
  await client.sandbox.fetch(data.direct_upload_url, { method: 'PUT', headers: data.headers, body: png(640) });
  const complete = () => client.call('POST', '/v1/uploads/complete', { upload_id: data.upload_id });
  expect((await complete()).status).toBe(200);
  const own = `${client.sandbox.baseUrl}/v1/uploads?upload_id=${data.upload_id}`;
  for (const [url, headers] of [
    [data.direct_upload_url, data.headers],
    [own, { authorization: `Bearer ${client.sandbox.apiKey}` }],
  ]) {
    const refused = await put(url, headers, 63);
    expect([refused.status, (await refused.json()).error.code]).toEqual([409, 'upload_completed']);
  }
  expect((await complete()).status).toBe(200);
  expect((await client.create('/v1/videos', { prompt, first_frame_upload_id: data.upload_id })).status).toBe(
    'processing',
  );
});

test('an empty Idempotency-Key header does not hide the key of the body', async () => {
  const client = setUp();
  const body = { prompt, idempotency_key: 'k1' };
  const first = await client.create('/v1/videos', body, { 'idempotency-key': '' });
  const second = await client.create('/v1/videos', body, { 'idempotency-key': ' ' });
  expect(second.id).toBe(first.id);
  expect((await client.create('/v1/videos', body)).id).toBe(first.id);
});

test('the event of a failed job has null for its file', async () => {
  const { events, webhookFetch } = receiver();
  const client = setUp({ webhookFetch });
  const body = { prompt: '[fail:generation_failed]', webhook_url: 'https://app.example/hook' };
  const { id } = await client.create('/v1/videos', body);
  await client.sandbox.advance(3000);
  expect(JSON.parse(events[0]?.body ?? '').data.job).toEqual({ id, status: 'failed', providerOutputUrl: null });
  expect((await client.job(id)).providerOutputUrl).toBeNull();
});

test('a webhook may go to http on a private host only', async () => {
  const client = setUp();
  const post = (webhook_url: string) => client.code('POST', '/v1/videos', { prompt, webhook_url });
  for (const url of [
    'http://127.0.0.1:3000/hook',
    'http://localhost/hook',
    'http://app.test/hook',
    'https://app.example.com/hook',
  ]) {
    expect([url, await post(url)]).toEqual([url, undefined]);
  }
  for (const url of ['http://app.example.com/hook', 'ftp://localhost/hook', '/hook']) {
    expect([url, await post(url)]).toEqual([url, 'invalid_request']);
  }
});
