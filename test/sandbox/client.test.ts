import { describe, expect, test } from 'vitest';
import { GenClient } from '../../src/client.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { signWebhook } from '../../src/webhooks/index.js';

const prompt = 'a fox at dawn';

describe('sandbox.client()', () => {
  test('is set up: it creates, waits, saves and deletes without another word', async () => {
    const sandbox = createSandbox({ jobDurationMs: 0 });
    const client = sandbox.client();
    expect(client).toBeInstanceOf(GenClient);
    const job = await client.videos.createAndWait({ prompt, duration: 4, resolution: '480p' });
    expect(job.providerOutputUrl).toBe(`${sandbox.baseUrl}/v1/jobs/${job.id}/output`);
    const file = new Uint8Array(await (await client.jobs.output(job)).arrayBuffer());
    expect(new TextDecoder().decode(file.subarray(4, 8))).toBe('ftyp');
  });

  test('verifies what its sandbox signs', async () => {
    const sandbox = createSandbox();
    const job = { id: 'job_1', status: 'completed', providerOutputUrl: null };
    const event = { object: 'x', id: 'evt_1', type: 'job.completed', created: new Date().toISOString(), data: { job } };
    const signed = await signWebhook(event as never, { secret: sandbox.webhookSecret });
    expect((await sandbox.client().verifyWebhook(signed)).id).toBe('evt_1');
    await expect(createSandbox().client().verifyWebhook(signed)).rejects.toThrow('signature');
  });

  test('takes options of its own: another key, hooks, no retries', async () => {
    const sandbox = createSandbox({ jobDurationMs: 0 });
    const attempts: number[] = [];
    const hooks = { onRequest: ({ attempt }: { attempt: number }) => void attempts.push(attempt) };
    const client = sandbox.client({ apiKey: sandbox.createKey({ scopes: ['images:create'] }), hooks, maxRetries: 0 });
    await client.images.create({ prompt });
    await expect(client.videos.create({ prompt })).rejects.toMatchObject({ code: 'scope_missing' });
    expect(attempts).toEqual([1, 1]);
    expect(() => sandbox.client({ timeoutMs: -1 })).toThrow('timeoutMs must be');
  });

  test('clients of a sandbox and of its fork share no limits', async () => {
    const sandbox = createSandbox({ jobDurationMs: 0 });
    const client = sandbox.client({ rateLimit: 'throw' });
    for (let at = 0; at < 20; at++) await client.videos.create({ prompt });
    await expect(client.videos.create({ prompt })).rejects.toMatchObject({ code: 'rate_limited' });
    const fork = createSandbox({ jobDurationMs: 0 }).fork();
    const other = fork.client({ rateLimit: 'throw', apiKey: fork.apiKey });
    await expect(other.videos.create({ prompt })).resolves.toBeDefined();
    expect(client.limits()['videos.create']).toMatchObject({ inUse: 20 });
    expect(other.limits()['videos.create']).toMatchObject({ inUse: 1 });
    const copy = sandbox.fork();
    expect([copy.apiKey, copy.baseUrl === sandbox.baseUrl]).toEqual([sandbox.apiKey, false]);
    const used = Object.values(copy.client().limits()).map(({ inUse }) => inUse);
    expect(used.every((count) => count === 0)).toBe(true);
  });
});
