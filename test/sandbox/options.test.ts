import { expect, test } from 'vitest';
import { GenError } from '../../src/errors/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { setUp } from './plain-client.js';

/** Removes the type of options, as in plain JavaScript. */
const untyped = (options: object) => options as never;

test.each([
  [{ jobDuration: 3 }, 'createSandbox has no option "jobDuration". Did you mean "jobDurationMs"?'],
  [{ jobDurationMs: { videos: 3 } }, 'createSandbox has no option "jobDurationMs.videos". Did you mean'],
  [{ limits: { 'video.create': { limit: 1, windowMs: 1 } } }, `"limits['video.create']". Did you mean`],
])('an unknown option is rejected with a suggestion: %j', (options, message) => {
  expect(() => createSandbox(untyped(options))).toThrow(message);
});

const numbers = ['balanceTokens', 'jobDurationMs', 'startTime', 'speed', 'seed'];
test.each<readonly [object, string]>([
  ...numbers.flatMap((name) => [Number.NaN, '5'].map((value) => [{ [name]: value }, name] as const)),
  [{ speed: 0 }, 'speed'],
  [{ jobDurationMs: [9, 1] }, 'jobDurationMs'],
  [{ jobDurationMs: { video: -1 } }, 'jobDurationMs.video'],
  [{ limits: 'of' }, 'limits'],
  [{ limits: { 'jobs.get': { limit: 1 } } }, "limits['jobs.get'].windowMs"],
  [{ limits: { 'jobs.get': { limit: 1.5, windowMs: 1 } } }, "limits['jobs.get'].limit"],
  [{ review: { asset: Number.NaN } }, 'review.asset'],
  [{ clock: 'stopped' }, 'clock'],
  [{ baseUrl: 'https://a.test/?x=1' }, 'baseUrl'],
  [{ prices: -1 }, 'prices'],
  [{ webhookFetch: 'https://a.test' }, 'webhookFetch'],
])('an invalid value is rejected with the name of its option: %j', (options, name) => {
  const failure = () => createSandbox(untyped(options));
  expect(failure).toThrow(GenError);
  expect(failure).toThrow(`${name} must be `);
});

test('messages contain no API key', () => {
  const failure = () => createSandbox({ apiKey: 'a secret' });
  expect(failure).toThrow(/^apiKey must be a string of visible ASCII characters\.$/);
});

const { sandbox } = setUp();
test.each<[string, () => unknown]>([
  ['outcomes.next has no option "errorcode". Did you mean', () => sandbox.outcomes.next(untyped({ errorcode: 'x' }))],
  ['status must be', () => sandbox.outcomes.next({ status: 'done' as 'failed' })],
  ['finalTokenCost must be', () => sandbox.outcomes.next({ finalTokenCost: -500 })],
  ['durationMs must be', () => sandbox.outcomes.next({ durationMs: Number.POSITIVE_INFINITY })],
  ['no option "match.route"', () => sandbox.faults.add({ reset: true, match: untyped({ route: '/' }) })],
  ['the rule has no effect', () => sandbox.faults.add({ match: { path: '/v1/videos' } })],
  ['status must be', () => sandbox.faults.add({ status: 200 })],
  ['times must be', () => sandbox.faults.add({ reset: true, times: 0 })],
  ['createKey has no option "scope". Did you mean', () => sandbox.createKey(untyped({ scope: [] }))],
  ['scopes.0 must be one of images:create', () => sandbox.createKey({ scopes: ['job:read'] })],
  ['dispatch must be', () => Object.assign(sandbox, { dispatch: 'paused' })],
  ['finish: this sandbox has no job "job_x"', () => sandbox.finish('job_x')],
  ['There is no account "nobody"', () => sandbox.ledger({ account: 'nobody' })],
  ['usd must be a number of dollars, 20 or more, not 19.99', () => sandbox.topUp(19.99)],
  ['ms must be', () => sandbox.advance(-1)],
  ['ms must be', () => sandbox.advance(Number.POSITIVE_INFINITY)],
])('an invalid call throws and changes nothing: %s', (message, act) => {
  expect(act).toThrow(GenError);
  expect(act).toThrow(message);
  expect([sandbox.faults.list(), sandbox.dispatch]).toEqual([[], 'enabled']);
});

test('an outcome is copied, so changing it later has no effect', async () => {
  const client = setUp();
  const outcome = { status: 'failed' as const, errorData: { retry_after: 5 }, durationMs: 0 };
  client.sandbox.outcomes.next(outcome);
  outcome.errorData.retry_after = 9;
  expect((await client.create('/v1/videos')).errorData).toEqual({ retry_after: 5 });
});
