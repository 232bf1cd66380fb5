// The sandbox rejects what the service's documentation rejects: a table of codes and requests. Uses plain HTTP, because the
// client and the sandbox share code.
import { describe, expect, test } from 'vitest';
import endpoints from '../fixtures/endpoints.json' with { type: 'json' };
import fields from '../fixtures/fields.json' with { type: 'json' };
import limits from '../fixtures/limits.json' with { type: 'json' };
import models from '../fixtures/models.json' with { type: 'json' };
import requestErrors from '../fixtures/request-errors.json' with { type: 'json' };
import { type PlainClient, type PlainResponse, png, setUp } from './plain-client.js';

const prompt = 'a fox at dawn';
const image = 'https://cdn.example.com/a.png';
const clip = 'https://cdn.example.com/a.mp4';
const audio = 'https://cdn.example.com/a.mp3';
const edit = { prompt, model: 'svc-video-pro', video: clip };
const file = { file_name: 'a.mp4', mime_type: 'video/mp4', file_size: 10, upload_type: 'VIDEO' };
const frame = { type: 'image_url', image_url: image, role: 'first_frame' };
const unsafe = 'a clone of a real person';
const LARGEST = Object.entries(limits.uploadBytes).map(
  ([type, size]) => [type, Number.parseInt(size, 10) * 1024 * 1024] as const,
);

/** A POST, or other client calls. */
type TestRequest = readonly [path: string, body: object] | ((client: PlainClient) => Promise<PlainResponse>);
const videos = (...bodies: readonly object[]): TestRequest[] =>
  bodies.map((body) => ['/v1/videos', { prompt, ...body }]);
const images = (...bodies: readonly object[]): TestRequest[] =>
  bodies.map((body) => ['/v1/images', { prompt, ...body }]);
const edits = (...bodies: readonly object[]): TestRequest[] => bodies.map((body) => ['/v1/video-edits', body]);
const characters = (...bodies: readonly object[]): TestRequest[] =>
  bodies.map((body) => ['/v1/characters', { prompt, name: 'Ada', ...body }]);
const uploads = (...bodies: readonly object[]): TestRequest[] =>
  bodies.map((body) => ['/v1/uploads', { ...file, ...body }]);
const content = (...items: readonly unknown[]): TestRequest[] => videos(...items.map((item) => ({ content: [item] })));

const register = async (client: PlainClient, name?: string, width = 640) => {
  const upload_id = await client.upload('IMAGE', name, png(width));
  return client.call('POST', '/v1/characters', { mode: 'register', name: 'Ada', upload_id });
};
/** Creates a request with an upload of this type. */
const withUpload =
  (type: 'IMAGE' | 'VIDEO' | 'AUDIO', path: string, field: string, body: object = { prompt }): TestRequest =>
  async (client) => {
    const id = await client.upload(type);
    return client.call('POST', path, { ...body, [field]: field.endsWith('s') ? [id] : id });
  };

/** Creates a request with an upload from another workspace. */
const withForeignUpload =
  (type: 'IMAGE' | 'VIDEO', send: (client: PlainClient, id: string) => Promise<PlainResponse>): TestRequest =>
  async (client) =>
    send(client, await client.as(client.sandbox.createKey({ account: 'other' })).upload(type));

