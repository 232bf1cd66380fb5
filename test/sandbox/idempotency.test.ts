import { expect, test } from 'vitest';
import { png, setUp } from './plain-client.js';

const body = { prompt: 'a fox at dawn' };
const key = { 'idempotency-key': 'k1' };

test('a repeated idempotency key returns the original job in its current state, without a second charge', async () => {
  const client = setUp();
  const first = await client.create('/v1/videos', body, key);
  await client.sandbox.advance(3000);
  const replayed = await client.call('POST', '/v1/videos', body, key);
  expect(replayed.body.data.job).toMatchObject({ id: first.id, status: 'completed' });
  expect(replayed.headers.get('idempotency-replayed')).toBe('true');
  expect(client.sandbox.ledger().spentTokens).toBe(first.quotedTokenCost);
});

test('the idempotency key can be in the header or the body, and the header takes precedence', async () => {
  const client = setUp();
  const { id } = await client.create('/v1/videos', body, key);
  expect((await client.create('/v1/videos', { ...body, idempotency_key: 'k1' })).id).toBe(id);
  expect((await client.create('/v1/videos', { ...body, idempotency_key: 'k2' }, key)).id).toBe(id);
  expect((await client.create('/v1/videos', { ...body, idempotency_key: 'k2' })).id).not.toBe(id);
});

test("an empty header doesn't override the key in the body", async () => {
  const client = setUp();
  const bodyWithKey = { ...body, idempotency_key: 'k1' };
  const { id } = await client.create('/v1/videos', bodyWithKey);
  for (const empty of ['', ' ']) {
    expect((await client.create('/v1/videos', bodyWithKey, { 'idempotency-key': empty })).id).toBe(id);
  }
});

test('a repeated idempotency key returns the original job, even for another body or endpoint', async () => {
  const client = setUp();
  const { id } = await client.create('/v1/videos', body, key);
  expect((await client.create('/v1/videos', { prompt: 'a bear', duration: 7 }, key)).id).toBe(id);
  expect((await client.create('/v1/images', { prompt: 'a bear' }, key)).id).toBe(id);
});

test('ten concurrent creates with one idempotency key create one job', async () => {
  const client = setUp();
  const jobs = await Promise.all(Array.from({ length: 10 }, () => client.create('/v1/videos', body, key)));
  expect(new Set(jobs.map(({ id }) => id)).size).toBe(1);
  expect(client.sandbox.jobs).toHaveLength(1);
  expect(client.sandbox.ledger().entries.filter(({ type }) => type === 'reserve')).toHaveLength(1);
});

test('a rejected create leaves its idempotency key unused', async () => {
  const client = setUp({ balanceTokens: 3 });
  expect(await client.code('POST', '/v1/videos', body, key)).toBe('insufficient_balance');
  client.sandbox.topUp(20);
  expect((await client.create('/v1/videos', body, key)).status).toBe('processing');
});

test('an idempotency key returns its job even while dispatch is disabled', async () => {
  const client = setUp();
  const { id } = await client.create('/v1/videos', body, key);
  client.sandbox.dispatch = 'disabled';
  expect((await client.create('/v1/videos', body, key)).id).toBe(id);
});

test('every create supports idempotency keys: images, edits, characters, registrations, uploads', async () => {
  const client = setUp();
  const creates = [
    ['/v1/images', body],
    ['/v1/video-edits', { ...body, model: 'svc-video-pro', video: 'https://e.example/a.mp4' }],
    ['/v1/characters', { ...body, name: 'Ada' }],
  ] as const;
  for (const [path, params] of creates) {
    const header = { 'idempotency-key': path };
    expect((await client.create(path, params, header)).id).toBe((await client.create(path, params, header)).id);
  }
  const upload_id = await client.upload('IMAGE', 'a.png', png(640));
  const register = () => client.call('POST', '/v1/characters', { mode: 'register', name: 'Ada', upload_id }, key);
  expect((await register()).body.data.character).toEqual((await register()).body.data.character);
  const params = { file_name: 'a.mp4', mime_type: 'video/mp4', file_size: 10, upload_type: 'VIDEO' };
  const beginUpload = async () => (await client.call('POST', '/v1/uploads', params, key)).body.data.upload_id;
  const first = await beginUpload();
  expect(await beginUpload()).toBe(first);
  await client.call('DELETE', `/v1/uploads/${first}`);
  expect(await beginUpload()).not.toBe(first);
});
