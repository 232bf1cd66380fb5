import { expect, test } from 'vitest';
import { receiver, setUp } from './plain-client.js';

/** Creates jobs and an upload with a seed. Returns their IDs, the jobs' durations, and the bytes of a file. */
async function run(seed?: number) {
  const client = setUp({ seed, jobDurationMs: [1000, 9000] });
  const jobs = [await client.create('/v1/images'), await client.create('/v1/images')];
  const upload = await client.upload('IMAGE');
  await client.sandbox.advance(10_000);
  const { body } = await client.call('GET', `/v1/jobs/${jobs[0].id}/output`);
  const lengths = client.sandbox.jobs.map((job) => Date.parse(job.completedAt ?? '') - Date.parse(job.createdAt ?? ''));
  expect(lengths.every((ms) => ms >= 1000 && ms <= 9000)).toBe(true);
  return { seed: client.sandbox.seed, ids: [...jobs.map(({ id }) => id), upload], lengths, body };
}

test('the same seed produces the same IDs, durations, and bytes, and another or no seed different ones', async () => {
  const [first, other, unseeded] = [await run(7), await run(8), await run()];
  expect(await run(7)).toEqual(first);
  for (const name of ['ids', 'lengths', 'body'] as const) expect(other[name]).not.toEqual(first[name]);
  expect(unseeded.ids).not.toEqual((await run()).ids);
  expect(await run(unseeded.seed)).toEqual(unseeded);
});

test("reset clears everything except the key and the secret, and restarts the seed's IDs", async () => {
  const client = setUp({ balanceTokens: 100, seed: 1 });
  const { sandbox } = client;
  const first = await client.create('/v1/images', { prompt: 'a fox', webhook_url: 'https://app.example/hook' });
  const etag = async (id: string) => {
    await sandbox.advance(3000);
    return (await client.call('GET', `/v1/jobs/${id}/output`)).headers.get('etag');
  };
  const tag = await etag(first.id);
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
  const next = await client.create('/v1/images', { prompt: 'a bear' });
  expect(next.id).toBe(first.id);
  expect(await etag(next.id), 'another file has another tag').not.toBe(tag);
});

test('reset discards pending webhooks', async () => {
  const { events, webhookFetch } = receiver(500);
  const client = setUp({ webhookFetch });
  await client.create('/v1/videos', { prompt: 'a fox', webhook_url: 'https://app.example/hook' });
  await client.sandbox.advance(3000);
  client.sandbox.reset();
  await client.sandbox.advance(3_600_000);
  expect([events.length, client.sandbox.deliveries]).toEqual([1, []]);
});
