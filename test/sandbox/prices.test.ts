import { expect, test } from 'vitest';
import type { Prices } from '../../src/sandbox/index.js';
import type { PricedJob } from '../../src/sandbox/world/prices.js';
import { clientFor, type PlainClient, setUp } from './plain-client.js';

const prompt = 'a fox at dawn';
const quote = async (client: PlainClient, body: object = {}, path = '/v1/videos') =>
  (await client.call('POST', path, { prompt, ...body })).body.data.quoted_token_cost;

test('one figure is the price of every job', async () => {
  const client = setUp({ prices: 7 });
  expect([await quote(client), await quote(client, { duration: 10 }), await quote(client, {}, '/v1/images')]).toEqual([
    7, 7, 7,
  ]);
});

test('a table sets prices by model, resolution, duration, audio and call; its first matching row decides', async () => {
  const prices: Prices = [
    { model: 'svc-video-pro', resolution: '1080p', audio: true, tokens: 99 },
    { model: 'svc-video-pro', resolution: '1080p', tokens: 90 },
    { model: 'svc-video-fast', duration: 10, tokens: 33 },
    { call: 'characters', tokens: 12 },
  ];
  const client = setUp({ prices, balanceTokens: 10_000 });
  const pro = { model: 'svc-video-pro', resolution: '1080p' };
  expect(await quote(client, { ...pro, generate_audio: true })).toBe(99);
  expect(await quote(client, { ...pro, generate_audio: false })).toBe(90);
  expect(await quote(client, { ...pro, model: 'svc-video-gen-2' })).toBe(90);
  expect(await quote(client, { duration: 10 })).toBe(33);
  expect(await quote(client, { name: 'Ada' }, '/v1/characters')).toBe(12);
});

test('what no row matches, and what a function leaves open, has the price of before', async () => {
  const own = await quote(setUp());
  const priced: Prices[] = [[{ model: 'svc-video-pro', tokens: 1 }], () => undefined];
  for (const prices of priced) expect(await quote(setUp({ prices }))).toBe(own);
});

test('a function sees all that a price may depend on', async () => {
  const seen: PricedJob[] = [];
  const prices = (job: PricedJob) => {
    seen.push(job);
    return job.duration * 2.5;
  };
  const client = setUp({ prices });
  expect(await quote(client, { duration: 4, generate_audio: true })).toBe(10);
  await quote(client, { name: 'Ada' }, '/v1/characters');
  await quote(client, { model: 'svc-video-pro', video: 'https://a.test/a.mp4' }, '/v1/video-edits');
  expect(seen).toEqual([
    { call: 'videos', model: 'svc-video-fast', resolution: '720p', duration: 4, audio: true },
    { call: 'characters', model: 'svc-image-pro', resolution: 'standard', duration: 0, audio: false },
    { call: 'videoEdits', model: 'svc-video-pro', resolution: '720p', duration: 5, audio: false },
  ]);
});

test('a function that gives no tokens is told of, and nothing is charged', async () => {
  const client = setUp({ prices: () => Number.NaN });
  const refused = await client.call('POST', '/v1/videos', { prompt });
  expect([refused.status, refused.body.error.code]).toEqual([500, 'internal_error']);
  expect(refused.body.error.message).toContain(
    'prices must give a number of tokens, 0 or more, for svc-video-fast, not NaN.',
  );
  expect(client.sandbox.ledger()).toMatchObject({ reservedTokens: 0, balanceTokens: 1000 });
});

test('prices can change in the middle; jobs that exist keep theirs, and so do a fork and a reset', async () => {
  const client = setUp({ prices: 10, balanceTokens: 100 });
  const { sandbox } = client;
  const first = await client.create('/v1/videos');
  sandbox.setPrices(25);
  const fork = clientFor(sandbox.fork());
  await client.create('/v1/videos');
  await client.call('POST', '/_sandbox/prices', { prices: [{ call: 'videos', tokens: 30 }] });
  expect([await quote(fork), await quote(client)]).toEqual([25, 30]);
  await sandbox.advance(3000);
  expect((await client.job(first.id)).finalTokenCost).toBe(10);
  expect(sandbox.ledger()).toMatchObject({ spentTokens: 65, balanceTokens: 35 });
  sandbox.setPrices();
  expect(await quote(client)).toBe(10);
  sandbox.setPrices(40);
  sandbox.reset();
  expect(await quote(client)).toBe(10);
});

test('prices with decimals add up exactly', async () => {
  const client = setUp({ prices: 0.1, balanceTokens: 1 });
  for (let at = 0; at < 10; at++) await client.create('/v1/videos');
  await client.sandbox.advance(3000);
  expect(client.sandbox.ledger()).toMatchObject({ balanceTokens: 0, reservedTokens: 0, spentTokens: 1, paidTokens: 1 });
});

test('the ledger tells the balance after each movement', async () => {
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
