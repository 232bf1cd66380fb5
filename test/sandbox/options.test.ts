import { describe, expect, test } from 'vitest';
import { GenError } from '../../src/errors/index.js';
import { createSandbox, type SandboxOptions } from '../../src/sandbox/index.js';
import { setUp } from './plain-client.js';

/** What somebody who writes plain JavaScript may pass. */
const loose = (options: object) => options as SandboxOptions;

describe('createSandbox refuses an option that does not exist, and names the nearest', () => {
  test.each([
    [{ jobDuration: 3 }, 'createSandbox has no option "jobDuration". Did you mean "jobDurationMs"?'],
    [{ ballanceTokens: 3 }, 'createSandbox has no option "ballanceTokens". Did you mean "balanceTokens"?'],
    [
      { jobDurationMs: { videos: 3 } },
      'createSandbox has no option "jobDurationMs.videos". Did you mean "jobDurationMs.video"?',
    ],
    [
      { review: { characters: 3 } },
      'createSandbox has no option "review.characters". Did you mean "review.character"?',
    ],
    [
      { limits: { 'video.create': { limit: 1, windowMs: 1 } } },
      `createSandbox has no option "limits['video.create']". Did you mean "limits['videos.create']"?`,
    ],
    [
      { limits: { 'videos.create': { limit: 1, window: 1 } } },
      `createSandbox has no option "limits['videos.create'].window". Did you mean "limits['videos.create'].windowMs"?`,
    ],
    [{ storage: { CORS: false } }, 'createSandbox has no option "storage.CORS". Did you mean "storage.cors"?'],
    [
      { prices: [{ modell: 'svc-video-pro', tokens: 1 }] },
      'createSandbox has no option "prices.0.modell". Did you mean "prices.0.model"?',
    ],
  ])('%j', (options, message) => {
    expect(() => createSandbox(loose(options))).toThrow(new GenError(message));
  });
});

describe('createSandbox refuses a value that would break it, by name', () => {
  const never = [Number.NaN, Number.POSITIVE_INFINITY, -1, '5'];
  const numbers = ['balanceTokens', 'jobDurationMs', 'startTime'];
  const each = [...numbers, 'speed', 'seed'].flatMap((name) => never.map((value) => [name, value] as const));
  test.each(each.filter(([name, value]) => !(name === 'seed' && value === -1)))('%s: %s', (name, value) => {
    expect(() => createSandbox(loose({ [name]: value }))).toThrow(new RegExp(`^${name} must be .*, not .*\\.$`));
  });

  test.each([
    [{ speed: 0 }, 'speed must be a number above 0, up to 100,000, not 0.'],
    [{ speed: 1e9 }, 'speed must be a number above 0, up to 100,000, not 1000000000.'],
    [{ startTime: 8.64e15 }, 'startTime must be milliseconds since 1970, before the year 9000, not 8640000000000000.'],
    [
      { jobDurationMs: [9, 1] },
      'jobDurationMs must be milliseconds from 0 to 100 years, a range such as [1000, 9000], or those by kind, not an array.',
    ],
    [
      { jobDurationMs: { video: -1 } },
      'jobDurationMs.video must be milliseconds from 0 to 100 years, or a range of them such as [1000, 9000], not -1.',
    ],
    [{ limits: 'of' }, 'limits must be "documented", "off" or limits by lane, not "of".'],
    [
      { limits: { 'jobs.get': { limit: 0, windowMs: 1 } } },
      "limits['jobs.get'].limit must be a whole number, 1 or more, not 0.",
    ],
    [
      { limits: { 'jobs.get': { limit: 1 } } },
      "limits['jobs.get'].windowMs must be a number of milliseconds above 0, up to 100 years, not undefined.",
    ],
    [{ review: 'slow' }, 'review must be "instant" or { character, asset } in milliseconds, not "slow".'],
    [{ review: { asset: Number.NaN } }, 'review.asset must be a number of milliseconds from 0 to 100 years, not NaN.'],
    [{ clock: 'held' }, 'clock must be one of "real", "manual", not "held".'],
    [{ storage: { cors: 'no' } }, 'storage.cors must be true or false, not "no".'],
    [{ baseUrl: 'sandbox' }, 'baseUrl must be an absolute http(s) URL without query and hash, not "sandbox".'],
    [
      { baseUrl: 'https://a.test/?x=1' },
      'baseUrl must be an absolute http(s) URL without query and hash, not "https://a.test/?x=1".',
    ],
    [{ apiKey: 'a b' }, 'apiKey must be a string of visible ASCII characters.'],
    [
      { prices: -1 },
      'prices must be a number of tokens, a list of { model, resolution, duration, audio, call, tokens }, or a function, not -1.',
    ],
    [
      { prices: [{ tokens: Number.NaN }] },
      'prices.0.tokens must be a number of tokens from 0 to 1,000,000,000, not NaN.',
    ],
    [
      { prices: [{ model: 'svc-video-pro' }] },
      'prices.0.tokens must be a number of tokens from 0 to 1,000,000,000, not undefined.',
    ],
    [{ webhookFetch: 'https://a.test' }, 'webhookFetch must be a function, not a string.'],
  ])('%j', (options, message) => {
    expect(() => createSandbox(loose(options))).toThrow(new GenError(message));
  });

  test('undefined means left out', () => {
    expect(
      createSandbox({ speed: undefined, limits: undefined, jobDurationMs: { video: undefined } }).now(),
    ).toBeGreaterThan(0);
  });
});

