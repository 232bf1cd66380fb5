import { GenClient, JobFailedError, PreflightError } from 'gen-client';
import {
  createGenQueue,
  createGenWorker,
  type GenQueue,
  type GenWorker,
  type GenWorkerOptions,
} from 'gen-client/bullmq';
import { createSandbox, type Sandbox, type SandboxOptions } from 'gen-client/sandbox';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type RealRedis, startRedis, whyNoRedis } from '../redis/real-redis.js';

const HOUR_MS = 3_600_000;
const prompt = 'a fox at dawn';
const reason = whyNoRedis();

describe.skipIf(reason !== undefined)('calls queued on BullMQ', () => {
  let redis: RealRedis;
  const open: { close(): Promise<void> }[] = [];
  let names = 0;

  beforeAll(async () => {
    redis = await startRedis();
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((each) => each.close()));
  });
  afterAll(() => redis.close());

  function queueOnSandbox(options: SandboxOptions = {}, wrap = (fetch: typeof globalThis.fetch) => fetch) {
    names += 1;
    const connection = { host: '127.0.0.1', port: redis.port };
    const name = `calls-${names}`;
    const sandbox = createSandbox({ jobDurationMs: 30, limits: 'off', ...options });
    const { apiKey, baseUrl } = sandbox;
    const client = new GenClient({ apiKey, baseUrl, fetch: wrap(sandbox.fetch), rateLimit: 'off', maxRetries: 0 });
    const queue: GenQueue = createGenQueue(connection, { name });
    open.push(queue);
    const work = (more: GenWorkerOptions = {}): GenWorker => {
      const worker = createGenWorker(connection, client, { name, pollIntervalMs: 40, ...more });
      open.push(worker);
      return worker;
    };
    return { sandbox, client, queue, work };
  }

  const ended = (queue: GenQueue, count = 1) =>
    expect.poll(() => queue.queue.getJobCountByTypes('completed', 'failed'), { timeout: 15_000 }).toBe(count);

  /** One call, ended with its job and not with an error. */
  const completed = async (queue: GenQueue) => {
    await ended(queue);
    expect(await queue.queue.getCompletedCount()).toBe(1);
  };

  it('end with the completed job as their result, its state as their progress, under their own id as the key', async () => {
    const { sandbox, queue, work } = queueOnSandbox();
    const seen: string[] = [];
    work({ onCompleted: (job, queueJob) => void seen.push(`${queueJob.id}:${job.status}`) });
    const { id } = await queue.videos.create({ prompt, model: 'svc-video-pro' }, { jobId: 'order-17' });
    await ended(queue);
    const done = await queue.queue.getJob(id ?? '');
    expect(done?.returnvalue).toMatchObject({ id: sandbox.jobs[0]?.id, status: 'completed', modelId: 'svc-video-pro' });
    expect(done?.progress).toEqual({ jobId: sandbox.jobs[0]?.id, status: 'completed' });
    expect(seen).toEqual(['order-17:completed']);
    expect(keysOf(sandbox)).toEqual(['order-17']);
  });

  it('are made once when queued twice under one id', async () => {
    const { sandbox, queue, work } = queueOnSandbox();
    work();
    await queue.images.create({ prompt, idempotency_key: 'order-18' });
    await queue.images.create({ prompt, idempotency_key: 'order-18' });
    await completed(queue);
    expect(sandbox.jobs).toHaveLength(1);
  });

  it('fail with the typed error, kept as data with the queue job', async () => {
    const { sandbox, queue, work } = queueOnSandbox();
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_rejected' });
    const failures: unknown[] = [];
    work({ onFailed: (error) => void failures.push(error) });
    const { id } = await queue.videos.create({ prompt });
    await ended(queue);
    const failed = await queue.queue.getJob(id ?? '');
    expect(failures[0]).toBeInstanceOf(JobFailedError);
    expect(failed?.failedReason).toContain('generation_rejected');
    expect(failed?.data.failure).toMatchObject({ name: 'JobFailedError', code: 'generation_rejected' });
    expect(failed?.attemptsMade).toBe(1);
  });

  it('fail without a call when preflight refuses them', async () => {
    const { sandbox, queue, work } = queueOnSandbox();
    const failures: unknown[] = [];
    work({ onFailed: (error) => void failures.push(error) });
    await queue.videos.create({ prompt, duration: 7 as never });
    await ended(queue);
    expect(failures[0]).toBeInstanceOf(PreflightError);
    expect(sandbox.requests).toHaveLength(0);
  });

  it('sleep as delayed jobs and not in the worker', async () => {
    const { queue, work } = queueOnSandbox({ jobDurationMs: HOUR_MS });
    work({ concurrency: 1, pollIntervalMs: HOUR_MS });
    await Promise.all(Array.from({ length: 5 }, () => queue.videos.create({ prompt })));
    await expect.poll(() => queue.queue.getDelayedCount(), { timeout: 10_000 }).toBe(5);
    expect(await queue.queue.getActiveCount()).toBe(0);
  });

  it('are woken by a webhook long before their next read', async () => {
    const { sandbox, queue, work } = queueOnSandbox({ clock: 'manual', jobDurationMs: 1000 });
    work({ pollIntervalMs: HOUR_MS });
    await queue.videos.create({ prompt });
    await expect.poll(() => queue.queue.getDelayedCount(), { timeout: 10_000 }).toBe(1);
    await sandbox.advance(1000);
    await queue.wake(eventFor(sandbox));
    await completed(queue);
  });

  it('do not lose a webhook that comes while they are being read', async () => {
    let during: (() => Promise<void>) | undefined;
    const { sandbox, queue, work } = queueOnSandbox(
      { clock: 'manual', jobDurationMs: 1000 },
      (fetch) => async (input, init) => {
        const response = await fetch(input, init);
        const isRead = init?.method === 'GET' || (input instanceof Request && input.method === 'GET');
        if (isRead) await during?.();
        return response;
      },
    );
    during = async () => {
      during = undefined;
      await sandbox.advance(1000);
      await queue.wake(eventFor(sandbox));
    };
    work({ pollIntervalMs: HOUR_MS });
    await queue.videos.create({ prompt });
    await expect.poll(() => queue.queue.getDelayedCount(), { timeout: 10_000 }).toBe(1);
    await queue.wake(eventFor(sandbox));
    await completed(queue);
    expect(sandbox.requests.filter((request) => request.method === 'GET')).toHaveLength(2);
  });

  it('do not lose a webhook that comes before the id of the job is stored', async () => {
    const { sandbox, queue, work } = queueOnSandbox(
      { clock: 'manual', jobDurationMs: 1000 },
      (fetch) => async (input, init) => {
        const response = await fetch(input, init);
        if (sandbox.jobs.length === 1 && sandbox.jobs[0]?.status === 'processing') {
          await sandbox.advance(1000);
          await queue.wake(eventFor(sandbox));
        }
        return response;
      },
    );
    work({ pollIntervalMs: HOUR_MS });
    await queue.videos.create({ prompt });
    await completed(queue);
  });

  it('go on after failures of the service and of the connection, and pay once', async () => {
    const { sandbox, queue, work } = queueOnSandbox();
    sandbox.faults.add({ match: { method: 'POST' }, commitThenDrop: true, times: 1 });
    sandbox.faults.add({ match: { method: 'GET' }, status: 500, times: 1 });
    work({ retryDelayMs: 20 });
    await queue.videos.create({ prompt });
    await completed(queue);
    expect(sandbox.jobs).toHaveLength(1);
  });

  it('are sent again under a derived key while a reference is in review', async () => {
    const { sandbox, queue, work } = queueOnSandbox();
    sandbox.outcomes.next({ status: 'failed', errorCode: 'reference_asset_pending', errorData: { retry_after: 0.05 } });
    work();
    await queue.videos.create({ prompt }, { jobId: 'order-19' });
    await completed(queue);
    expect(keysOf(sandbox)).toEqual(['order-19', 'order-19:r2']);
  });

  it('are sent again under new keys while a character is in review', async () => {
    const { sandbox, queue, work } = queueOnSandbox();
    const refusal = { status: 409, code: 'character_pending', retryAfterS: 0.05 };
    sandbox.faults.add({ match: { method: 'POST' }, ...refusal, times: 2 });
    work();
    await queue.videos.create({ prompt }, { jobId: 'order-20' });
    await completed(queue);
    expect(keysOf(sandbox)).toEqual(['order-20', 'order-20:w1', 'order-20:w2']);
  });

  it('fail after timeoutMs with the job on the error, which goes on at the service', async () => {
    const { sandbox, queue, work } = queueOnSandbox({ jobDurationMs: HOUR_MS });
    const failures: unknown[] = [];
    work({ timeoutMs: 100, onFailed: (error) => void failures.push(error) });
    await queue.videos.create({ prompt });
    await ended(queue);
    const [job] = sandbox.jobs;
    expect(failures[0]).toMatchObject({ name: 'WaitTimeoutError', timeoutMs: 100, jobId: job?.id });
    expect(job?.status).toBe('processing');
  });

  it('refuse an id that the engine cannot hold, with the fix', async () => {
    const { queue } = queueOnSandbox();
    for (const jobId of ['17', 'a:b', '']) {
      await expect(queue.videos.create({ prompt }, { jobId })).rejects.toThrow(/jobId must be/);
    }
  });
});

/** The keys under which creates were sent, in order. */
function keysOf(sandbox: Sandbox) {
  return sandbox.requests.filter(({ method }) => method === 'POST').map(({ headers }) => headers['idempotency-key']);
}

function eventFor(sandbox: Sandbox) {
  const job = sandbox.jobs[0];
  return {
    object: 'developer.webhook_event',
    id: `evt_${job?.id}_completed`,
    type: 'job.completed',
    created: new Date(0).toISOString(),
    data: { job: { id: job?.id ?? '', status: 'completed', providerOutputUrl: String(job?.providerOutputUrl) } },
  } as const;
}