const REJECTED: Readonly<Record<string, readonly TestRequest[]>> = {
  invalid_api_key: endpoints
    .filter((row) => !row.public && row.method !== 'HEAD')
    .map(
      ({ method, path }) =>
        (client) =>
          client.as('sk_wrong').call(method, path.replace(/\{\w+\}/, 'x')),
    ),
  insufficient_balance: [() => setUp({ balanceTokens: 3 }).call('POST', '/v1/videos', { prompt })],
  account_not_active: [
    (client) => client.as(client.sandbox.createKey({ suspended: true })).call('POST', '/v1/videos', { prompt }),
  ],
  scope_missing: [
    (client) => client.as(client.sandbox.createKey({ scopes: ['videos:create'] })).call('POST', '/v1/images', {}),
  ],
  job_not_found: [(client) => client.call('GET', '/v1/jobs/x'), (client) => client.call('GET', '/v1/jobs/x/output')],
  character_not_found: [
    ...videos({ character_ids: ['nobody'] }, { character_ids: [''] }),
    (client) => client.call('GET', '/v1/characters/x'),
  ],
  upload_not_found: [
    (client) => client.call('DELETE', '/v1/uploads/x'),
    withForeignUpload('IMAGE', (client, id) => client.call('DELETE', `/v1/uploads/${id}`)),
    withForeignUpload('IMAGE', (client, upload_id) => client.call('POST', '/v1/uploads/complete', { upload_id })),
    withForeignUpload('IMAGE', (client, upload_id) =>
      client.call('POST', '/v1/characters', { mode: 'register', name: 'Ada', upload_id }),
    ),
    ['/v1/uploads/complete', { upload_id: 'x' }],
    ['/v1/uploads/complete', {}],
    ['/v1/characters', { mode: 'register', name: 'Ada', upload_id: 'x' }],
  ],
  reference_upload_not_found: [
    ...videos({ reference_image_upload_ids: ['x'] }),
    withUpload('VIDEO', '/v1/videos', 'reference_image_upload_ids'),
    withUpload('IMAGE', '/v1/videos', 'reference_video_upload_ids'),
    withUpload('VIDEO', '/v1/videos', 'reference_audio_upload_ids'),
    async (client) => {
      const { upload_id } = (await client.call('POST', '/v1/uploads', { ...file, ...imageFile })).body.data;
      return client.call('POST', '/v1/videos', { prompt, first_frame_upload_id: upload_id });
    },
    withForeignUpload('IMAGE', (client, id) =>
      client.call('POST', '/v1/videos', { prompt, first_frame_upload_id: id }),
    ),
    withForeignUpload('IMAGE', (client, id) =>
      client.call('POST', '/v1/images', { prompt, reference_upload_ids: [id] }),
    ),
  ],
  video_edit_source_not_found: [
    ...edits({ ...edit, video: undefined, source_video_upload_id: 'x' }),
    withUpload('IMAGE', '/v1/video-edits', 'source_video_upload_id', { ...edit, video: undefined }),
    withUpload('AUDIO', '/v1/video-edits', 'source_video_upload_id', { ...edit, video: undefined }),
    withForeignUpload('VIDEO', (client, id) =>
      client.call('POST', '/v1/video-edits', { ...edit, video: undefined, source_video_upload_id: id }),
    ),
  ],
  upload_in_use: [
    async (client) => {
      const id = await client.upload('IMAGE');
      await client.create('/v1/videos', { prompt, first_frame_upload_id: id });
      return client.call('DELETE', `/v1/uploads/${id}`);
    },
  ],
  character_pending: [
    async () => {
      const client = setUp({ review: { character: 20_000 } });
      const { character } = (await register(client)).body.data;
      return client.call('POST', '/v1/videos', { prompt, character_ids: [character.character_id] });
    },
  ],
  upload_too_large: LARGEST.flatMap(([upload_type, bytes]) =>
    uploads({ upload_type, mime_type: `${upload_type.toLowerCase()}/x`, file_size: bytes + 1 }),
  ),
  character_registration_failed: [
    (client) => register(client, 'rejected.png'),
    (client) => register(client, 'a.png', limits.characterImageWidthPx - 1),
    withUpload('VIDEO', '/v1/characters', 'upload_id', { mode: 'register', name: 'Ada' }),
  ],
  rate_limited: [
    async () => {
      const client = setUp({ limits: { 'videos.create': { limit: 1, windowMs: 60_000 } } });
      await client.create('/v1/videos');
      return client.call('POST', '/v1/videos', { prompt });
    },
  ],
  prompt_required: [
    ...[images, videos, characters].flatMap((requestsWith) => requestsWith({ prompt: '  ' }, { prompt: undefined })),
    ...edits({ ...edit, prompt: '' }),
  ],
  prompt_too_long: [
    ...images({ prompt: 'x'.repeat(100_000) }),
    ...videos({ prompt: undefined, content: [{ type: 'text', text: 'x'.repeat(100_000) }] }),
  ],
  model_not_found: [
    ...videos({ model: 'svc-video-none' }, { model: 'svc-image-pro' }),
    ...images({ model: 'svc-video-pro' }, { model: 'toString' }, { model: '' }),
  ],
  duration_not_supported: [...videos({ duration: '5' }), ...edits({ ...edit, duration: 7 })],
  aspect_ratio_not_supported: [
    ...images({ ratio: '' }),
    ...characters({ aspect_ratio: '1:9' }),
    ...videos({ aspect_ratio: 'adaptive' }, { ratio: 'adaptive' }),
    ...videos({ ...edit, intent: 'video_edit', aspect_ratio: '1:9' }, { ...edit, intent: 'video_edit', ratio: '1:9' }),
  ],
  resolution_not_supported: [...images({ resolution: '' }), ...edits({ ...edit, resolution: '8k' })],
  reference_combination_not_supported: [
    ...[{ first_frame_url: image }, { last_frame_url: image }, { content: [frame] }].flatMap((frames) => [
      ...videos({ ...frames, reference_image_urls: [image] }, { ...frames, referenceImageUrls: [image] }),
      ...videos({ ...frames, reference_images: [image] }, { ...frames, reference_videos: [clip] }),
      ...videos({ ...frames, reference_audios: [audio] }),
    ]),
    ...edits({ ...edit, first_frame_url: image }, { ...edit, last_frame_upload_id: 'upl_1' }),
    ...edits({ ...edit, reference_videos: [clip] }, { ...edit, reference_video_upload_ids: ['upl_1'] }),
  ],
  character_prompt_unsafe: [
    ...characters({ prompt: unsafe }, { prompt: 'an exact look-alike of Brad' }, { prompt: 'a face replacement' }),
    ...characters({ prompt: 'a recreation of the celebrity' }, { prompt: 'an imitation of a public figure' }),
    ...characters({ prompt: 'swap their faces' }, { prompt: "match this person's face" }),
    ...characters({ prompt: 'match her identity' }, { prompt: 'recreate the likeness of the singer' }),
  ],
  person_match_prompt_unsafe: [
    ...videos({ prompt: unsafe, reference_images: [image] }),
    ...images({ prompt: 'match the face of a real person', reference_image_urls: [image] }),
    ...edits({ ...edit, prompt: 'make the dancer a celebrity' }, { ...edit, prompt: 'add a public figure' }),
    ...edits({ ...edit, prompt: 'a deepfake' }, { ...edit, prompt: 'an impersonation of the mayor' }),
  ],
  upload_invalid: [
    ...Object.keys(file).flatMap((field) => uploads({ [field]: undefined })),
    ...uploads({ upload_type: 'DOCUMENT' }, { upload_type: 'video' }, { mime_type: 'image/png' }),
    ...uploads({ file_size: '10' }, { file_size: 0 }, { file_size: 1.5 }, { file_name: ' ' }, { mime_type: 'video' }),
  ],
  video_edit_model_not_supported: [
    ...edits({ ...edit, model: undefined }),
    ...models
      .filter(({ alias }) => !limits.editModels.includes(alias))
      .flatMap(({ alias }) => [
        ...edits({ ...edit, model: alias }),
        ...videos({ ...edit, intent: 'video_edit', model: alias }),
      ]),
  ],
  video_edit_source_required: [
    ...edits({ ...edit, video: undefined }),
    ...videos({ ...edit, video: undefined, intent: 'video_edit' }),
  ],
  // The documentation attributes this code to the speech operation, which it doesn't describe.
  voice_required: [(client) => withFault(client, 'voice_required', 400)],
  internal_error: [(client) => withFault(client, undefined, 500)],
  dispatch_disabled: [...images({}), ...videos({}), ...edits(edit), ...characters({})].map(
    (request) => () => send(request, setUp({ dispatch: 'disabled' })),
  ),

  invalid_request: [
    (client) => client.call('POST', '/v1/videos', '[1]'),
    (client) => client.call('POST', '/v1/videos', '{"prompt":'),
    // Undocumented values.
    ...videos({ watermark: 'yes' }, { seed: 'x' }, { intent: 'foo' }, { video_reference_mode: 'strcit' }),
    ...images({ response_format: 'b64_json' }),
    ...edits({ ...edit, edit_mode: 'remix' }),
    ...characters({ mode: 'melt' }, { name: ' ' }, { mode: 'register', upload_id: '' }),
    // An edit has exactly one source.
    ...edits({ ...edit, source_video_url: clip }, { ...edit, source_video_upload_id: 'upl_1' }),
    // An empty string is invalid.
    ...images({ reference_upload_ids: [''] }, { reference_image_urls: [''] }, { idempotency_key: '' }),
    ...images({ references: [{ type: 'image_url', url: '' }] }, { callback_url: '' }),
    ...images({ references: [{ type: 'video_url', url: clip }] }),
    ...characters({ reference_upload_ids: [' '] }),
    ...videos({ first_frame_upload_id: '' }, { last_frame_url: '' }, { reference_video_upload_ids: ['upl_1', ''] }),
    ...videos({ webhook_url: '' }, { safety_identifier: '' }, { video_reference_mode: '' }),
    ...edits({ ...edit, source_video_upload_id: '', video: undefined }, { ...edit, video: '' }),
    // camera_fixed is ignored with frames and images, as documented.
    ...[true, false].flatMap((camera_fixed) =>
      videos({ camera_fixed, first_frame_url: image }, { camera_fixed, reference_images: [image] }),
    ),
    ...content({ ...frame, role: undefined }, { ...frame, role: 'reference_video' }, 'text', { type: 'constructor' }),
    ...content({ type: 'video_url', video_url: clip, role: 'reference_video' }),
    ...content({ type: 'video_url', video_url: { url: clip }, role: 'first_frame' }),
    ...content({ type: 'audio_url', audio_url: audio, role: 'reference_video' }),
    ...content({ ...frame, image_url: { url: image } }),
    // A webhook URL needs HTTPS or a private host.
    ...['http://app.example.com/hook', 'ftp://localhost/hook', '/hook'].flatMap((webhook_url) =>
      videos({ webhook_url }),
    ),
  ],
  not_found: [
    (client) => client.call('POST', '/v1/nothing', {}),
    (client) => client.call('GET', '/v1/v1/models'),
    (client) => client.call('GET', '/v1/jobs'),
  ],
};

