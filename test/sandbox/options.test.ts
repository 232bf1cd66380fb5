import { describe, expect, test } from 'vitest';
import { GenError } from '../../src/errors/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { setUp } from './plain-client.js';

/** What somebody who writes plain JavaScript may pass. */
const loose = (options: object) => options as never;

test.each([
  [{ jobDuration: 3 }, 'createSandbox has no option "jobDuration". Did you mean "jobDurationMs"?'],
  [{ jobDurationMs: { videos: 3 } }, 'createSandbox has no option "jobDurationMs.videos". Did you mean'],
  [{ review: { characters: 3 } }, 'createSandbox has no option "review.characters". Did you mean'],
  [{ limits: { 'video.create': { limit: 1, windowMs: 1 } } }, `"limits['video.create']". Did you mean`],
  [{ limits: { 'videos.create': { limit: 1, window: 1 } } }, `"limits['videos.create'].window". Did you mean`],
  [{ storage: { CORS: false } }, 'createSandbox has no option "storage.CORS". Did you mean "storage.cors"?'],
  [{ prices: [{ modell: 'svc-video-pro', tokens: 1 }] }, '"prices.0.modell". Did you mean "prices.0.model"?'],
])('an option that does not exist is refused, with the nearest: %j', (options, message) => {
  expect(() => createSandbox(loose(options))).toThrow(message);
});

describe('a value that would break the sandbox is refused by name', () => {
  const never = [Number.NaN, Number.POSITIVE_INFINITY, '5'];
  const numbers = ['balanceTokens', 'jobDurationMs', 'startTime', 'speed', 'seed'];
  const rows = numbers.flatMap((name) => never.map((value) => [{ [name]: value }, name] as const));
  test.each<readonly [object, string]>([
    ...rows,
    [{ balanceTokens: -1 }, 'balanceTokens'],
    [{ speed: 0 }, 'speed'],
    [{ speed: 1e9 }, 'speed'],
    [{ startTime: 8.64e15 }, 'startTime'],
    [{ jobDurationMs: -1 }, 'jobDurationMs'],
    [{ jobDurationMs: [9, 1] }, 'jobDurationMs'],
    [{ jobDurationMs: { video: -1 } }, 'jobDurationMs.video'],
    [{ limits: 'of' }, 'limits'],
    [{ limits: { 'jobs.get': { limit: 0, windowMs: 1 } } }, "limits['jobs.get'].limit"],
    [{ limits: { 'jobs.get': { limit: 1 } } }, "limits['jobs.get'].windowMs"],
    [{ review: 'slow' }, 'review'],
    [{ review: { asset: Number.NaN } }, 'review.asset'],
    [{ clock: 'held' }, 'clock'],
    [{ storage: { cors: 'no' } }, 'storage.cors'],
    [{ baseUrl: 'sandbox' }, 'baseUrl'],
    [{ baseUrl: 'https://a.test/?x=1' }, 'baseUrl'],
    [{ prices: -1 }, 'prices'],
    [{ prices: [{ tokens: Number.NaN }] }, 'prices.0.tokens'],
    [{ prices: [{ model: 'svc-video-pro' }] }, 'prices.0.tokens'],
    [{ webhookFetch: 'https://a.test' }, 'webhookFetch'],
  ])('%j', (options, name) => {
    const failure = () => createSandbox(loose(options));
    expect(failure).toThrow(GenError);
    expect(failure).toThrow(`${name} must be `);
    expect(failure).toThrow(/, not .*\.$/);
  });

  test('a key is not shown', () => {
    expect(() => createSandbox({ apiKey: 'a secret' })).toThrow(
      /^apiKey must be a string of visible ASCII characters\.$/,
    );
  });

  test('undefined means left out', () => {
    const options = { speed: undefined, limits: undefined, jobDurationMs: { video: undefined } };
    expect(createSandbox(options).now()).toBeGreaterThan(0);
  });
});

