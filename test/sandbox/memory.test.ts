import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { receiver, setUp } from './plain-client.js';

const prompt = 'a fox at dawn';

describe('reset', () => {
  test('forgets all but the key and the secret, and the seed starts over', async () => {
    const client = setUp({ balanceTokens: 100, seed: 1 });
    const { sandbox } = client;
    const first = await client.create('/v1/videos');
    const key = sandbox.createKey({ account: 'other' });
    sandbox.faults.add({ status: 500, times: 9 });
    sandbox.outcomes.next({ status: 'blocked' });
    sandbox.dispatch = 'disabled';
    const { apiKey, webhookSecret } = sandbox;
    sandbox.reset();
    expect([sandbox.apiKey, sandbox.webhookSecret]).toEqual([apiKey, webhookSecret]);
    expect([sandbox.jobs, sandbox.requests, sandbox.deliveries, sandbox.faults.list()]).toEqual([[], [], [], []]);
    expect([sandbox.dispatch, sandbox.ledger().balanceTokens]).toEqual(['enabled', 100]);
    expect(await client.as(key).code('GET', '/v1/voices')).toBe('invalid_api_key');
    const again = await client.create('/v1/videos');
    expect(again.id).toBe(first.id);
    await sandbox.advance(3000);
    expect((await client.job(again.id)).status).toBe('completed');
  });

  test('gives a job that repeats an id its own file and tag', async () => {
    const client = setUp({ seed: 1 });
    const tags = [];
    for (const words of ['a fox', 'a bear']) {
      client.sandbox.reset();
      const { id } = await client.create('/v1/images', { prompt: words });
      await client.sandbox.advance(3000);
      const { headers, body } = await client.call('GET', `/v1/jobs/${id}/output`);
      tags.push({ id, etag: headers.get('etag'), body });
    }
    const [fox, bear] = tags;
    expect(fox?.id).toBe(bear?.id);
    expect(fox?.etag).not.toBe(bear?.etag);
    expect(fox?.body).not.toBe(bear?.body);
  });

  test('leaves no webhook of before on its way', async () => {
    const { events, webhookFetch } = receiver(500);
    const client = setUp({ webhookFetch });
    await client.create('/v1/videos', { prompt, webhook_url: 'https://app.example/hook' });
    await client.sandbox.advance(3000);
    client.sandbox.reset();
    await client.sandbox.advance(3_600_000);
    expect(events).toHaveLength(1);
    expect(client.sandbox.deliveries).toEqual([]);
  });
});

describe('the in-process fetch', () => {
  test('works unbound, with a Request, and under a path prefix', async () => {
    const { fetch, baseUrl, apiKey } = setUp({ baseUrl: 'https://gen.example/api/' }).sandbox;
    expect(baseUrl).toBe('https://gen.example/api');
    const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
    const request = new Request(`${baseUrl}/v1/uploads`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ file_name: 'a.mp4', mime_type: 'video/mp4', file_size: 1, upload_type: 'VIDEO' }),
    });
    const { data } = await (await fetch(request)).json();
    expect(data.direct_upload_url).toMatch(/^https:\/\/gen\.example\/api\/storage\//);
    expect((await fetch(data.direct_upload_url, { method: 'PUT', headers: data.headers, body: 'x' })).status).toBe(200);
    expect((await fetch('https://gen.example/v1/models')).status).toBe(404);
  });

  test('an abort rejects with the signal’s own reason, and no listener stays on the signal', async () => {
    const { fetch, baseUrl } = setUp().sandbox;
    const gone = AbortSignal.abort(new Error('gone'));
    await expect(fetch(`${baseUrl}/v1/models`, { signal: gone })).rejects.toThrow('gone');
    const { signal } = new AbortController();
    await (await fetch(`${baseUrl}/v1/models`, { signal })).text();
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  test('a content-length that is sent twice fails, as in a real fetch', async () => {
    const { fetch, baseUrl } = setUp().sandbox;
    const headers = new Headers({ 'content-length': '2' });
    headers.append('Content-Length', '2');
    const call = fetch(`${baseUrl}/v1/videos`, { method: 'POST', headers, body: '{}' });
    await expect(call).rejects.toThrow(new TypeError('fetch failed: invalid content-length header'));
  });
});

test('two calls of advance at once add up', async () => {
  const { sandbox } = setUp();
  const start = sandbox.now();
  await Promise.all([sandbox.advance(1000), sandbox.advance(500)]);
  expect(sandbox.now() - start).toBe(1500);
});

test('the logs keep the latest', async () => {
  const client = setUp();
  const { fetch, baseUrl } = client.sandbox;
  for (let at = 0; at < 11_002; at++) await fetch(`${baseUrl}/v1/models?at=${at}`, { method: 'HEAD' });
  const { requests } = client.sandbox;
  expect(requests.length).toBeLessThan(11_000);
  expect(requests.at(-1)?.query).toBe('?at=11001');
});
