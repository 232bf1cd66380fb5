import { expect, test } from 'vitest';
import endpoints from '../fixtures/endpoints.json' with { type: 'json' };
import { setUp } from './plain-client.js';

const limitedEndpoints = endpoints.filter((row) => 'limitPerMinute' in row);
const video = { prompt: 'a fox at dawn' };

test.each(limitedEndpoints)(
  '$method $path allows $limitPerMinute requests per minute',
  async ({ method, path, limitPerMinute = 0 }) => {
    const client = setUp({ limits: 'documented', balanceTokens: 1_000_000 });
    const send = () => client.call(method, path.replace(/\{\w+\}/, 'unknown'), method === 'POST' ? video : undefined);
    for (let at = 0; at < limitPerMinute; at++) expect((await send()).status).not.toBe(429);
    const rejected = await send();
    expect([rejected.status, rejected.headers.get('retry-after')]).toEqual([429, '60']);
    await client.sandbox.advance(60_000);
    expect((await send()).status).not.toBe(429);
  },
);

test('other endpoints are unlimited', async () => {
  const client = setUp({ limits: 'documented' });
  for (let at = 0; at < 150; at++) expect((await client.call('POST', '/v1/images', video)).status).toBe(200);
});

test('GET and HEAD of an output share one rate limit', async () => {
  const client = setUp({ limits: { 'jobs.output': { limit: 2, windowMs: 60_000 } } });
  const statuses = [];
  for (const method of ['GET', 'HEAD', 'GET']) statuses.push((await client.call(method, '/v1/jobs/x/output')).status);
  expect(statuses).toEqual([404, 404, 429]);
});

test('a slot is free after exactly Retry-After', async () => {
  const client = setUp({ limits: { 'videos.create': { limit: 2, windowMs: 60_000 } } });
  await client.create('/v1/videos');
  await client.sandbox.advance(12_500);
  await client.create('/v1/videos');
  const rejected = await client.call('POST', '/v1/videos', video);
  expect(rejected.headers.get('retry-after')).toBe('48');
  await client.sandbox.advance(47_499);
  expect(await client.code('POST', '/v1/videos', video)).toBe('rate_limited');
  await client.sandbox.advance(1);
  await client.create('/v1/videos');
  expect(await client.code('POST', '/v1/videos', video)).toBe('rate_limited');
});

test("accounts have separate limits, and rejected requests don't count", async () => {
  const client = setUp({ limits: { 'videos.create': { limit: 1, windowMs: 60_000 } } });
  const other = client.as(client.sandbox.createKey({ account: 'other' }));
  await client.create('/v1/videos');
  for (let at = 0; at < 5; at++) {
    await client.sandbox.advance(10_000);
    expect(await client.code('POST', '/v1/videos', video)).toBe('rate_limited');
  }
  await other.create('/v1/videos');
  await client.sandbox.advance(10_000);
  await client.create('/v1/videos');
});