describe('while it runs', () => {
  const { sandbox } = setUp();
  test.each<[string, () => unknown, string]>([
    [
      'an outcome',
      () => sandbox.outcomes.next({ errorcode: 'x' } as object),
      'outcomes.next has no option "errorcode". Did you mean "errorCode"?',
    ],
    [
      'a cost below zero',
      () => sandbox.outcomes.next({ finalTokenCost: -500 }),
      'finalTokenCost must be a number of tokens from 0 to 1,000,000,000, not -500.',
    ],
    [
      'a cost that is not a number',
      () => sandbox.outcomes.next({ finalTokenCost: Number.NaN }),
      'finalTokenCost must be a number of tokens from 0 to 1,000,000,000, not NaN.',
    ],
    [
      'a duration without end',
      () => sandbox.outcomes.next({ durationMs: Number.POSITIVE_INFINITY }),
      'durationMs must be a number of milliseconds from 0 to 100 years, not Infinity.',
    ],
    [
      'a webhook sent a million times',
      () => sandbox.outcomes.next({ webhookCopies: 1e6 }),
      'webhookCopies must be a whole number from 0 to 100, not 1000000.',
    ],
    [
      'error data that no JSON holds',
      () => sandbox.outcomes.next({ errorData: { at: () => 0 } }),
      'errorData must be a JSON object, not an object.',
    ],
    [
      'a fault rule',
      () => sandbox.faults.add({ reset: true, latency: 5 } as object),
      'faults.add has no option "latency". Did you mean "latencyMs"?',
    ],
    [
      'a fault match',
      () => sandbox.faults.add({ reset: true, match: { route: '/' } as object }),
      'faults.add has no option "match.route". Use one of match.method, match.path, match.nth.',
    ],
    [
      'a fault that never applies',
      () => sandbox.faults.add({ reset: true, times: 0 }),
      'times must be a whole number, 1 or more, not 0.',
    ],
    [
      'a latency without end',
      () => sandbox.faults.add({ latencyMs: Number.POSITIVE_INFINITY }),
      'latencyMs must be a number of milliseconds above 0, up to 100 years, not Infinity.',
    ],
    [
      'a key option',
      () => sandbox.createKey({ scope: [] } as object),
      'createKey has no option "scope". Did you mean "scopes"?',
    ],
    [
      'a scope',
      () => sandbox.createKey({ scopes: ['job:read'] }),
      'scopes has no scope "job:read". Did you mean "jobs:read"?',
    ],
    [
      'dispatch',
      () => Object.assign(sandbox, { dispatch: 'paused' }),
      'dispatch must be "enabled" or "disabled", not "paused".',
    ],
    [
      'prices',
      () => sandbox.setPrices([{ tokns: 1 }] as never),
      'setPrices has no option "prices.0.tokns". Did you mean "prices.0.tokens"?',
    ],
    ['an unknown job', () => sandbox.finish('job_x'), 'There is no job "job_x" in this sandbox.'],
    [
      'too small a top-up',
      () => sandbox.topUp(5),
      'usd must be a number from 20 to 50000000, not 5: top-ups start at 20 USD.',
    ],
  ])('%s is refused by name', (_, act, message) => {
    expect(act).toThrow(new GenError(message));
  });

  test('what was refused has changed nothing', async () => {
    const client = setUp();
    expect(() => client.sandbox.outcomes.next({ finalTokenCost: -1 })).toThrow();
    expect(() => client.sandbox.faults.add({ reset: true, times: -1 })).toThrow();
    await client.create('/v1/videos');
    await client.sandbox.advance(3000);
    expect(client.sandbox.jobs[0]?.status).toBe('completed');
  });

  test('an outcome and a rule are copied, so changing them later changes nothing', async () => {
    const client = setUp();
    const outcome = { status: 'failed' as const, errorData: { retry_after: 5 }, durationMs: 0 };
    client.sandbox.outcomes.next(outcome);
    outcome.errorData.retry_after = 9;
    expect((await client.create('/v1/videos')).errorData).toEqual({ retry_after: 5 });
  });
});

