// Every shape is one that the real service may have, so the SDK has to read all of them alike.
import { describe, expect, test } from 'vitest';
import { GenClient } from '../../src/client/client.js';
import { RateLimitError } from '../../src/errors/index.js';
import { createSandbox, type ResponseShapes } from '../../src/sandbox/index.js';
import { png, receiver, setUp } from './plain-client.js';

const VARIANTS: { readonly [K in keyof ResponseShapes]-?: readonly NonNullable<ResponseShapes[K]>[] } = {
  error: ['object', 'code', 'flat', 'data', 'errors', 'detail'],
  list: ['named', 'items', 'results', 'array', 'map', 'bare'],
  job: ['job', 'data', 'bare'],
  upload: ['flat', 'nested', 'bare'],
  uploadHeaders: ['canonical', 'lower-case', 'with-length', 'pairs', 'records'],
  character: ['nested', 'flat'],
  warning: ['everywhere', 'data', 'job', 'body', 'single', 'records'],
  empty: ['json', 'none'],
  completedTwice: ['ok', 'conflict'],
  requestId: ['x-request-id', 'x-service-request-id', 'request-id', 'none'],
  failedEventUrl: ['null', 'link'],
  referenceKinds: ['grouped', 'single'],
};
const prompt = 'a fox at dawn';

/** The value at a path such as `data.job`. */
function at(body: object, path: string) {
  let value: unknown = body;
  for (const key of path.split('.'))
    value = typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
  return value as { voice_id: string }[];
}

describe('on the wire', () => {
  const answer = async (shapes: ResponseShapes, method: string, path: string, body?: object) => {
    const client = setUp({ shapes });
    const { status, body: answered } = await client.call(method, path, body);
    return { status, body: answered };
  };

  test.each([
    ['object', { success: false, error: { code: 'prompt_required', message: expect.any(String) } }],
    ['code', { success: false, error: 'prompt_required', message: expect.any(String) }],
    ['flat', { code: 'prompt_required', message: expect.any(String) }],
    ['data', { success: false, data: { code: 'prompt_required', message: expect.any(String) } }],
    ['errors', { success: false, errors: [{ code: 'prompt_required', message: expect.any(String) }] }],
    ['detail', { detail: { code: 'prompt_required', message: expect.any(String) } }],
  ] as const)('error: %s', async (error, body) => {
    expect(await answer({ error }, 'POST', '/v1/videos', {})).toEqual({ status: 400, body });
  });

  test.each(VARIANTS.error)(
    'error %s keeps data.top_up_url and retry_after where the document has them',
    async (error) => {
      const client = setUp({ shapes: { error }, balanceTokens: 0 });
      const { body } = await client.call('POST', '/v1/videos', { prompt });
      expect(body.data.top_up_url).toContain('/development?section=billing');
    },
  );

  test.each([
    ['named', 'data.voices'],
    ['items', 'data.items'],
    ['results', 'data.results'],
    ['array', 'data'],
    ['map', 'data.voices'],
    ['bare', ''],
  ] as const)('list: %s', async (list, place) => {
    const { body } = await answer({ list }, 'GET', '/v1/voices');
    const found = place === '' ? body : at(body, place);
    expect(
      list === 'map' ? Object.keys(found) : Object.values<{ voice_id: string }>(found).map(({ voice_id }) => voice_id),
    ).toEqual(['voice_aria', 'voice_ben', 'voice_mira']);
  });

  test.each([
    ['everywhere', ['data.warnings', 'data.job.warnings']],
    ['data', ['data.warnings']],
    ['job', ['data.job.warnings']],
    ['body', ['warnings']],
    ['single', ['data.warning']],
    ['records', ['data.warnings']],
  ] as const)('warning: %s', async (warning, places) => {
    const body = { prompt, reference_videos: ['https://a.test/broken.mp4'] };
    const text = JSON.stringify((await answer({ warning }, 'POST', '/v1/videos', body)).body);
    const found: string[] = [];
    JSON.parse(text, function (this: object, key, value) {
      if (/^warnings?$/.test(key)) found.push(key);
      return value;
    });
    expect(found).toHaveLength(places.length);
    expect(text.match(/"video_reference_fallback_omitted_clips"/g)).toHaveLength(places.length);
    for (const place of places) {
      expect(JSON.stringify(at(JSON.parse(text), place))).toContain('video_reference_fallback_omitted_clips');
    }
  });

  test('a create of a video is documented, so its answer has one form only', async () => {
    const { body } = await answer({ job: 'bare' }, 'POST', '/v1/videos', { prompt });
    expect(body).toMatchObject({ success: true, data: { job: { status: 'processing' }, balance_tokens: 985 } });
    expect((await answer({ job: 'bare' }, 'POST', '/v1/images', { prompt })).body).toMatchObject({ status: 'queued' });
    expect((await answer({ job: 'data' }, 'POST', '/v1/images', { prompt })).body.data).toMatchObject({
      status: 'queued',
    });
  });
});

