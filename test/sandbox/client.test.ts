import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test, vi } from 'vitest';
import { GenClient } from '../../src/client/client.js';
import { DOCUMENTED_LIMITS } from '../../src/rules/limits.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { signWebhook } from '../../src/webhooks/index.js';
import { PATIENCE_MS } from '../support/patience.js';

const prompt = 'a fox at dawn';
const { limit: LIMIT, windowMs: WINDOW_MS } = DOCUMENTED_LIMITS['videos.create'];

describe('sandbox.client()', () => {
  test('creates a job, waits for it, and downloads its file without options', async () => {
    const sandbox = createSandbox({ jobDurationMs: 0 });
    const client = sandbox.client();
    expect(client).toBeInstanceOf(GenClient);
    const job = await client.videos.createAndWait({ prompt, duration: 4, resolution: '480p' });
    expect(job.providerOutputUrl).toBe(`${sandbox.baseUrl}/v1/jobs/${job.id}/output`);
    const file = new Uint8Array(await (await client.jobs.output(job)).arrayBuffer());
    expect(new TextDecoder().decode(file.subarray(4, 8))).toBe('ftyp');
  });

  test("verifies its sandbox's signatures", async () => {
    const sandbox = createSandbox();
    const job = { id: 'job_1', status: 'completed', providerOutputUrl: 'https://gen.test/output' };
    const event = { object: 'x', id: 'evt_1', type: 'job.completed', created: new Date().toISOString(), data: { job } };
    const signed = await signWebhook(event as never, { secret: sandbox.webhookSecret });
    expect((await sandbox.client().verifyWebhook(signed)).id).toBe('evt_1');
    await expect(createSandbox().client().verifyWebhook(signed)).rejects.toThrow('signature');
  });

  test('accepts client options, such as another key, hooks, and no retries', async () => {
    const sandbox = createSandbox({ jobDurationMs: 0 });
    const attempts: number[] = [];
    const hooks = { onRequest: ({ attempt }: { attempt: number }) => void attempts.push(attempt) };
    const client = sandbox.client({ apiKey: sandbox.createKey({ scopes: ['images:create'] }), hooks, maxRetries: 0 });
    await client.images.create({ prompt });
    await expect(client.videos.create({ prompt })).rejects.toMatchObject({ code: 'scope_missing' });
    expect(attempts).toEqual([1, 1]);
    expect(() => sandbox.client({ timeoutMs: -1 })).toThrow('timeoutMs must be');
  });

  test.each(['create', 'createAndWait'] as const)("logs %s's warning once", async (call) => {
    const warn = vi.fn();
    const logger = { error() {}, warn, info() {}, debug() {} };
    const { videos } = createSandbox({ jobDurationMs: 0 }).client({ logger, logLevel: 'warn' });
    const params = { prompt, reference_videos: ['https://a.test/broken.mp4'] };
    await (call === 'create' ? videos.create(params) : videos.createAndWait(params));
    const line = expect.stringMatching(/^gen-client: job job_\w+: video_reference_fallback_omitted_clips$/);
    expect(warn.mock.calls).toEqual([[line]]);
  });

  test('logs a warning once if only polls contain it, as after a fallback during submission', async () => {
    const warn = vi.fn();
    const logger = { error() {}, warn, info() {}, debug() {} };
    const sandbox = createSandbox({ jobDurationMs: 0 });
    const client = sandbox.client({
      ...{ logger, logLevel: 'warn' },
      async fetch(input, init) {
        const request = new Request(input, init);
        const response = await sandbox.fetch(request);
        if (request.method === 'POST') return response;
        const { data } = await response.json();
        return Response.json({ data: { job: { ...data.job, warnings: ['omitted_clips'] } } });
      },
    });
    const { job } = await client.videos.create({ prompt });
    for (let polls = 0; polls < 3; polls++) await client.jobs.get(job.id);
    expect(warn.mock.calls).toEqual([[`gen-client: job ${job.id}: omitted_clips`]]);
  });

  test("doesn't share limits between a sandbox and its fork", async () => {
    const sandbox = createSandbox({ jobDurationMs: 0 });
    const client = sandbox.client({ rateLimit: 'throw' });
    for (let at = 0; at < LIMIT; at++) await client.videos.create({ prompt });
    await expect(client.videos.create({ prompt })).rejects.toMatchObject({ code: 'rate_limited' });
    const fork = createSandbox({ jobDurationMs: 0 }).fork();
    const other = fork.client({ rateLimit: 'throw', apiKey: fork.apiKey });
    await expect(other.videos.create({ prompt })).resolves.toBeDefined();
    expect(client.limits()['videos.create']).toMatchObject({ free: 0 });
    expect(other.limits()['videos.create']).toMatchObject({ free: LIMIT - 1 });
    const copy = sandbox.fork();
    expect([copy.apiKey, copy.baseUrl === sandbox.baseUrl]).toEqual([sandbox.apiKey, false]);
    const unused = Object.values(copy.client().limits()).map(({ free, limit }) => free === limit);
    expect(unused.every(Boolean)).toBe(true);
  });
});