const imageFile = { file_name: 'a.png', mime_type: 'image/png', upload_type: 'IMAGE' };

function withFault(client: PlainClient, code: string | undefined, status: number): Promise<PlainResponse> {
  client.sandbox.faults.add({ status, code });
  return client.call('POST', '/v1/speech', { text: 'hello' });
}

const send = (request: TestRequest, client: PlainClient) =>
  typeof request === 'function' ? request(client) : client.call('POST', ...request);

const UNDOCUMENTED: Readonly<Record<string, number>> = { invalid_request: 400, not_found: 404 };

test.each(Object.entries(REJECTED))('requests fail with %s as documented', async (code, requests) => {
  const status = requestErrors.find((row) => row.code === code)?.status ?? UNDOCUMENTED[code];
  for (const request of requests) {
    const client = setUp();
    const response = await send(request, client);
    const expected = { success: false, error: { code, message: expect.any(String) } };
    expect([response.status, response.body], JSON.stringify(request)).toMatchObject([status, expected]);
    // Nothing is reserved, except by the job that uses the upload.
    if (code !== 'upload_in_use') expect(client.sandbox.ledger().entries).toHaveLength(1);
  }
});

test('every documented request error has a test request', () => {
  const codes = [...requestErrors.map(({ code }) => code), ...Object.keys(UNDOCUMENTED)];
  expect(Object.keys(REJECTED).sort()).toEqual(codes.sort());
});

