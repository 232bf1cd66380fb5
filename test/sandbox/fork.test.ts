import { expect, test } from 'vitest';
import { clientFor, receiver, setUp } from './plain-client.js';

const prompt = 'a fox at dawn';

test("a fork has the original's entire state, at the same time", async () => {
  const client = setUp({ balanceTokens: 500, limits: { 'videos.create': { limit: 3, windowMs: 60_000 } } });
  const { sandbox } = client;
  const job = await client.create('/v1/videos', { prompt }, { 'idempotency-key': 'k' });
  const upload = await client.upload('IMAGE');
  const registered = await client.call('POST', '/v1/characters', { mode: 'register', name: 'Ada', upload_id: upload });
  const key = sandbox.createKey({ account: 'other' });
  sandbox.outcomes.next({ status: 'blocked' });
  sandbox.faults.add({ match: { path: '/v1/voices' }, status: 500 });
  await sandbox.advance(1000);
  const fork = sandbox.fork();
  const copy = clientFor(fork);

  expect([fork.now(), fork.seed, fork.dispatch]).toEqual([sandbox.now(), sandbox.seed, sandbox.dispatch]);
  expect([fork.apiKey, fork.webhookSecret]).toEqual([sandbox.apiKey, sandbox.webhookSecret]);
  expect(fork.ledger()).toEqual(sandbox.ledger());
  expect(fork.ledger({ account: 'other' })).toEqual(sandbox.ledger({ account: 'other' }));
  expect(fork.requests).toEqual(sandbox.requests);
  expect((await copy.as(key).call('GET', `/v1/characters/ada`)).status).toBe(404);
  expect((await copy.call('GET', '/v1/characters/ada')).body.data).toEqual(registered.body.data);
  expect((await copy.create('/v1/videos', { prompt }, { 'idempotency-key': 'k' })).id).toBe(job.id);
  expect((await copy.call('GET', '/v1/voices')).status).toBe(500);
  const next = await copy.create('/v1/videos', { prompt, first_frame_upload_id: upload });
  // The rate limits' windows are copied, too: this minute already has three creates.
  expect(await copy.code('POST', '/v1/videos', { prompt })).toBe('rate_limited');
  await fork.advance(2000);
  expect((await copy.job(job.id)).status).toBe('completed');
  await fork.advance(1000);
  expect((await copy.job(next.id)).status).toBe('blocked');
});

test('a fork and its original continue independently', async () => {
  const client = setUp({ balanceTokens: 500 });
  const { id } = await client.create('/v1/videos');
  const fork = client.sandbox.fork();
  const copy = clientFor(fork);
  await fork.advance(3000);
  fork.topUp(20);
  fork.dispatch = 'disabled';
  fork.faults.add({ status: 500 });
  fork.revokeKey(fork.apiKey);
  expect((await client.job(id)).status).toBe('processing');
  expect(client.sandbox.ledger()).toMatchObject({ spentTokens: 0, paidTokens: 500 });
  expect([client.sandbox.dispatch, client.sandbox.faults.list()]).toEqual(['enabled', []]);
  client.sandbox.reset();
  expect(fork.jobs).toMatchObject([{ id, status: 'completed' }]);
  expect(copy.sandbox.now() - client.sandbox.now()).toBe(3000);
});

test('a fork has its own base URL with the same prefix, which its links use', async () => {
  const client = setUp({ baseUrl: 'https://gen.example/api' });
  const { id } = await client.create('/v1/images');
  await client.sandbox.advance(3000);
  const forks = [client.sandbox.fork(), client.sandbox.fork(), client.sandbox.fork().fork()];
  const urls = [client.sandbox, ...forks].map(({ baseUrl }) => baseUrl);
  expect(new Set(urls).size).toBe(4);
  for (const fork of forks) {
    expect(fork.baseUrl).toMatch(/^https:\/\/fork-\w{8}\.(fork-\w{8}\.)?gen\.example\/api$/);
    const job = await clientFor(fork).job(id);
    expect(job.providerOutputUrl).toBe(`${fork.baseUrl}/v1/jobs/${id}/output`);
    expect(fork.jobs[0]?.providerOutputUrl).toBe(job.providerOutputUrl);
  }
  const server = setUp({ baseUrl: 'http://127.0.0.1:4010' }).sandbox;
  expect(server.fork().baseUrl).toMatch(/^http:\/\/fork-\w{8}\.sandbox\.invalid:4010$/);
});

test('a fork and its original both send pending deliveries, with their own URLs', async () => {
  const { events, webhookFetch } = receiver();
  const client = setUp({ webhookFetch });
  const { id } = await client.create('/v1/videos', { prompt, webhook_url: 'https://app.example/hook' });
  const fork = client.sandbox.fork();
  await client.sandbox.advance(3000);
  await fork.advance(3000);
  const urls = events.map(({ body }) => JSON.parse(body).data.job.providerOutputUrl);
  expect(urls).toEqual([client.sandbox, fork].map(({ baseUrl }) => `${baseUrl}/v1/jobs/${id}/output`));
  expect([client.sandbox.deliveries.length, fork.deliveries.length]).toEqual([1, 1]);
});
