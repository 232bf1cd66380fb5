import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SpanStatusCode } from '@opentelemetry/api';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { saveOutput } from '../../src/adapters/node/index.js';
import { instrumentGenClient } from '../../src/adapters/otel/index.js';
import { copyOutput } from '../../src/adapters/storage/index.js';
import { createSandbox, type SandboxOptions } from '../../src/sandbox/index.js';
import { MemoryStore } from '../storage/memory-store.js';
import { startTelemetry, treeOf } from './telemetry.js';

const VIDEO = { prompt: 'a fox at dawn', duration: 4 } as const;

let telemetry: ReturnType<typeof startTelemetry>;
let stop = () => {};
function instrument(options: Parameters<typeof instrumentGenClient>[0] = {}) {
  stop();
  const { tracerProvider, meterProvider } = telemetry;
  stop = instrumentGenClient({ tracerProvider, meterProvider, ...options });
}
beforeEach(() => {
  telemetry = startTelemetry();
  instrument();
});
afterEach(async () => {
  stop();
  await telemetry.stop();
});

/** Creates a sandbox with a manual clock. `finish` advances it until a call has ended. */
function setup(options: SandboxOptions = {}) {
  const sandbox = createSandbox({ clock: 'manual', prices: 12, ...options });
  const finish = async <T>(call: PromiseLike<T>): Promise<T> => {
    await sandbox.advance(60_000);
    return call;
  };
  return { sandbox, client: sandbox.client(), finish };
}