test('an error includes the details that its caller needs, such as retry_after', async () => {
  const responseWith = (code: string) => send(REJECTED[code]?.[0] ?? ['/', {}], setUp());
  const { top_up_url } = (await responseWith('insufficient_balance')).body.data;
  expect(top_up_url).toMatch(/^https:.*\/development\?section=billing$/);
  expect((await responseWith('character_pending')).body.data.retry_after).toBe(20);
  expect((await responseWith('rate_limited')).headers.get('retry-after')).toBe('60');
});

describe('a reference URL must be public and use HTTPS in every field', () => {
  const fields: readonly (readonly [path: string, body: (url: string) => object])[] = [
    ['/v1/images', (url) => ({ prompt, references: [{ type: 'image_url', url }] })],
    ['/v1/images', (url) => ({ prompt, referenceImageUrls: [url] })],
    ['/v1/videos', (url) => ({ prompt, first_frame_url: image, last_frame_url: url })],
    ['/v1/videos', (url) => ({ prompt, reference_video_urls: [url] })],
    ['/v1/videos', (url) => ({ prompt, reference_audios: [url] })],
    ['/v1/videos', (url) => ({ prompt, content: [{ ...frame, image_url: url }] })],
    [
      '/v1/videos',
      (url) => ({ prompt, content: [{ type: 'video_url', video_url: { url }, role: 'reference_video' }] }),
    ],
    ['/v1/videos', (url) => ({ ...edit, intent: 'video_edit', video: url })],
    ['/v1/video-edits', (url) => ({ ...edit, video: undefined, source_video_url: url })],
    ['/v1/video-edits', (url) => ({ ...edit, reference_images: [url] })],
  ];
  const invalid = [
    ...['javascript:alert(1)', 'file:///etc/passwd', 'a.png', 'http://cdn.example.com/a.png', 'https://minio/a.png'],
    ...['https://localhost/a.png', 'https://127.0.0.1/a.png', 'https://10.0.0.7/a.png', 'https://192.168.1.1/a.png'],
    ...['https://[::1]/a.png', 'https://files.internal/a.png'],
  ];

  test.each(fields)('%s %o', async (path, body) => {
    const client = setUp();
    for (const url of invalid)
      expect([url, await client.code('POST', path, body(url))]).toEqual([url, 'invalid_request']);
    expect((await client.call('POST', path, body('https://a.test/x'))).status).toBe(200);
  });
});

