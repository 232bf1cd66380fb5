import { serve } from '@hono/node-server';
import { afterEach, expect, test, vi } from 'vitest';
import { GenClient, type WebhookEvent } from '../../src/index.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { createWebhookHandler, signWebhook } from '../../src/webhooks/index.js';
import { PATIENCE_MS } from '../support/patience.js';

const event = { id: 'evt_job_1_failed', type: 'job.failed', data: { job: { id: 'job_1', status: 'failed' } } };
afterEach(() => vi.unstubAllEnvs());

async function requestFor(secret: string): Promise<Request> {
  const { body, headers } = await signWebhook(event, { secret });
  return new Request('https://me.test/hook', { method: 'POST', body, headers });
}

function clientWith(webhookSecret?: string | string[]): GenClient {
  return new GenClient({ apiKey: 'key', baseUrl: 'https://gen.test', webhookSecret });
}

test("the client verifies with its own secret, or the environment's, or the call's", async () => {
  expect(await clientWith('whsec_a').verifyWebhook(await requestFor('whsec_a'))).toEqual(event);
  expect(await clientWith(['whsec_b', 'whsec_a']).verifyWebhook(await requestFor('whsec_a'))).toEqual(event);
  vi.stubEnv('GEN_WEBHOOK_SECRET', 'whsec_env');
  expect(await clientWith().verifyWebhook(await requestFor('whsec_env'))).toEqual(event);
  expect(await clientWith().verifyWebhook(await requestFor('whsec_c'), { secret: 'whsec_c' })).toEqual(event);
  const other = clientWith('whsec_a').verifyWebhook(await requestFor('whsec_env'));
  await expect(other).rejects.toMatchObject({ reason: 'signature_mismatch' });
});

test('a client without a secret throws, naming the option and the variable', async () => {
  vi.stubEnv('GEN_WEBHOOK_SECRET', undefined);
  const rejected = clientWith().verifyWebhook(await requestFor('whsec_a'));
  await expect(rejected).rejects.toMatchObject({
    reason: 'secret_missing',
    message: 'webhookSecret is missing. Pass { webhookSecret }, or set GEN_WEBHOOK_SECRET.',
  });
  const blank = clientWith('whsec_a').verifyWebhook(await requestFor('whsec_a'), { secret: '' });
  await expect(blank).rejects.toMatchObject({
    reason: 'secret_missing',
    message: expect.stringContaining('Pass { secret }'),
  });
});

test("a handler without a secret uses its client's, and its own other options", async () => {
  const handled = vi.fn();
  const onError = vi.fn();
  const handler = createWebhookHandler({ client: clientWith('whsec_a'), on: { '*': handled }, onError });
  expect((await handler(await requestFor('whsec_a'))).status).toBe(200);
  expect(handled).toHaveBeenCalledExactlyOnceWith(event);
  expect((await handler(await requestFor('whsec_b'))).status).toBe(400);
  const strict = createWebhookHandler({ client: clientWith('whsec_a'), onError, maxBodyBytes: 10 });
  expect((await strict(await requestFor('whsec_a'))).status).toBe(413);
  const own = createWebhookHandler({ client: clientWith('whsec_a'), secret: 'whsec_b', onError });
  expect((await own(await requestFor('whsec_b'))).status).toBe(200);
  expect((await own(await requestFor('whsec_a'))).status).toBe(400);
});

test('a sandbox webhook ends a wait in the same process long before the next poll', async () => {
  const sandbox = createSandbox({ jobDurationMs: 300 });
  const client = new GenClient({
    apiKey: sandbox.apiKey,
    baseUrl: sandbox.baseUrl,
    fetch: sandbox.fetch,
    webhookSecret: sandbox.webhookSecret,
  });
  const handled: WebhookEvent[] = [];
  const handler = createWebhookHandler({
    secret: sandbox.webhookSecret,
    client,
    on: { 'job.completed': (event) => handled.push(event) },
  });
  const server = serve({
    fetch: (request) => handler(request),
    port: 0,
    hostname: '127.0.0.1',
    overrideGlobalObjects: false,
  });
  await vi.waitFor(() => expect(server.listening).toBe(true), PATIENCE_MS);
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  try {
    const startMs = performance.now();
    const job = await client.videos.createAndWait({ prompt: 'A fox.', webhook_url: `http://127.0.0.1:${port}/hook` });
    // Without a webhook, a wait polls a video every 10 to 15 seconds.
    expect(performance.now() - startMs).toBeLessThan(5000);
    expect(handled).toEqual([expect.objectContaining({ id: `evt_${job.id}_completed`, type: 'job.completed' })]);
    await sandbox.settled();
    expect(sandbox.deliveries.map(({ status }) => status)).toEqual([200]);
  } finally {
    server.close();
  }
});
