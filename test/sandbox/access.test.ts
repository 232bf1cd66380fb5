import { expect, test } from 'vitest';
import { setUp } from './plain-client.js';

const prompt = 'a fox at dawn';

test('a request with a missing, invalid, or revoked key gets a 401', async () => {
  const client = setUp();
  const key = client.sandbox.createKey();
  expect((await client.as(key).call('GET', '/v1/voices')).status).toBe(200);
  expect(client.sandbox.revokeKey(key)).toBe(true);
  for (const token of ['', 'sk_wrong', key])
    expect(await client.as(token).code('GET', '/v1/voices')).toBe('invalid_api_key');
  expect(client.sandbox.revokeKey('sk_wrong')).toBe(false);
  const basic = await client.call('GET', '/v1/voices', undefined, { authorization: `Basic ${client.sandbox.apiKey}` });
  expect(basic.status).toBe(401);
});

test('a key allows only its scopes', async () => {
  const client = setUp();
  const videos = client.as(client.sandbox.createKey({ scopes: ['videos:create'] }));
  const job = await videos.create('/v1/videos');
  expect(await videos.code('POST', '/v1/images', { prompt })).toBe('scope_missing');
  expect(await videos.code('GET', `/v1/jobs/${job.id}`)).toBe('scope_missing');
  expect((await client.call('GET', `/v1/jobs/${job.id}`)).status).toBe(200);
});

test("an account can't see another account's balance and jobs", async () => {
  const client = setUp({ balanceTokens: 100 });
  const { sandbox } = client;
  const other = client.as(sandbox.createKey({ account: 'other' }));
  const { id } = await client.create('/v1/videos');
  expect(sandbox.ledger({ account: 'other' })).toMatchObject({ balanceTokens: 100, reservedTokens: 0 });
  await sandbox.advance(3000);
  expect(await other.code('GET', `/v1/jobs/${id}`)).toBe('job_not_found');
  expect(await other.code('GET', `/v1/jobs/${id}/output`)).toBe('job_not_found');
  expect(sandbox.topUp(20, { account: 'other' })).toBe(500);
});

test('one idempotency key in two accounts creates two jobs', async () => {
  const client = setUp();
  const other = client.as(client.sandbox.createKey({ account: 'other' }));
  const key = { 'idempotency-key': 'k' };
  const body = { prompt };
  expect((await client.create('/v1/videos', body, key)).id).not.toBe((await other.create('/v1/videos', body, key)).id);
});

test('every sandbox generates new API keys unless one is passed, whatever the seed', () => {
  expect(setUp({ seed: 1 }).sandbox.apiKey).not.toBe(setUp({ seed: 1 }).sandbox.apiKey);
  const custom = setUp({ apiKey: 'sk_mine', webhookSecret: 'whsec_mine' }).sandbox;
  expect([custom.apiKey, custom.webhookSecret]).toEqual(['sk_mine', 'whsec_mine']);
});

test('the request log contains no API key', async () => {
  const client = setUp();
  await client.create('/v1/videos');
  expect(JSON.stringify(client.sandbox.requests)).not.toContain(client.sandbox.apiKey);
  expect(client.sandbox.requests).toMatchObject([
    { method: 'POST', path: '/v1/videos', status: 200, account: 'main', body: '{"prompt":"a fox at dawn"}' },
  ]);
});