describe('the sandbox accepts', () => {
  const ACCEPTED: readonly TestRequest[] = [
    ...videos({ first_frame_url: image, last_frame_url: image }, { reference_images: [image] }),
    ...videos({ reference_videos: [clip], reference_images: [image], reference_audios: [audio] }),
    ...videos({ camera_fixed: true, reference_videos: [clip] }),
    ...videos({ ...edit, model: undefined, intent: 'video_edit' }, { ...edit, intent: 'video_edit' }),
    ...edits({ ...edit, reference_images: [image], reference_audios: [audio] }),
    ...edits({ ...edit, aspect_ratio: 'adaptive' }, { ...edit, ratio: 'adaptive' }, { ...edit, ratio: '9:16' }),
    ...edits({ ...edit, video: undefined, source_video_url: clip }),
    ...edits({ ...edit, prompt: 'replace the face with my own face, an exact match of my appearance' }),
    withUpload('VIDEO', '/v1/video-edits', 'source_video_upload_id', { ...edit, video: undefined }),
    ...['http://127.0.0.1:3000/h', 'http://localhost/h', 'http://app.test/h', 'http://receiver:9/h', clip].flatMap(
      (webhook_url) => videos({ webhook_url }),
    ),
    ...characters({ mode: 'prompt', aspect_ratio: '3:4', resolution: 'high' }),
    // Harmless wording.
    ...[
      ...['a fox facing the wind', 'matching outfits, they look at the sea', 'a cloud that looks like a ship'],
      ...['clone troopers', 'hands match the beat, the face stays calm', 'her face fills the frame'],
    ].flatMap((wording) => videos({ prompt: wording, reference_images: [image] })),
  ];

  test('documented references, edits, webhooks, and wording', async () => {
    for (const request of ACCEPTED) {
      const response = await send(request, setUp());
      expect(response.status, JSON.stringify(request)).toBe(200);
    }
  });

  test.each(models)('only the documented values for $alias', async (row) => {
    const client = setUp({ balanceTokens: 1_000_000 });
    const listed = { duration: 'durations', resolution: 'resolutions', ratio: 'aspectRatios' } as const;
    const codes = { ratio: 'aspect_ratio_not_supported', duration: 'duration_not_supported' };
    for (const [param, list] of Object.entries(listed)) {
      const supported: readonly unknown[] | undefined = Reflect.get(row, list);
      const values = new Set(models.flatMap((other): unknown[] => Reflect.get(other, list) ?? []));
      for (const value of supported ? [...values, 'x', 99] : []) {
        const body = { prompt, model: row.alias, [param]: value };
        const code = await client.code('POST', row.kind === 'image' ? '/v1/images' : '/v1/videos', body);
        const rejection = Reflect.get(codes, param) ?? 'resolution_not_supported';
        expect([param, value, code]).toEqual([param, value, supported?.includes(value) ? undefined : rejection]);
      }
    }
  });

  test.each(LARGEST)('%s uploads of up to %i bytes', async (upload_type, file_size) => {
    const sized = { ...file, upload_type, mime_type: `${upload_type.toLowerCase()}/x`, file_size };
    expect((await setUp().call('POST', '/v1/uploads', sized)).status).toBe(200);
  });

  const PATHS: Readonly<Record<string, string>> = {
    'images.create': '/v1/images',
    'characters.register': '/v1/characters',
    'characters.create': '/v1/characters',
    'videos.create': '/v1/videos',
    'videoEdits.create': '/v1/video-edits',
    'uploads.create': '/v1/uploads',
  };

  test.each(Object.entries(fields))('each documented field of %s', async (call, rows) => {
    for (const row of rows) {
      const client = setUp();
      const ids = { image: await client.upload('IMAGE'), video: await client.upload('VIDEO') };
      const samples = { ...ids, audio: await client.upload('AUDIO'), character: (await register(client)).body.data };
      const needed = rows.filter((other) => 'required' in other || other === row);
      const body = Object.fromEntries(needed.map((other) => [other.name, sampleOf(other, samples)]));
      const source = call === 'videoEdits.create' && !('oneOf' in row) ? { video: clip } : {};
      const intent = row.name === 'intent' ? { source_video_upload_id: ids.video } : {};
      const response = await client.call('POST', PATHS[call] ?? '', { ...source, ...intent, ...body });
      expect([row.name, response.status, response.body.error]).toEqual([row.name, 200, undefined]);
    }
  });
});