describe("a client on the sandbox's clock", () => {
  test("by default, completes createAndWait, including processing, in less than the job's 3 s", async () => {
    const client = createSandbox().client();
    await client.models.list();
    const startMs = performance.now();
    const statuses: string[] = [];
    const job = await client.videos.createAndWait(
      { prompt },
      { onCreated: ({ job }) => void statuses.push(job.status) },
    );
    expect(performance.now() - startMs).toBeLessThan(2_500);
    expect([...statuses, job.status]).toEqual(['processing', 'completed']);
    expect(Date.parse(job.completedAt ?? '') - Date.parse(job.createdAt ?? '')).toBe(3000);
  });

  test('ends createAndWait when a manual clock advances, even if its create was not sent yet', async () => {
    const sandbox = createSandbox({ clock: 'manual' });
    const client = sandbox.client();
    const waiting = client.videos.createAndWait({ prompt });
    await sandbox.advance(60_000);
    expect((await waiting).status).toBe('completed');
  });

  test('ends a hundred waits with one advance, without a 429', async () => {
    const sandbox = createSandbox({ clock: 'manual', balanceTokens: 1e6 });
    const client = sandbox.client();
    const waiting = Array.from({ length: 100 }, () => client.videos.createAndWait({ prompt }));
    await sandbox.advance(10 * 60_000);
    expect(new Set((await Promise.all(waiting)).map(({ status }) => status))).toEqual(new Set(['completed']));
    expect(sandbox.requests.filter(({ status }) => status === 429)).toEqual([]);
  });

  test('takes little real time for limits, reviews, retries, and timeouts', async () => {
    const sandbox = createSandbox({ review: { asset: 30_000 }, balanceTokens: 1e6 });
    const client = sandbox.client();
    const startMs = performance.now();
    await Promise.all(Array.from({ length: 2 * LIMIT + 1 }, () => client.videos.create({ prompt })));
    expect(sandbox.now() - Date.parse(sandbox.jobs[0]?.createdAt ?? '')).toBeGreaterThanOrEqual(2 * WINDOW_MS);
    const { upload_id } = await client.uploads.upload(new Blob(['x'], { type: 'image/png' }), { filename: 'a.png' });
    expect((await client.videos.createAndWait({ prompt, first_frame_upload_id: upload_id })).status).toBe('completed');
    sandbox.faults.add({ match: { path: '/v1/voices' }, status: 500, times: 2 });
    expect((await client.voices.list().withResponse()).attempts).toBe(3);
    sandbox.faults.add({ match: { path: '/v1/voices' }, latencyMs: 90_000 });
    await expect(client.voices.list({ maxRetries: 0 })).rejects.toMatchObject({ name: 'TimeoutError' });
    const slow = client.videos.createAndWait({ prompt: '[slow:2h]' }, { timeoutMs: 60_000 });
    await expect(slow).rejects.toMatchObject({ name: 'WaitTimeoutError' });
    expect(performance.now() - startMs).toBeLessThan(18_000);
  });

  test('wakes a wait on a webhook that arrives during advance', async () => {
    const notified: string[] = [];
    const sandbox = createSandbox({
      clock: 'manual',
      webhookFetch: async (_, init) => {
        const { headers, body } = new Request('https://app.test/hook', init);
        const event = await client.verifyWebhook({ headers, body: await new Response(body).text() });
        notified.push(event.id);
        client.notify(event as never);
        return new Response(null, { status: 204 });
      },
    });
    const client = sandbox.client();
    const waiting = client.videos.createAndWait({ prompt, webhook_url: 'https://app.test/hook' });
    await sandbox.advance(3000);
    expect(await waiting).toMatchObject({ status: 'completed' });
    expect(notified).toHaveLength(1);
  });

  test('lets the process exit if a wait is never advanced', async () => {
    const path = (file: string) => fileURLToPath(new URL(file, import.meta.url));
    const args = ['--import', path('../../scripts/typescript.mjs'), path('pending-wait-process.ts')];
    const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: PATIENCE_MS });
    expect(stdout).toBe('processing');
  });

  test('ends a wait that a real timer aborts', async () => {
    const client = createSandbox().client();
    const signal = AbortSignal.timeout(20);
    const failure = await client.videos.createAndWait({ prompt: '[slow:10m]' }, { signal }).catch((error) => error);
    expect([failure, signal.aborted]).toEqual([signal.reason, true]);
  });
});
