import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { createSandbox } from '../../src/sandbox/index.js';
import created from '../fixtures/bodies/created-job.json' with { type: 'json' };
import jobCompleted from '../fixtures/bodies/job-completed.json' with { type: 'json' };
import jobErrors from '../fixtures/job-errors.json' with { type: 'json' };
import { quiet } from '../support/quiet.js';
import { clientFor, setUp } from './plain-client.js';

beforeAll(quiet);

const prompt = 'a fox at dawn';
const clip = 'https://e.example/a.mp4';

describe('states and transitions', () => {
  test('a video is processing in the response, and completed exactly after its duration', async () => {
    const client = setUp({ jobDurationMs: { video: 9000 } });
    const job = await client.create('/v1/videos');
    expect(job).toMatchObject({ status: 'processing', providerOutputUrl: null, completedAt: null });
    await client.sandbox.advance(8999);
    expect(await client.job(job.id)).toMatchObject({ status: 'processing' });
    await client.sandbox.advance(1);
    const completed = await client.job(job.id);
    expect(completed).toMatchObject({ status: 'completed', finalTokenCost: job.quotedTokenCost });
    expect(completed.providerOutputUrl).toBe(`${client.sandbox.baseUrl}/v1/jobs/${job.id}/output`);
    expect(Date.parse(completed.completedAt) - Date.parse(completed.createdAt)).toBe(9000);
    expect(Date.parse(completed.providerOutputExpiresAt)).toBeGreaterThan(Date.parse(completed.completedAt));
  });

  test('an image starts as queued, a one-off character as created, and both are processing later', async () => {
    const client = setUp({ jobDurationMs: 1000 });
    const image = await client.create('/v1/images');
    const character = await client.create('/v1/characters', { name: 'Ada', prompt });
    expect([image.status, character.status]).toEqual(['queued', 'created']);
    await client.sandbox.advance(100);
    expect((await client.job(image.id)).status).toBe('processing');
    expect((await client.job(character.id)).status).toBe('processing');
    await client.sandbox.advance(900);
    expect((await client.job(image.id)).status).toBe('completed');
  });

  test.each([
    [{}, 'completed'],
    [{ errorCode: 'generation_rejected' }, 'failed'],
    [{ status: 'canceled' as const }, 'canceled'],
    [{ status: 'blocked' as const }, 'blocked'],
  ])('a create whose job ends immediately returns its final state (%j)', async (outcome, status) => {
    const client = setUp({ balanceTokens: 100 });
    client.sandbox.outcomes.next({ ...outcome, durationMs: 0 });
    const { data } = (await client.call('POST', '/v1/videos', { prompt })).body;
    expect(data.job.status).toBe(status);
    expect(data.balance_tokens).toBe(status === 'completed' ? 100 - data.quoted_token_cost : 100);
  });

  test.each([
    ['a video fails as stale', '/v1/videos', { reference_videos: [clip] }, 600_000],
    [
      'a strict job fails sooner, without omitting its clip',
      '/v1/videos',
      { reference_videos: [clip], video_reference_mode: 'strict' },
      60_000,
    ],
    ['an edit fails as stale', '/v1/video-edits', { model: 'svc-video-pro', video: clip }, 600_000],
  ])('if its dispatch stalls, %s, and its tokens are released', async (_, path, params, ms) => {
    const client = setUp();
    const { id } = await client.create(path, { prompt: 'a fox [stall]', ...params });
    await client.sandbox.advance(ms - 1);
    expect((await client.job(id)).status).toBe('processing');
    await client.sandbox.advance(1);
    const job = await client.job(id);
    expect(job).toMatchObject({ status: 'failed', errorCode: 'generation_timeout', finalTokenCost: 0 });
    expect(job.warnings).toBeUndefined();
    expect(client.sandbox.ledger()).toMatchObject({ reservedTokens: 0, spentTokens: 0 });
  });

  test('a final job never changes', async () => {
    const client = setUp();
    const { id } = await client.create('/v1/videos');
    await client.sandbox.advance(3000);
    client.sandbox.finish(id, { errorCode: 'generation_failed' });
    expect(await client.job(id)).toMatchObject({ status: 'completed' });
  });
});