/** Returns a valid value for a documented field. */
// biome-ignore lint/suspicious/noExplicitAny: responses are untyped
function sampleOf(field: { name: string; type: string }, samples: Readonly<Record<string, any>>): unknown {
  const { name, type } = field;
  const example: unknown = Reflect.get(field, 'example') ?? Reflect.get(field, 'examples')?.[0];
  const id = samples[/video|audio/.exec(name)?.[0] ?? 'image'];
  if (example !== undefined) return example;
  if (name === 'model') return 'svc-image-pro';
  if (name === 'mime_type') return 'video/mp4';
  if (name === 'character_ids') return [samples.character.character.character_id];
  if (/upload_ids?$/.test(name)) return type === 'string' ? id : [id];
  if (type === 'string[]') return ['https://a.test/a.bin'];
  if (type === 'references') return [{ type: 'image_url', url: image }];
  if (type === 'content') return [{ type: 'text', text: 'x' }, frame];
  if (/url$|^video$/.test(name)) return clip;
  return { boolean: true, number: 1000, string: 'x' }[type];
}

test('an undocumented field is ignored', async () => {
  const client = setUp({ jobDurationMs: 0 });
  const sizeOf = async (body: object) => {
    const { id } = await client.create('/v1/images', { prompt, ...body });
    const headers = { authorization: `Bearer ${client.sandbox.apiKey}` };
    const output = await client.sandbox.fetch(`${client.sandbox.baseUrl}/v1/jobs/${id}/output`, { headers });
    const view = new DataView(await output.arrayBuffer());
    return [view.getUint32(16), view.getUint32(20)];
  };
  expect(await sizeOf({ aspect_ratio: 'wide', seconds: 'x', generate_audio: 7 })).toEqual([1024, 1024]);
  expect(await sizeOf({ ratio: '16:9' })).toEqual([1360, 765]);
  const ignored = { ratio: '1:9', model: 'x', character_ids: ['nobody'] };
  expect(await client.create('/v1/characters', { prompt, name: 'Ada', ...ignored })).toMatchObject({
    modelId: 'svc-image-pro',
  });
  // Only images and videos have characters, and an edit has `ratio`.
  await client.create('/v1/video-edits', { ...edit, character_ids: ['nobody'], aspect_ratio: '1:9' });
});