describe('the clock has an end that no call passes (once, a time beyond year 275760 broke the sandbox for good)', () => {
  test.each([Number.MAX_SAFE_INTEGER, Number.POSITIVE_INFINITY, 8.64e15, Number.NaN, '5'])(
    'advance(%s)',
    async (ms) => {
      const client = setUp();
      const { id } = await client.create('/v1/videos');
      expect(() => client.sandbox.advance(ms as number)).toThrow(/^ms must be /);
      await client.sandbox.advance(3000);
      expect((await client.job(id)).status).toBe('completed');
      client.sandbox.reset();
      expect((await client.create('/v1/videos')).status).toBe('processing');
    },
  );

  test('many small steps do not pass it either, and at the end everything still answers', async () => {
    const client = setUp({ startTime: Date.UTC(8999, 11, 31, 23, 59) });
    const { id } = await client.create('/v1/videos');
    await client.sandbox.advance(59_000);
    const late = Promise.all([client.sandbox.advance(800), client.sandbox.advance(800)]);
    await expect(late).rejects.toThrow("ms must be at most 200, not 800: the sandbox's clock ends with the year 8999.");
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

  test('over HTTP control the same calls are refused with 400, and the sandbox goes on', async () => {
    const client = setUp();
    for (const [path, body] of [
      ['advance', '{"ms":99999999999999000}'],
      ['advance', '{"ms":1e999}'],
      ['outcomes', '{"finalTokenCost":-5}'],
      ['outcomes', '{"durationMs":1e300}'],
      ['topup', '{"usd":1e300}'],
      ['prices', '{"prices":[{"tokens":-1}]}'],
      ['faults', '{"latencyMs":1e300}'],
      ['advance', '[]'],
      ['advance', 'null'],
      ['advance', '{"ms":"5"}'],
    ] as const) {
      const refused = await client.call('POST', `/_sandbox/${path}`, body);
      expect([path, body, refused.status]).toEqual([path, body, 400]);
      expect(refused.body.error.message).toMatch(/must be|has no option/);
    }
    expect((await client.call('POST', '/_sandbox/reset')).status).toBe(200);
    expect((await client.call('GET', '/_sandbox/state')).status).toBe(200);
  });
});
