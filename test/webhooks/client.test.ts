import { afterEach, expect, test, vi } from 'vitest';
import { GenClient } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { createWebhookHandler, signWebhook } from '../../src/webhooks/index.js';
import { HOOK } from './deliver.js';
import { serveWeb } from './node-server.js';

const event = { id: 'evt_job_1_failed', type: 'job.failed', data: { job: { id: 'job_1', status: 'failed' } } };
afterEach(() => vi.unstubAllEnvs());

async function requestFor(secret: string): Promise<Request> {
  const { body, headers } = await signWebhook(event, { secret });
  return new Request(HOOK, { method: 'POST', body, headers });
}

function clientWith(webhookSecret?: string | string[]): GenClient {
  return new GenClient({ apiKey: 'key', baseUrl: 'https://gen.test', webhookSecret });
}

test("a client verifies webhooks with its secret, the environment's, or the call's", async () => {
  expect(await clientWith('whsec_a').verifyWebhook(await requestFor('whsec_a'))).toEqual(event);
  expect(await clientWith(['whsec_b', 'whsec_a']).verifyWebhook(await requestFor('whsec_a'))).toEqual(event);
  vi.stubEnv('GEN_WEBHOOK_SECRET', 'whsec_env');
  expect(await clientWith().verifyWebhook(await requestFor('whsec_env'))).toEqual(event);
  expect(await clientWith().verifyWebhook(await requestFor('whsec_c'), { secret: 'whsec_c' })).toEqual(event);
  const other = clientWith('whsec_a').verifyWebhook(await requestFor('whsec_env'));
  await expect(other).rejects.toMatchObject({ reason: 'signature_mismatch' });
});

test('a client without a secret throws and says which option or variable to set', async () => {
  vi.stubEnv('GEN_WEBHOOK_SECRET', undefined);
  const rejected = clientWith().verifyWebhook(await requestFor('whsec_a'));
  const message = 'webhookSecret is missing. Pass { webhookSecret }, or set GEN_WEBHOOK_SECRET.';
  await expect(rejected).rejects.toMatchObject({ reason: 'secret_missing', message });
  const blank = clientWith('whsec_a').verifyWebhook(await requestFor('whsec_a'), { secret: '' });
  await expect(blank).rejects.toThrow('Pass { secret }');
});

test("a handler without a secret uses its client's secret with the handler's other options", async () => {
  const handled = vi.fn();
  const onError = vi.fn();
  const handler = createWebhookHandler({ client: clientWith('whsec_a'), on: { '*': handled }, onError });
  expect((await handler(await requestFor('whsec_a'))).status).toBe(200);
  expect(handled).toHaveBeenCalledExactlyOnceWith(event);
  expect((await handler(await requestFor('whsec_b'))).status).toBe(400);
  const strict = createWebhookHandler({ client: clientWith('whsec_a'), onError, maxBodyBytes: 10 });
  expect((await strict(await requestFor('whsec_a'))).status).toBe(413);
  const withSecret = createWebhookHandler({ client: clientWith('whsec_a'), secret: 'whsec_b', onError });
  expect((await withSecret(await requestFor('whsec_b'))).status).toBe(200);
  expect((await withSecret(await requestFor('whsec_a'))).status).toBe(400);
});

test('a sandbox webhook ends a wait in the same process long before the next poll', async () => {
  const sandbox = createSandbox({ jobDurationMs: 300 });
  const { apiKey, baseUrl, fetch, webhookSecret } = sandbox;
  // Uses the real clock, because the delivery does.
  const client = new GenClient({ apiKey, baseUrl, fetch, webhookSecret });
  const handled: string[] = [];
  const handler = createWebhookHandler({ client, on: { 'job.completed': ({ id }) => handled.push(id) } });
  await using served = await serveWeb(handler);
  const startMs = performance.now();
  const job = await client.videos.createAndWait({ prompt: 'A fox.', webhook_url: `${served.url}/hook` });
  // Without a webhook, a wait polls a video every 10 to 15 seconds.
  expect(performance.now() - startMs).toBeLessThan(5000);
  expect(handled).toEqual([`evt_${job.id}_completed`]);
  await sandbox.settled();
  expect(sandbox.deliveries.map(({ status }) => status)).toEqual([200]);
});
