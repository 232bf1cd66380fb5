import { createHmac } from 'node:crypto';
import { expect, test } from 'vitest';
import event from '../fixtures/bodies/webhook-event.json' with { type: 'json' };
import { receiver, setUp } from './plain-client.js';

const prompt = 'a fox at dawn';
const webhook_url = 'https://app.example/hook';

test.each([
  ['a fox', 'completed'],
  ['[fail:generation_failed]', 'failed'],
  ['[canceled]', 'canceled'],
  ['[blocked]', 'blocked'],
])('%s sends one job.%s with the documented body and headers', async (jobPrompt, status) => {
  const { events, webhookFetch } = receiver();
  const client = setUp({ webhookFetch });
  const { id } = await client.create('/v1/videos', { prompt: jobPrompt, webhook_url });
  await client.sandbox.advance(3000);
  expect(events).toHaveLength(1);
  const [{ url, headers, body } = { url: '', headers: new Headers(), body: '' }] = events;
  const delivered = JSON.parse(body);
  expect(url).toBe(webhook_url);
  expect(Object.keys(delivered).sort()).toEqual(Object.keys(event).sort());
  expect(Object.keys(delivered.data.job).sort()).toEqual(Object.keys(event.data.job).sort());
  expect(delivered).toMatchObject({ id: `evt_${id}_${status}`, type: `job.${status}`, data: { job: { id, status } } });
  expect(delivered.object).toContain(event.object);
  expect(new Date(delivered.created).toISOString()).toBe(delivered.created);
  const output = status === 'completed' ? `${client.sandbox.baseUrl}/v1/jobs/${id}/output` : null;
  expect(delivered.data.job.providerOutputUrl).toBe(output);
  expect(headers.get('x-service-event-id')).toBe(delivered.id);
  expect(headers.get('x-service-event-type')).toBe(delivered.type);
  expect(headers.get('x-service-job-id')).toBe(id);
  expect(headers.get('content-type')).toBe('application/json');
});

test('the signature covers the raw body and the real time, as documented', async () => {
  const { events, webhookFetch } = receiver();
  const client = setUp({ webhookFetch, startTime: 0 });
  await client.create('/v1/videos', { prompt, callback_url: webhook_url });
  await client.sandbox.advance(3000);
  const { headers, body } = events[0] ?? { headers: new Headers(), body: '' };
  const stamp = headers.get('x-service-timestamp') ?? '';
  expect(Math.abs(Date.now() / 1000 - Number(stamp))).toBeLessThan(5);
  const digest = createHmac('sha256', client.sandbox.webhookSecret).update(`${stamp}.${body}`).digest('hex');
  expect(headers.get('x-service-signature')).toBe(`t=${stamp},v1=${digest}`);
});

test('each account signs with its own secret', async () => {
  const { events, webhookFetch } = receiver();
  const client = setUp({ webhookFetch });
  const { key, webhookSecret } = (await client.call('POST', '/_sandbox/keys', { account: 'other' })).body;
  await client.as(key).create('/v1/images', { prompt, webhook_url });
  await client.sandbox.advance(3000);
  const { headers, body } = events[0] ?? { headers: new Headers(), body: '' };
  const [, stamp, v1] = /^t=(\d+),v1=(\w+)$/.exec(headers.get('x-service-signature') ?? '') ?? [];
  expect(webhookSecret).not.toBe(client.sandbox.webhookSecret);
  expect(createHmac('sha256', webhookSecret).update(`${stamp}.${body}`).digest('hex')).toBe(v1);
});

test('a rejected event is sent up to five times with the same ID', async () => {
  const { events, webhookFetch } = receiver(500);
  const client = setUp({ webhookFetch });
  await client.create('/v1/videos', { prompt, webhook_url });
  await client.sandbox.advance(24 * 3_600_000);
  expect(events).toHaveLength(5);
  expect(new Set(events.map(({ headers }) => headers.get('x-service-event-id'))).size).toBe(1);
  const { deliveries } = client.sandbox;
  expect(deliveries.map(({ attempt, reason, status, ok }) => [attempt, reason, status, ok])).toEqual([
    [1, 'event', 500, false],
    [2, 'retry', 500, false],
    [3, 'retry', 500, false],
    [4, 'retry', 500, false],
    [5, 'retry', 500, false],
  ]);
});

test('delivery retries an unreachable receiver, and stops after the first 2xx', async () => {
  let calls = 0;
  const webhookFetch: typeof fetch = async () => {
    calls += 1;
    if (calls < 3) throw new TypeError('fetch failed');
    return new Response(null, { status: 204 });
  };
  const client = setUp({ webhookFetch });
  await client.create('/v1/videos', { prompt, webhook_url });
  await client.sandbox.advance(24 * 3_600_000);
  const { deliveries } = client.sandbox;
  expect(deliveries.map(({ error }) => error)).toEqual(['fetch failed', 'fetch failed', null]);
});

test('an event can be lost and duplicated', async () => {
  const { events, webhookFetch } = receiver();
  const client = setUp({ webhookFetch });
  client.sandbox.outcomes.next({ webhookCopies: 0 });
  client.sandbox.outcomes.next({ webhookCopies: 2 });
  await client.create('/v1/videos', { prompt, webhook_url });
  const duplicated = await client.create('/v1/videos', { prompt, webhook_url });
  await client.sandbox.advance(3000);
  expect(events.map(({ headers }) => headers.get('x-service-job-id'))).toEqual([duplicated.id, duplicated.id]);
  expect(client.sandbox.deliveries.map(({ reason }) => reason)).toEqual(['event', 'copy']);
});

test('a job that ends immediately also sends its event', async () => {
  const { events, webhookFetch } = receiver();
  const client = setUp({ webhookFetch, jobDurationMs: 0 });
  await client.create('/v1/videos', { prompt, webhook_url });
  await client.sandbox.settled();
  expect(events).toHaveLength(1);
});