describe('instrumentGenClient', () => {
  test("creates one tree per job under the caller's span: generate with create, wait, download, and copy", async () => {
    const { sandbox, client, finish } = setup();
    const folder = mkdtempSync(join(tmpdir(), 'gen-client-otel-'));
    await telemetry.tracer.startActiveSpan('POST /orders', async (span) => {
      const job = await finish(client.videos.createAndWait(VIDEO));
      await saveOutput(client, job, `${folder}/`);
      await copyOutput(client, job, new MemoryStore().at('fox.mp4'));
      span.end();
    });
    rmSync(folder, { recursive: true });
    expect(treeOf(telemetry.spans())).toEqual([
      ['POST /orders', [['generate_content svc-video-fast', ['create', 'wait', 'download', 'copy']]]],
    ]);
    const jobId = sandbox.jobs[0]?.id;
    const [generate] = telemetry.spans().filter(({ name }) => name === 'generate_content svc-video-fast');
    expect(generate?.attributes).toEqual({
      'gen_ai.operation.name': 'generate_content',
      'gen_ai.output.type': 'video',
      'gen_ai.provider.name': 'gen_client',
      'gen_ai.request.model': 'svc-video-fast',
      'gen_client.call': 'videos',
      'gen_client.job.id': jobId,
      'gen_client.job.status': 'completed',
      'gen_client.tokens.quoted': 12,
      'gen_client.tokens.charged': 12,
      'gen_client.tokens.balance': 988,
    });
    const jobSpans = telemetry.spans().filter(({ name }) => name !== 'POST /orders');
    expect(jobSpans.map(({ attributes }) => attributes['gen_client.job.id'])).toEqual(jobSpans.map(() => jobId));
  });

  test("separates concurrent callers' traces", async () => {
    const { client, finish } = setup();
    const order = (name: string) =>
      telemetry.tracer.startActiveSpan(name, async (span) => {
        await client.videos.createAndWait({ ...VIDEO, prompt: name });
        span.end();
      });
    await finish(Promise.all(['a', 'b', 'c'].map(order)));
    expect(treeOf(telemetry.spans()).toSorted()).toEqual(
      ['a', 'b', 'c'].map((name) => [name, [['generate_content svc-video-fast', ['create', 'wait']]]]),
    );
    expect(new Set(telemetry.spans().map((span) => span.spanContext().traceId)).size).toBe(3);
  });

  test("adds a wait to its caller's trace, with a link to the job", async () => {
    const { client, finish } = setup();
    const { job } = await client.videos.create(VIDEO);
    const wait = telemetry.tracer.startActiveSpan('GET /status', (span) =>
      client.waitForJob(job.id).finally(() => span.end()),
    );
    await finish(wait);
    expect(treeOf(telemetry.spans())).toEqual([
      ['generate_content svc-video-fast', ['create']],
      ['GET /status', ['wait']],
    ]);
    const links = telemetry.spans().flatMap((span) => span.links.map((link) => link.context.spanId));
    expect(links).toHaveLength(2);
    expect(new Set(links).size).toBe(1);
  });

  test("marks failures with the error's type, without its message", async () => {
    const { sandbox, client, finish } = setup();
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_rejected', errorMessage: 'CANARY-message' });
    await finish(client.videos.createAndWait(VIDEO).catch(() => {}));
    sandbox.faults.add({ match: { method: 'POST' }, status: 402, code: 'insufficient_balance' });
    await client.videos.create(VIDEO).catch(() => {});
    const { ERROR, UNSET } = SpanStatusCode;
    const spans = telemetry.spans();
    expect(spans.map(({ name, status, attributes }) => [name, status.code, attributes['error.type']])).toEqual([
      ['create', UNSET, undefined],
      ['generate_content svc-video-fast', ERROR, 'generation_rejected'],
      ['wait', ERROR, 'generation_rejected'],
      ['create', ERROR, 'insufficient_balance'],
      ['generate_content', ERROR, 'insufficient_balance'],
    ]);
  });

  test('measures jobs, tokens, polls, retries, rate-limit waits, and the balance', async () => {
    const { sandbox, client } = setup();
    sandbox.faults.add({ match: { method: 'POST' }, status: 503, code: 'internal_error', times: 1 });
    const waits = [client.videos.createAndWait(VIDEO), client.images.createAndWait({ prompt: 'a fox' })];
    await sandbox.advance(120_000);
    await Promise.all(waits);
    expect(await telemetry.sums()).toEqual({
      'gen_client.job.duration': 2,
      'gen_client.tokens.quoted': 24,
      'gen_client.tokens.charged': 24,
      'gen_client.balance': 976,
      'gen_client.polls': sandbox.requests.filter(({ method }) => method === 'GET').length,
      'gen_client.retries': 1,
    });
    const otherClient = sandbox.client();
    const creates = Array.from({ length: 25 }, () => otherClient.videos.create(VIDEO));
    await sandbox.advance(200_000);
    await Promise.all(creates);
    // The rate limit is 20 per minute.
    expect((await telemetry.sums())['gen_client.limit.wait']).toBeGreaterThanOrEqual(5);
  });

  test('creates a separate, linked span for the end of a job that no call waits for', async () => {
    const { sandbox, client } = setup();
    const { job } = await client.videos.create(VIDEO);
    await sandbox.advance(60_000);
    await client.jobs.get(job.id);
    expect(treeOf(telemetry.spans())).toEqual([['generate_content svc-video-fast', ['create', 'final']]]);
    const [, generate, final] = telemetry.spans();
    expect(final?.attributes).toMatchObject({ 'gen_client.tokens.charged': 12, 'gen_client.job.status': 'completed' });
    expect(final?.links.map(({ context }) => context.spanId)).toEqual(
      generate?.links.map(({ context }) => context.spanId),
    );
  });

  test.each(['create', 'createAndWait'] as const)(
    'leaves no orphaned spans of %s when the process crashes',
    async (method) => {
      const { sandbox, client } = setup();
      const calls = Array.from(
        { length: 5 },
        (): PromiseLike<unknown> =>
          method === 'create' ? client.videos.create(VIDEO) : client.videos.createAndWait(VIDEO),
      );
      await sandbox.advance(1);
      // A crash loses all spans that weren't exported.
      const spans = telemetry.spans();
      const ids = spans.map((span) => span.spanContext().spanId);
      for (const { parentSpanContext } of spans) if (parentSpanContext) expect(ids).toContain(parentSpanContext.spanId);
      expect(sandbox.jobs).toHaveLength(5);
      await sandbox.advance(60_000);
      await Promise.all(calls);
    },
  );

  test('ends generate with the wait even if the job continues', async () => {
    const { client, finish } = setup();
    await finish(client.videos.createAndWait(VIDEO, { timeoutMs: 1_000 }).catch(() => {}));
    expect(treeOf(telemetry.spans())).toEqual([['generate_content svc-video-fast', ['create', 'wait']]]);
  });

  test("ends pending calls' spans when it stops, and records nothing afterward", async () => {
    const { sandbox, client, finish } = setup();
    const wait = client.videos.createAndWait(VIDEO);
    await sandbox.advance(1);
    stop();
    expect(treeOf(telemetry.spans())).toEqual([['generate_content svc-video-fast', ['create']]]);
    await finish(wait);
    await client.videos.create(VIDEO);
    expect(telemetry.spans()).toHaveLength(2);
  });

  test("doesn't affect calls if the tracer or the meter throws", async () => {
    const fail = () => {
      throw new Error('a bug of the tracer');
    };
    instrument({
      tracerProvider: { getTracer: () => ({ startSpan: fail, startActiveSpan: fail }) },
      meterProvider: telemetry.meterProvider,
    });
    const { client, finish } = setup();
    expect(await finish(client.videos.createAndWait(VIDEO))).toMatchObject({ status: 'completed' });
  });

  test('records no prompt, key, file name, signed URL, or webhook secret', async () => {
    const { sandbox, client, finish } = setup({ apiKey: 'sk-CANARY-key', webhookSecret: 'whsec-CANARY' });
    const file = new Blob(['\x89PNG\r\n\x1a\n CANARY-bytes'], { type: 'image/png' });
    await client.uploads.upload(file, { filename: 'CANARY-name.png' }).catch(() => {});
    const params = { ...VIDEO, prompt: 'CANARY-prompt', webhook_url: 'https://x.test/?CANARY-hook' };
    const job = await finish(client.videos.createAndWait(params));
    await client.jobs.output(job).then((response) => response.body?.cancel());
    await client.videos
      .create({ prompt: 'CANARY', model: 'CANARY model' as 'svc-video-fast', first_frame_url: 'no' })
      .catch(() => {});
    sandbox.faults.add({ match: { method: 'POST' }, status: 400, code: 'prompt "CANARY-code" is rejected' });
    await client.images.create({ prompt: 'x' }).catch(() => {});
    stop();
    await telemetry.meterProvider.forceFlush();
    const spans = telemetry
      .spans()
      .map(({ name, attributes, links, events, status }) => ({ name, attributes, links, events, status }));
    expect(spans.length).toBeGreaterThan(6);
    const json = JSON.stringify([spans, await telemetry.sums()]);
    expect(json.replace('CANARY model', '')).not.toContain('CANARY');
  });

  test("adds a create's label to its spans", async () => {
    const { sandbox, client } = setup();
    const { job } = await client.videos.create(VIDEO, { label: 'user-7' });
    await sandbox.advance(60_000);
    await client.jobs.get(job.id);
    const labels = telemetry.spans().map(({ name, attributes }) => [name, attributes['gen_client.label']]);
    expect(labels).toEqual([
      ['create', undefined],
      ['generate_content svc-video-fast', 'user-7'],
      ['final', 'user-7'],
    ]);
  });

  test('captures the prompt if capturePrompt is true', async () => {
    instrument({ capturePrompt: true });
    const { client } = setup();
    await client.videos.create(VIDEO);
    stop();
    const [, generate] = telemetry.spans();
    expect(generate?.attributes['gen_client.prompt']).toBe('a fox at dawn');
  });
});
