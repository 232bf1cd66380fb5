import { expect, test } from 'vitest';
import type { PricedJob } from '../../src/sandbox/world/options.js';
import { type PlainClient, setUp } from './plain-client.js';

const prompt = 'a fox at dawn';
const quote = async (client: PlainClient, body: object = {}, path = '/v1/videos') =>
  (await client.call('POST', path, { prompt, ...body })).body.data.quoted_token_cost;

test('prices can be one number for all jobs', async () => {
  const client = setUp({ prices: 7 });
  expect([await quote(client, { duration: 10 }), await quote(client, {}, '/v1/images')]).toEqual([7, 7]);
});

test('prices can be a function of everything that affects a price, and undefined selects the default price', async () => {
  const pricedJobs: PricedJob[] = [];
  const client = setUp({
    prices(job) {
      pricedJobs.push(job);
      return job.call === 'videos' ? job.duration * 2.5 : undefined;
    },
  });
  expect(await quote(client, { duration: 4, generate_audio: true })).toBe(10);
  const character = [{ name: 'Ada' }, '/v1/characters'] as const;
  expect(await quote(client, ...character)).toBe(await quote(setUp(), ...character));
  await quote(client, { model: 'svc-video-pro', video: 'https://a.test/a.mp4' }, '/v1/video-edits');
  expect(pricedJobs).toEqual([
    { call: 'videos', model: 'svc-video-fast', resolution: '720p', duration: 4, audio: true },
    { call: 'characters', model: 'svc-image-pro', resolution: 'standard', duration: 0, audio: false },
    { call: 'videoEdits', model: 'svc-video-pro', resolution: '720p', duration: 5, audio: false },
  ]);
});

test('an invalid price from a function is reported, and nothing is charged', async () => {
  const client = setUp({ prices: () => Number.NaN });
  const rejected = await client.call('POST', '/v1/videos', { prompt });
  expect([rejected.status, rejected.body.error.message]).toEqual([500, expect.stringContaining('prices must return')]);
  expect(client.sandbox.ledger()).toMatchObject({ reservedTokens: 0, balanceTokens: 1000 });
});

test('decimal prices add up exactly', async () => {
  const client = setUp({ prices: 0.1, balanceTokens: 1 });
  for (let at = 0; at < 10; at++) await client.create('/v1/videos');
  await client.sandbox.advance(3000);
  expect(client.sandbox.ledger()).toMatchObject({ balanceTokens: 0, reservedTokens: 0, spentTokens: 1, paidTokens: 1 });
});

test('the ledger lists all reservations and charges, with the balance after each', async () => {
  const client = setUp({ prices: 10, balanceTokens: 100 });
  await client.create('/v1/videos');
  client.sandbox.outcomes.next({ finalTokenCost: 4 });
  await client.create('/v1/videos');
  await client.sandbox.advance(3000);
  const rows = client.sandbox.ledger().entries.map(({ type, tokens, balanceTokens }) => [type, tokens, balanceTokens]);
  expect(rows).toEqual([
    ['opening', 100, 100],
    ['reserve', 10, 90],
    ['reserve', 10, 80],
    ['charge', 10, 80],
    ['charge', 4, 80],
    ['release', 6, 86],
  ]);
});