describe.each(Object.entries(VARIANTS).flatMap(([name, values]) => values.map((value) => ({ [name]: value }))))(
  'the SDK on a sandbox with %o',
  (shapes: ResponseShapes) => {
    const start = (options = {}) => {
      const { webhookFetch, events } = receiver();
      const sandbox = createSandbox({ clock: 'manual', jobDurationMs: 0, shapes, webhookFetch, ...options });
      const { apiKey, baseUrl, fetch } = sandbox;
      return { sandbox, events, client: new GenClient({ apiKey, baseUrl, fetch, maxRetries: 0 }) };
    };

    test('uploads, registers, creates, lists and deletes', async () => {
      const { client, sandbox } = start();
      const file = new Blob([png(640)], { type: 'image/png' });
      const { upload_id } = await client.uploads.upload(file, { filename: 'fox.png' });
      expect(upload_id).toMatch(/^upl_/);
      const { character_id } = await client.characters.register({ name: 'Fox', upload_id });
      expect(await client.characters.get(character_id)).toMatchObject({ character_id, name: 'Fox' });
      expect((await client.characters.list()).characters).toMatchObject([{ character_id }]);
      expect((await client.models.list()).models).toHaveLength(12);
      expect((await client.voices.list()).voices).toHaveLength(3);
      const image = await client.images.create({ prompt, reference_upload_ids: [upload_id] });
      expect(image).toMatchObject({
        job: { status: 'completed', quotedTokenCost: 2 },
        warnings: [],
      });
      const edit = { model: 'svc-video-pro', prompt, video: 'https://a.test/a.mp4' } as const;
      expect((await client.videoEdits.create(edit)).job.status).toBe('completed');
      await client.characters.delete(character_id);
      await client.uploads.delete(upload_id);
      expect(sandbox.requests.filter(({ status }) => status === null || status >= 400)).toEqual([]);
    });

    test('gathers the warning of a create', async () => {
      const { client } = start();
      const { warnings } = await client.videos.create({ prompt, reference_videos: ['https://a.test/broken.mp4'] });
      expect(warnings).toEqual(['video_reference_fallback_omitted_clips']);
    });

    test('reads code, message, and the figures of an error', async () => {
      const { client, sandbox } = start({ balanceTokens: 1, limits: { 'jobs.get': { limit: 1, windowMs: 60_000 } } });
      const poor = await client.videos.create({ prompt }).catch((error: unknown) => error);
      expect(poor).toMatchObject({ code: 'insufficient_balance', status: 402 });
      expect(poor).toMatchObject({ topUpUrl: expect.stringContaining('section=billing') });
      expect(poor).toMatchObject({ message: expect.stringContaining('tokens') });
      const missing = await client.jobs.get('job_x').catch((error: unknown) => error);
      expect(missing).toMatchObject({ code: 'job_not_found', status: 404 });
      const { requestId } = await client.models.list().withResponse();
      expect(requestId).toBe(shapes.requestId === 'none' ? undefined : sandbox.requests.at(-1)?.id);
      const strict = client.withOptions({ rateLimit: 'throw' });
      const limited = await strict.jobs.get('job_x').catch((error: unknown) => error);
      expect(RateLimitError.isInstance(limited) && limited.retryAfterMs).toBeGreaterThan(0);
    });
  },
);
