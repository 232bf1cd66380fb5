// The document's tables held against the sandbox with nothing but HTTP: client and sandbox share code, this test does not.
import { describe, expect, it } from 'vitest';
import { createSandbox, type SandboxOptions } from '../../src/sandbox/index.js';
import createdJob from '../fixtures/bodies/created-job.json' with { type: 'json' };
import jobCompleted from '../fixtures/bodies/job-completed.json' with { type: 'json' };
import uploadCreated from '../fixtures/bodies/upload-created.json' with { type: 'json' };
import webhookEvent from '../fixtures/bodies/webhook-event.json' with { type: 'json' };
import endpoints from '../fixtures/endpoints.json' with { type: 'json' };
import fields from '../fixtures/fields.json' with { type: 'json' };
import jobErrors from '../fixtures/job-errors.json' with { type: 'json' };
import limits from '../fixtures/limits.json' with { type: 'json' };
import models from '../fixtures/models.json' with { type: 'json' };
import requestErrors from '../fixtures/request-errors.json' with { type: 'json' };

type Body = Record<string, unknown>;
/** What came back: status, headers, and the body's fields wherever a test looks. */
interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly data: Record<string, unknown> & { job: Record<string, unknown> };
}

/** A sandbox with a held clock, and a plain way to talk to it. */
function service(options: SandboxOptions = {}) {
  const sandbox = createSandbox({
    clock: 'manual',
    limits: 'off',
    balanceTokens: 1_000_000,
    webhookFetch: async () => new Response(),
    ...options,
  });
  async function call(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const url = path.startsWith('http') ? path : sandbox.baseUrl + path;
    const all = new Headers({ authorization: `Bearer ${sandbox.apiKey}`, 'content-type': 'application/json' });
    for (const [name, value] of Object.entries(headers)) all.set(name, value);
    const response = await sandbox.fetch(url, {
      method,
      headers: all,
      ...(body === undefined
        ? {}
        : { body: body instanceof Uint8Array ? new Blob([body.slice()]) : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.includes('json') && text !== '';
    return {
      status: response.status,
      headers: response.headers,
      text,
      data: isJson ? JSON.parse(text).data : undefined,
    };
  }
  /** A completed upload. */
  async function upload(type: string, name = 'file'): Promise<string> {
    const mime = { IMAGE: 'image/png', VIDEO: 'video/mp4', AUDIO: 'audio/mpeg' }[type];
    const bytes = type === 'IMAGE' ? png(640) : new Uint8Array(64);
    const { data } = await call('POST', '/v1/uploads', {
      file_name: name,
      mime_type: mime,
      file_size: bytes.length,
      upload_type: type,
    });
    await call('PUT', String(data.direct_upload_url), bytes, data.headers as Record<string, string>);
    expect((await call('POST', '/v1/uploads/complete', { upload_id: data.upload_id })).status).toBe(200);
    return String(data.upload_id);
  }
  return { sandbox, call, upload };
}
type Service = ReturnType<typeof service>;

/** The head of a PNG of this width, which is as far as a look at the width goes. */
function png(width: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(64);
  bytes.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52]);
  new DataView(bytes.buffer).setUint32(16, width);
  new DataView(bytes.buffer).setUint32(20, width);
  return bytes;
}

const PATHS: Readonly<Record<string, string>> = { image: '/v1/images', video: '/v1/videos' };
const EDIT = { model: 'svc-video-pro', prompt: 'x', video: 'https://a.test/a.mp4' };

describe('the model table', () => {
  const all = {
    duration: ['duration_not_supported', [4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30], 'durations'],
    ratio: ['aspect_ratio_not_supported', ['1:1', '4:5', '3:4', '9:16', '16:9', '21:9', '2:1'], 'aspectRatios'],
    resolution: ['resolution_not_supported', ['480p', '720p', '1080p', '4k', 'standard', 'high'], 'resolutions'],
  } as const;

  it.each(models)('$alias takes what its row lists and nothing else', async (model) => {
    const { call } = service();
    for (const [param, [code, values, list]] of Object.entries(all)) {
      const offered: readonly unknown[] | undefined = Reflect.get(model, list);
      for (const value of offered ? values : []) {
        const answer = await call('POST', PATHS[model.kind] ?? '', { model: model.alias, prompt: 'x', [param]: value });
        if (offered?.includes(value)) expect(answer.status, `${param} ${value}`).toBe(200);
        else expect([answer.status, answer.text.includes(`"${code}"`)], `${param} ${value}`).toEqual([400, true]);
      }
    }
  });

  it('is what GET /v1/models tells anyone', async () => {
    const { call } = service();
    const { status, text } = await call('GET', '/v1/models', undefined, { authorization: '' });
    expect(status).toBe(200);
    for (const { alias } of models) expect(text).toContain(`"${alias}"`);
    expect(text).toContain('maxPromptChars');
  });

  it('takes edits on the three models only', async () => {
    const { call } = service();
    for (const { alias } of models) {
      const { status, text } = await call('POST', '/v1/video-edits', { ...EDIT, model: alias });
      if (limits.editModels.includes(alias)) expect(status).toBe(200);
      else expect([status, text.includes('"video_edit_model_not_supported"')], alias).toEqual([400, true]);
    }
  });

  it('makes a video on the default model, and an edit by intent too', async () => {
    const { call } = service();
    for (const body of [{ prompt: 'x' }, { prompt: 'x', intent: 'video_edit', video: 'https://a.test/a.mp4' }]) {
      expect((await call('POST', '/v1/videos', body)).data.job.modelId).toBe(limits.defaultVideoModel);
    }
  });
});

describe('the endpoints', () => {
  it.each(endpoints)('$method $path needs a key unless it is public', async ({ method, path, ...row }) => {
    const { call } = service();
    const answer = await call(method, path.replace(/\{\w+\}/, 'none'), method === 'POST' ? {} : undefined, {
      authorization: 'Bearer wrong',
    });
    expect(answer.status).toBe(row.public ? 200 : 401);
    if (!row.public && method !== 'HEAD') expect(answer.text).toContain('"invalid_api_key"');
  });

  it.each(endpoints.filter(({ limitPerMinute }) => limitPerMinute))(
    '$method $path is limited to $limitPerMinute a minute',
    async ({ method, path, limitPerMinute = 0 }) => {
      const { sandbox, call } = service({ limits: 'documented' });
      const once = () => call(method, path.replace(/\{\w+\}/, 'none'), method === 'POST' ? { prompt: 'x' } : undefined);
      for (let sent = 0; sent < limitPerMinute; sent++) expect((await once()).status).not.toBe(429);
      const refused = await once();
      expect(refused.status).toBe(429);
      const seconds = Number(refused.headers.get('retry-after'));
      expect(seconds).toBeGreaterThan(0);
      await sandbox.advance(seconds * 1000);
      expect((await once()).status).not.toBe(429);
    },
  );
});

describe('the fields', () => {
  const FIELD_PATHS: Readonly<Record<string, string>> = {
    'images.create': '/v1/images',
    'characters.register': '/v1/characters',
    'characters.create': '/v1/characters',
    'videos.create': '/v1/videos',
    'videoEdits.create': '/v1/video-edits',
    'uploads.create': '/v1/uploads',
  };

  it.each(Object.entries(fields))('of %s are all taken', async (call, rows) => {
    for (const row of rows) {
      const { upload, ...plain } = service();
      const ids = { IMAGE: await upload('IMAGE'), VIDEO: await upload('VIDEO'), AUDIO: await upload('AUDIO') };
      const { data } = await plain.call('POST', '/v1/characters', {
        mode: 'register',
        name: 'Ann',
        upload_id: ids.IMAGE,
      });
      const character = String((data.character as Body).character_id);
      const sample = (field: { name: string; type: string }) => sampleOf(field, ids, character);
      const source = call === 'videoEdits.create' && !('oneOf' in row) ? { video: 'https://a.test/a.mp4' } : {};
      const edit = row.name === 'intent' ? { source_video_upload_id: ids.VIDEO } : {};
      const body = Object.fromEntries(
        rows.filter((other) => 'required' in other || other === row).map((other) => [other.name, sample(other)]),
      );
      const answer = await plain.call('POST', FIELD_PATHS[call] ?? '', { ...source, ...edit, ...body });
      expect(answer.status, `${row.name}: ${answer.text}`).toBe(200);
    }
  });
});

/** A value that the service takes for a documented field. */
function sampleOf(
  field: { name: string; type: string },
  ids: Readonly<Record<string, string>>,
  character: string,
): unknown {
  const { name, type } = field;
  const example: unknown = Reflect.get(field, 'example') ?? Reflect.get(field, 'examples')?.[0];
  const kind = /video/.test(name) ? 'VIDEO' : /audio/.test(name) ? 'AUDIO' : 'IMAGE';
  if (example !== undefined) return example;
  if (name === 'model') return 'svc-image-pro';
  if (name === 'mime_type') return 'video/mp4';
  if (name === 'character_ids') return [character];
  if (/upload_ids?$/.test(name)) return type === 'string' ? ids[kind] : [ids[kind]];
  if (type === 'string[]') return ['https://a.test/a.bin'];
  if (type === 'references') return [{ type: 'image_url', url: 'https://a.test/a.png' }];
  if (type === 'content')
    return [
      { type: 'text', text: 'x' },
      { type: 'image_url', image_url: 'https://a.test/a.png', role: 'first_frame' },
    ];
  if (/url$|^video$/.test(name)) return 'https://a.test/a.mp4';
  return { boolean: true, number: 1000, string: 'x' }[type];
}

/** How each request error comes about, as its condition says. */
const CAUSES: Readonly<Record<string, (service: Service) => Promise<Answer>>> = {
  invalid_api_key: ({ call }) => call('GET', '/v1/voices', undefined, { authorization: 'Bearer nobody' }),
  insufficient_balance: () => service({ balanceTokens: 0 }).call('POST', '/v1/videos', { prompt: 'x' }),
  account_not_active: ({ call, sandbox }) =>
    call('GET', '/v1/voices', undefined, {
      authorization: `Bearer ${sandbox.createKey({ suspended: true, account: 'gone' })}`,
    }),
  scope_missing: ({ call, sandbox }) =>
    call(
      'POST',
      '/v1/images',
      { prompt: 'x' },
      { authorization: `Bearer ${sandbox.createKey({ scopes: ['videos:create'] })}` },
    ),
  job_not_found: ({ call }) => call('GET', '/v1/jobs/none'),
  character_not_found: ({ call }) => call('GET', '/v1/characters/nobody'),
  upload_not_found: ({ call }) => call('DELETE', '/v1/uploads/none'),
  reference_upload_not_found: ({ call }) => call('POST', '/v1/videos', { prompt: 'x', first_frame_upload_id: 'none' }),
  video_edit_source_not_found: ({ call }) =>
    call('POST', '/v1/video-edits', { model: 'svc-video-pro', prompt: 'x', source_video_upload_id: 'none' }),
  upload_in_use: async ({ call, upload }) => {
    const id = await upload('IMAGE');
    await call('POST', '/v1/videos', { prompt: 'x', first_frame_upload_id: id });
    return call('DELETE', `/v1/uploads/${id}`);
  },
  character_pending: async () => {
    const { call, upload } = service({ review: { character: 60_000 } });
    const { data } = await call('POST', '/v1/characters', {
      mode: 'register',
      name: 'Ann',
      upload_id: await upload('IMAGE'),
    });
    return call('POST', '/v1/videos', { prompt: 'x', character_ids: [(data.character as Body).character_id] });
  },
  upload_too_large: ({ call }) =>
    call('POST', '/v1/uploads', {
      file_name: 'a.mp3',
      mime_type: 'audio/mpeg',
      file_size: 15 * 1024 * 1024 + 1,
      upload_type: 'AUDIO',
    }),
  character_registration_failed: async ({ call, upload }) =>
    call('POST', '/v1/characters', { mode: 'register', name: 'Ann', upload_id: await upload('IMAGE', 'rejected.png') }),
  rate_limited: async () => {
    const { call } = service({ limits: { 'videos.create': { limit: 1, windowMs: 60_000 } } });
    await call('POST', '/v1/videos', { prompt: 'x' });
    return call('POST', '/v1/videos', { prompt: 'x' });
  },
  prompt_required: ({ call }) => call('POST', '/v1/videos', {}),
  prompt_too_long: ({ call }) => call('POST', '/v1/videos', { prompt: 'x'.repeat(100_000) }),
  model_not_found: ({ call }) => call('POST', '/v1/videos', { prompt: 'x', model: 'svc-video-next' }),
  duration_not_supported: ({ call }) => call('POST', '/v1/videos', { prompt: 'x', duration: 7 }),
  aspect_ratio_not_supported: ({ call }) =>
    call('POST', '/v1/images', { prompt: 'x', model: 'svc-image-fast', ratio: '21:9' }),
  resolution_not_supported: ({ call }) => call('POST', '/v1/videos', { prompt: 'x', resolution: '4k' }),
  reference_combination_not_supported: ({ call }) =>
    call('POST', '/v1/videos', {
      prompt: 'x',
      first_frame_url: 'https://a.test/a.png',
      reference_images: ['https://a.test/b.png'],
    }),
  character_prompt_unsafe: ({ call }) =>
    call('POST', '/v1/characters', { name: 'Ann', prompt: 'an exact look-alike of a celebrity' }),
  person_match_prompt_unsafe: ({ call }) =>
    call('POST', '/v1/videos', {
      prompt: 'match the real person in the photo',
      reference_images: ['https://a.test/b.png'],
    }),
  upload_invalid: ({ call }) => call('POST', '/v1/uploads', { file_name: 'a.png' }),
  video_edit_model_not_supported: ({ call }) =>
    call('POST', '/v1/video-edits', { ...EDIT, model: 'svc-video-gen-2-5' }),
  video_edit_source_required: ({ call }) => call('POST', '/v1/video-edits', { model: 'svc-video-pro', prompt: 'x' }),
  // The document names its cause, the speech operation, and does not show it.
  voice_required: ({ call, sandbox }) => {
    sandbox.faults.add({ match: { path: '/v1/speech' }, status: 400, code: 'voice_required' });
    return call('POST', '/v1/speech', { text: 'hello' });
  },
  internal_error: ({ call, sandbox }) => {
    sandbox.faults.add({ match: { path: '/v1/videos' }, status: 500, code: 'internal_error' });
    return call('POST', '/v1/videos', { prompt: 'x' });
  },
  dispatch_disabled: () => service({ dispatch: 'disabled' }).call('POST', '/v1/videos', { prompt: 'x' }),
};

describe('the request errors', () => {
  it.each(requestErrors)('$code is $status: $condition', async ({ code, status }) => {
    const answer = await CAUSES[code]?.(service());
    expect([answer?.status, answer?.text.includes(`"${code}"`)], answer?.text).toEqual([status, true]);
    if (code === 'insufficient_balance') expect(answer?.data.top_up_url).toContain('/development?section=billing');
    if (code === 'rate_limited') expect(answer?.headers.get('retry-after')).toMatch(/^\d+$/);
    if (code === 'character_pending') expect(answer?.text).toMatch(/"retry_after":\d+/);
  });
});

describe('the jobs', () => {
  it.each(jobErrors)('end as $code, charged nothing', async ({ code }) => {
    const { sandbox, call } = service();
    sandbox.outcomes.next({ status: 'failed', errorCode: code });
    const { data } = await call('POST', '/v1/videos', { prompt: 'x' });
    const before = sandbox.ledger().balanceTokens + sandbox.ledger().reservedTokens;
    await sandbox.advance(3_600_000);
    const { job } = (await call('GET', `/v1/jobs/${data.job.id}`)).data;
    expect(job).toMatchObject({ status: 'failed', errorCode: code, finalTokenCost: 0, providerOutputUrl: null });
    if (code === 'reference_asset_pending') expect((job.errorData as Body).retry_after).toBeTypeOf('number');
    expect(sandbox.ledger()).toMatchObject({ balanceTokens: before, reservedTokens: 0 });
  });

  it.each(limits.finalStatuses)('that are %s send their event, signed, in the documented form', async (status) => {
    const sent: Request[] = [];
    const webhookFetch = async (...given: Parameters<typeof fetch>) => {
      sent.push(new Request(...given));
      return new Response();
    };
    const { sandbox, call } = service({ webhookFetch });
    sandbox.outcomes.next({ status: status as 'failed' });
    const { data } = await call('POST', '/v1/videos', { prompt: 'x', webhook_url: 'https://hooks.test/in' });
    await sandbox.advance(3_600_000);
    await sandbox.settled();
    const [request] = sent;
    const event = await request?.json();
    expect(Object.keys(event)).toEqual(expect.arrayContaining(Object.keys(webhookEvent)));
    expect(event).toMatchObject({ type: `job.${status}`, data: { job: { id: data.job.id, status } } });
    expect(event.id).toMatch(new RegExp(`^evt_${data.job.id}_`));
    for (const name of ['event-id', 'event-type', 'job-id', 'timestamp', 'signature'])
      expect(request?.headers.get(`x-service-${name}`), name).toBeTruthy();
    expect(request?.headers.get('x-service-signature')).toMatch(/^t=\d+,v1=[0-9a-f]{64}$/);
  });

  it('and their envelopes have the fields of the document, with its types', async () => {
    const { sandbox, call } = service();
    const created = await call('POST', '/v1/videos', { prompt: 'x' });
    expect(shapeOf(created.data)).toMatchObject(shapeOf({ ...createdJob.data, job: { ...createdJob.data.job } }));
    await sandbox.advance(3_600_000);
    const { data } = await call('GET', `/v1/jobs/${created.data.job.id}`);
    expect(shapeOf(data)).toMatchObject(shapeOf(jobCompleted.data));
    const output = await call('GET', `/v1/jobs/${created.data.job.id}/output`);
    expect([output.status, output.headers.get('content-type')]).toEqual([200, 'video/mp4']);
    const upload = await call('POST', '/v1/uploads', {
      file_name: 'a.mp4',
      mime_type: 'video/mp4',
      file_size: 9,
      upload_type: 'VIDEO',
    });
    expect(shapeOf(upload.data)).toMatchObject({ ...shapeOf(uploadCreated.data), headers: expect.any(Object) });
  });
});

/** The fields of a record with the types of their values. */
function shapeOf(value: object): object {
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, typeOf(inner)]));
}

function typeOf(value: unknown): unknown {
  return typeof value === 'object' && value !== null ? shapeOf(value) : value === null ? null : typeof value;
}