describe("a job's outcome", () => {
  test('queued outcomes are used in order, and take precedence over the prompt', async () => {
    const client = setUp();
    client.sandbox.outcomes.next({ errorCode: 'generation_unavailable', errorMessage: 'Closed.' });
    client.sandbox.outcomes.next({ status: 'blocked' });
    const video = await client.create('/v1/videos', { prompt: '[canceled]' });
    const image = await client.create('/v1/images', { prompt: '[canceled]' });
    const next = await client.create('/v1/videos', { prompt: '[canceled]' });
    await client.sandbox.advance(3000);
    expect(await client.job(video.id)).toMatchObject({ errorCode: 'generation_unavailable', errorMessage: 'Closed.' });
    expect((await client.job(image.id)).status).toBe('blocked');
    expect((await client.job(next.id)).status).toBe('canceled');
  });

  test("a rejected create doesn't consume a queued outcome", async () => {
    const client = setUp();
    client.sandbox.outcomes.next({ status: 'blocked', durationMs: 0 });
    await client.call('POST', '/v1/videos', { prompt, duration: 7 });
    expect((await client.create('/v1/videos')).status).toBe('blocked');
  });

  test.each([
    ['[slow:60s]', 60_000],
    ['[slow:2m]', 120_000],
    ['[slow:250ms]', 250],
    ['[slow:1.5]', 1500],
  ])("a prompt can set its job's duration: %s", async (word, ms) => {
    const client = setUp();
    const { id } = await client.create('/v1/videos', { prompt: `a fox ${word}` });
    await client.sandbox.advance(ms - 1);
    expect((await client.job(id)).status).toBe('processing');
    await client.sandbox.advance(1);
    expect((await client.job(id)).status).toBe('completed');
  });

  test('wording about matching a real person fails a job without references, with the documented message', async () => {
    const client = setUp();
    const job = await client.create('/v1/videos', { prompt: 'a deepfake of a public figure, [slow:0s]' });
    expect(job).toMatchObject({
      errorCode: 'generation_rejected',
      errorMessage: 'Input text contains sensitive information',
    });
  });
});

describe('on the real clock', () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  test('time passes automatically', async () => {
    const client = clientFor(createSandbox({ jobDurationMs: 3000 }));
    const { id } = await client.create('/v1/videos');
    vi.setSystemTime(Date.now() + 2999);
    expect((await client.job(id)).status).toBe('processing');
    vi.setSystemTime(Date.now() + 1);
    expect((await client.job(id)).status).toBe('completed');
  });

  test('time passes faster if speed is set', async () => {
    const client = clientFor(createSandbox({ jobDurationMs: 60_000, speed: 60 }));
    const { id } = await client.create('/v1/videos');
    vi.setSystemTime(Date.now() + 1000);
    expect((await client.job(id)).status).toBe('completed');
  });

  test('a webhook is sent on time without any requests', async () => {
    const urls: string[] = [];
    const webhookFetch: typeof fetch = async (input) => {
      urls.push(String(input));
      return new Response();
    };
    const client = clientFor(createSandbox({ jobDurationMs: 3000, webhookFetch }));
    await client.create('/v1/videos', { prompt, webhook_url: 'https://app.example/hook' });
    await vi.advanceTimersByTimeAsync(2990);
    expect(urls).toEqual([]);
    await vi.advanceTimersByTimeAsync(20);
    // Signing is asynchronous.
    await client.sandbox.settled();
    expect(urls).toEqual(['https://app.example/hook']);
    expect(vi.getTimerCount()).toBe(0);
  });
});

test("a pending webhook timer doesn't keep the process alive", async () => {
  const setTimer = vi.spyOn(globalThis, 'setTimeout');
  const client = clientFor(createSandbox({ jobDurationMs: 60_000 }));
  await client.create('/v1/videos', { prompt, webhook_url: 'https://app.example/hook' });
  const timers = setTimer.mock.results.map(({ value }) => value as NodeJS.Timeout);
  setTimer.mockRestore();
  expect(timers).toHaveLength(1);
  expect(timers[0]?.hasRef()).toBe(false);
  client.sandbox.reset();
});

test.each(jobErrors)('a prompt can cause the job error $code', async ({ code }) => {
  const client = setUp();
  const { id } = await client.create('/v1/videos', { prompt: `a fox [fail:${code}]` });
  await client.sandbox.advance(3000);
  const errorData = code === 'reference_asset_pending' ? { retry_after: expect.any(Number) } : {};
  expect(await client.job(id)).toMatchObject({
    ...{ status: 'failed', errorCode: code, errorMessage: expect.any(String), errorData },
    ...{ finalTokenCost: 0, providerOutputUrl: null },
  });
});

test('a create and a finished job have the documented fields', async () => {
  const client = setUp();
  const { body } = await client.call('POST', '/v1/videos', { prompt });
  expect(Object.keys(body.data)).toEqual(expect.arrayContaining(Object.keys(created.data)));
  expect(Object.keys(body.data.job)).toEqual(expect.arrayContaining(Object.keys(created.data.job)));
  await client.sandbox.advance(3000);
  const job = await client.job(body.data.job.id);
  expect(Object.keys(job)).toEqual(expect.arrayContaining(Object.keys(jobCompleted.data.job)));
});

test('a job lasts exactly its duration, however long its create takes', async () => {
  const client = setUp({ clock: 'real', jobDurationMs: 3000 });
  let now = Date.now();
  const dateNow = vi.spyOn(Date, 'now').mockImplementation(() => {
    now += 1;
    return now;
  });
  try {
    const { id } = await client.create('/v1/videos');
    now += 60_000;
    const job = await client.job(id);
    expect(Date.parse(String(job.completedAt)) - Date.parse(String(job.createdAt))).toBe(3000);
  } finally {
    dateNow.mockRestore();
  }
});