test('an edit by intent uses aspect_ratio, because POST /v1/videos documents the field', async () => {
  const client = setUp({ jobDurationMs: 0 });
  for (const field of ['aspect_ratio', 'ratio']) {
    const { id } = await client.create('/v1/videos', { ...edit, intent: 'video_edit', [field]: '9:16' });
    const headers = { authorization: `Bearer ${client.sandbox.apiKey}` };
    const output = await client.sandbox.fetch(`${client.sandbox.baseUrl}/v1/jobs/${id}/output`, { headers });
    const bytes = Buffer.from(await output.arrayBuffer());
    // The track header ends with its width and height.
    const end = bytes.indexOf('mdia') - 8;
    expect([field, bytes.readUInt16BE(end - 4), bytes.readUInt16BE(end)]).toEqual([field, 720, 1280]);
  }
});

test('videos and edits by intent need no model, and edits accept each model that supports them', async () => {
  const client = setUp();
  for (const body of [{ prompt }, { prompt, intent: 'video_edit', video: clip }])
    expect((await client.create('/v1/videos', body)).modelId).toBe(limits.defaultVideoModel);
  for (const model of limits.editModels)
    expect(await client.create('/v1/video-edits', { ...edit, model })).toMatchObject({ modelId: model });
});

test('the model list needs no key, and voices and integration data are complete', async () => {
  const client = setUp();
  const { status, body } = await client.as('').call('GET', '/v1/models');
  expect(status).toBe(200);
  expect(body.data.models).toMatchObject(
    models.map((row) => ({
      ...Object.fromEntries(
        ['alias', 'durations', 'aspectRatios', 'resolutions'].flatMap((name) =>
          Reflect.has(row, name) ? [[name, Reflect.get(row, name)]] : [],
        ),
      ),
      maxPromptChars: expect.any(Number),
    })),
  );
  expect((await client.call('GET', '/v1/voices')).body.data.voices).not.toEqual([]);
  const docs = (await client.call('GET', '/api/service/developers/docs.json')).body.data;
  expect([docs.models.length, docs.requestErrors.length]).toEqual([models.length, requestErrors.length]);
});
