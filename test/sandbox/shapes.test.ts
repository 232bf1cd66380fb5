// Every shape is one that the real service may have, so the SDK has to read all of them alike.
import { describe, expect, test, vi } from 'vitest';
import { MODELS } from '../../src/catalog.js';
import { GenClient } from '../../src/client/client.js';
import { RateLimitError } from '../../src/errors/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { reshaped, SHAPES } from '../support/reshaped.js';
import { png } from './plain-client.js';

const prompt = 'a fox at dawn';

describe.each(Object.entries(SHAPES))('the SDK reads %s', (_, shape) => {
  const start = (options = {}) => {
    const sandbox = createSandbox({ clock: 'manual', jobDurationMs: 0, ...options });
    const { apiKey, baseUrl } = sandbox;
    const fetch = reshaped(sandbox.fetch, shape);
    return { sandbox, client: new GenClient({ apiKey, baseUrl, fetch, maxRetries: 0 }) };
  };

  test('uploads, registers, creates, lists and deletes', async () => {
    const { client, sandbox } = start();
    const file = new Blob([png(640)], { type: 'image/png' });
    const { upload_id } = await client.uploads.upload(file, { filename: 'fox.png' });
    expect(upload_id).toMatch(/^upl_/);
    const { character_id } = await client.characters.register({ name: 'Fox', upload_id });
    expect(await client.characters.get(character_id)).toMatchObject({ character_id, name: 'Fox' });
    expect((await client.characters.list()).characters).toMatchObject([{ character_id }]);
    expect((await client.models.list()).models).toHaveLength(Object.keys(MODELS).length);
    expect((await client.voices.list()).voices).toMatchObject([{ voice_id: 'voice_aria' }, {}, {}]);
    const image = await client.images.create({ prompt, reference_upload_ids: [upload_id] });
    expect(image).toMatchObject({ job: { status: 'completed', quotedTokenCost: expect.any(Number) }, warnings: [] });
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

  test.each(['create', 'createAndWait'] as const)('writes the warning of %s on the logger, once', async (call) => {
    const { client } = start();
    const warn = vi.fn();
    const logger = { error() {}, warn, info() {}, debug() {} };
    const params = { prompt, reference_videos: ['https://a.test/broken.mp4'] };
    const { videos } = client.withOptions({ logger, logLevel: 'warn' });
    await (call === 'create' ? videos.create(params) : videos.createAndWait(params));
    expect(warn.mock.calls).toEqual([
      [expect.stringMatching(/^gen-client: job job_\w+: video_reference_fallback_omitted_clips$/), undefined],
    ]);
  });

  test('reads code, message, id and the figures of an error', async () => {
    const { client, sandbox } = start({ balanceTokens: 1, limits: { 'jobs.get': { limit: 1, windowMs: 60_000 } } });
    const poor = await client.videos.create({ prompt }).catch((error: unknown) => error);
    expect(poor).toMatchObject({
      code: 'insufficient_balance',
      status: 402,
      topUpUrl: expect.stringContaining('section=billing'),
      message: expect.stringContaining('tokens'),
      requestId: sandbox.requests.at(-1)?.id,
    });
    const missing = await client.jobs.get('job_x').catch((error: unknown) => error);
    expect(missing).toMatchObject({ code: 'job_not_found', status: 404 });
    const strict = client.withOptions({ rateLimit: 'throw' });
    const limited = await strict.jobs.get('job_x').catch((error: unknown) => error);
    expect(RateLimitError.isInstance(limited) && limited.retryAfterMs).toBeGreaterThan(0);
  });
});