describe('while it runs', () => {
  const { sandbox } = setUp();
  test.each<[string, () => unknown]>([
    ['outcomes.next has no option "errorcode". Did you mean', () => sandbox.outcomes.next(loose({ errorcode: 'x' }))],
    ['status must be', () => sandbox.outcomes.next({ status: 'done' as 'failed' })],
    ['finalTokenCost must be', () => sandbox.outcomes.next({ finalTokenCost: -500 })],
    ['finalTokenCost must be', () => sandbox.outcomes.next({ finalTokenCost: Number.NaN })],
    ['durationMs must be', () => sandbox.outcomes.next({ durationMs: Number.POSITIVE_INFINITY })],
    ['webhookCopies must be', () => sandbox.outcomes.next({ webhookCopies: 1e6 })],
    ['errorData must be', () => sandbox.outcomes.next({ errorData: { at: () => 0 } })],
    ['faults.add has no option "latency". Did you mean', () => sandbox.faults.add(loose({ reset: true, latency: 5 }))],
    ['no option "match.route"', () => sandbox.faults.add({ reset: true, match: loose({ route: '/' }) })],
    ['a rule without an effect', () => sandbox.faults.add({ match: { path: '/v1/videos' } })],
    ['status must be', () => sandbox.faults.add({ status: 200 })],
    ['probability must be', () => sandbox.faults.add({ reset: true, probability: 2 })],
    ['times must be', () => sandbox.faults.add({ reset: true, times: 0 })],
    ['latencyMs must be', () => sandbox.faults.add({ latencyMs: Number.POSITIVE_INFINITY })],
    ['match.path must be', () => sandbox.faults.add({ match: { path: '*'.repeat(1001) }, reset: true })],
    ['createKey has no option "scope". Did you mean', () => sandbox.createKey(loose({ scope: [] }))],
    ['no scope "job:read". Did you mean "jobs:read"?', () => sandbox.createKey({ scopes: ['job:read'] })],
    ['dispatch must be', () => Object.assign(sandbox, { dispatch: 'paused' })],
    ['no option "prices.0.tokns". Did you mean', () => sandbox.setPrices([{ tokns: 1 }] as never)],
    ['There is no job "job_x"', () => sandbox.finish('job_x')],
    ['There is no account "nobody"', () => sandbox.ledger({ account: 'nobody' })],
    ['usd must be', () => sandbox.topUp(19.99)],
    ['usd must be', () => sandbox.topUp(Number.NaN)],
    ['ms must be', () => sandbox.advance(-1)],
  ])('%s', (message, act) => {
    expect(act).toThrow(GenError);
    expect(act).toThrow(message);
  });

  test('what was refused has changed nothing', async () => {
    const client = setUp();
    expect(() => client.sandbox.outcomes.next({ finalTokenCost: -1 })).toThrow();
    expect(() => client.sandbox.faults.add({ reset: true, times: -1 })).toThrow();
    await client.create('/v1/videos');
    await client.sandbox.advance(3000);
    expect(client.sandbox.jobs[0]?.status).toBe('completed');
  });

  test('an outcome is copied, so changing it later changes nothing', async () => {
    const client = setUp();
    const outcome = { status: 'failed' as const, errorData: { retry_after: 5 }, durationMs: 0 };
    client.sandbox.outcomes.next(outcome);
    outcome.errorData.retry_after = 9;
    expect((await client.create('/v1/videos')).errorData).toEqual({ retry_after: 5 });
  });
});

describe('the clock has an end that no call passes', () => {
  test.each([Number.MAX_SAFE_INTEGER, Number.POSITIVE_INFINITY, 8.64e15, Number.NaN, '5'])(
    'advance(%s)',
    async (ms) => {
      const client = setUp();
      const { id } = await client.create('/v1/videos');
      expect(() => client.sandbox.advance(ms as number)).toThrow(/^ms must be /);
      await client.sandbox.advance(3000);
      expect((await client.job(id)).status).toBe('completed');
    },
  );

  test('many small steps do not pass it either, and at the end everything still answers', async () => {
    const client = setUp({ startTime: Date.UTC(8999, 11, 31, 23, 59) });
    const { id } = await client.create('/v1/videos');
    await client.sandbox.advance(59_000);
    const late = Promise.all([client.sandbox.advance(800), client.sandbox.advance(800)]);
    await expect(late).rejects.toThrow('ms must be at most 200, not 800');
    expect(await client.job(id)).toMatchObject({ status: 'completed' });
    await client.sandbox.advance(200);
    expect((await client.create('/v1/videos')).status).toBe('processing');
    client.sandbox.reset();
    expect((await client.call('GET', '/v1/models')).status).toBe(200);
  });

  test('a prompt cannot ask for a job that lasts longer than the clock', async () => {
    const client = setUp();
    const { id } = await client.create('/v1/videos', { prompt: `[slow:${'9'.repeat(300)}h]` });
    await client.sandbox.advance(365 * 24 * 3_600_000);
    expect((await client.job(id)).status).toBe('processing');
  });
});
