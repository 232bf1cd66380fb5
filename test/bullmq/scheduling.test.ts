import { createGenQueue } from 'gen-client/bullmq';
import { expect, it, vi } from 'vitest';
import { openJobIndex } from '../../src/adapters/bullmq/connection.js';
import { isTooSlow } from '../support/core-share.js';
import { deferred } from '../support/deferred.js';
import { freePort } from '../support/free-port.js';
import { describeWithRedis, eventOf, isCreate, type QueueOnSandbox, queuesOnSandboxes } from './queue-on-sandbox.js';

const HOUR_MS = 3_600_000;
const prompt = 'a fox at dawn';
const WINDOW = 20;

describeWithRedis('queued calls', () => {
  const { open } = queuesOnSandboxes();

  it('poll running jobs before they create new ones', async () => {
    const calls = 30;
    // At six creates per second, the last one is sent after five seconds.
    const limits = { 'videos.create': { limit: 6, windowMs: 1000 } };
    const { sandbox, queue, startWorker } = open({ jobDurationMs: 200, client: { limits, rateLimit: 'wait' } });
    const lags: number[] = [];
    const completedAtMs = new Map<string, number>();
    let jobsAtFirstCompletion = 0;
    startWorker({
      pollIntervalMs: HOUR_MS,
      onCompleted: (job) => {
        jobsAtFirstCompletion ||= sandbox.jobs.length;
        lags.push(performance.now() - (completedAtMs.get(job.id) ?? 0));
      },
    });
    await Promise.all(Array.from({ length: calls }, () => queue.videos.create({ prompt })));
    while (lags.length < calls) {
      for (const [at, job] of sandbox.jobs.entries()) {
        if (job.status !== 'completed' || completedAtMs.has(job.id)) continue;
        completedAtMs.set(job.id, performance.now());
        await queue.wake(eventOf(sandbox, at));
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(jobsAtFirstCompletion).toBeLessThan(calls / 2);
    expect(sandbox.jobs).toHaveLength(calls);
    if (Math.max(...lags) >= 1_500 && isTooSlow('how soon a running job is polled')) return;
    expect(Math.max(...lags)).toBeLessThan(1_500);
  });

  it('process the call that a webhook is about before other calls', async () => {
    const { sandbox, queue, startWorker, untilAsleep } = open({ clock: 'manual', jobDurationMs: 1000 });
    const first = startWorker({ pollIntervalMs: HOUR_MS });
    const jobs = 6;
    for (let at = 0; at < jobs; at++) await queue.videos.create({ prompt }, { jobId: `order-${at}` });
    await untilAsleep(jobs);
    await first.close();
    await sandbox.advance(1000);
    for (const job of await queue.queue.getDelayed()) if (job.id !== 'order-4') await job.promote();
    const at = sandbox.requests.findIndex(({ headers }) => headers['idempotency-key'] === 'order-4');
    await queue.wake(eventOf(sandbox, at));
    const order: (string | undefined)[] = [];
    startWorker({ concurrency: 1, onCompleted: (_, { id }) => void order.push(id) });
    await expect.poll(() => order.length).toBe(jobs);
    expect(order[0]).toBe('order-4');
  });

  it('occupy no worker while waiting for a rate limit', async () => {
    const limits = { 'videos.create': { limit: 1, windowMs: HOUR_MS } };
    const { sandbox, queue, startWorker, untilAsleep } = open({ client: { limits, rateLimit: 'wait' } });
    startWorker({ concurrency: 2 });
    for (let at = 0; at < 8; at++) await queue.videos.create({ prompt }, { jobId: `order-${at}` });
    await untilAsleep(7);
    await queue.images.create({ prompt }, { jobId: 'image' });
    await expect.poll(() => queue.queue.getCompletedCount()).toBe(2);
    expect(sandbox.jobs).toHaveLength(2);
  });

  it('retain their poll interval while hundreds of calls are scheduled for later', async () => {
    const { queue, startWorker } = open({ jobDurationMs: HOUR_MS });
    startWorker({ pollIntervalMs: undefined });
    await queue.queue.addBulk(
      Array.from({ length: 500 }, (_, at) => ({
        name: 'videos',
        data: { call: 'videos' as const, params: { prompt } },
        opts: { delay: 24 * HOUR_MS, jobId: `later-${at}` },
      })),
    );
    await queue.videos.create({ prompt }, { jobId: 'now' });
    await expect.poll(async () => (await queue.queue.getJob('now'))?.data.jobId).toBeTruthy();
    await expect.poll(async () => (await queue.queue.getJob('now'))?.delay).toBeGreaterThan(0);
    expect((await queue.queue.getJob('now'))?.delay).toBeLessThan(16_000);
  });

  it('let a worker close during a create, which another worker repeats with the same key', async () => {
    const { sandbox, queue, startWorker, keys } = open({
      wrap: (fetch) => async (input, init) => {
        const response = await fetch(input, init);
        // The response to the first create never arrives.
        if (isCreate(input, init) && sandbox.jobs.length <= 1) await new Promise(() => {});
        return response;
      },
    });
    const worker = startWorker();
    await queue.videos.create({ prompt }, { jobId: 'order-1' });
    await expect.poll(() => sandbox.jobs.length).toBe(1);
    const start = performance.now();
    await worker.close();
    expect(performance.now() - start).toBeLessThan(15_000);
    sandbox.outcomes.next({ durationMs: 30 });
    await queue.images.create({ prompt }, { jobId: 'another' });
    startWorker();
    await expect.poll(() => keys().filter((key) => key === 'order-1').length).toBe(2);
    expect(sandbox.jobs.filter(({ mediaType }) => mediaType === 'video')).toHaveLength(1);
  });

  it('let a long onCompleted finish before the worker closes', async () => {
    const { queue, startWorker } = open();
    const [started, finished] = [deferred(), deferred()];
    const worker = startWorker({
      onCompleted: () => {
        started.resolve();
        return finished.promise;
      },
    });
    await queue.videos.create({ prompt });
    await started.promise;
    const start = performance.now();
    await worker.close();
    expect(performance.now() - start).toBeLessThan(15_000);
    finished.resolve();
    await expect.poll(() => queue.queue.getCompletedCount()).toBe(1);
  });
});

describeWithRedis("a queue's index", () => {
  const { open } = queuesOnSandboxes();

  it('removes, after an hour, the webhooks for jobs that no call uses', async () => {
    const { sandbox, queue, startWorker, untilEnded, name, connection } = open();
    const jobIndex = openJobIndex(connection, { name });
    startWorker();
    await queue.videos.create({ prompt });
    await untilEnded();
    await queue.wake(eventOf(sandbox));
    for (let at = 0; at < 30; at++) await jobIndex.wake(`foreign-${at}`);
    await jobIndex.add('forgotten', 'removed-by-hand');
    const jobId = sandbox.jobs[0]?.id ?? '';
    await jobIndex.sweep(queue.queue);
    expect(await jobIndex.hasWake(jobId)).toBe(true);
    vi.setSystemTime(Date.now() + 2 * HOUR_MS);
    try {
      startWorker();
      await expect.poll(() => jobIndex.hasWake(jobId)).toBe(false);
      await expect.poll(() => jobIndex.size()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
    expect(await jobIndex.hasWake('foreign-7')).toBe(false);
    await jobIndex.close();
  });

  it("ignores events that aren't about a job", async () => {
    const { queue } = open();
    for (const data of [{}, null, { job: {} }, { job: { id: 7 } }]) {
      await queue.wake({ id: 'evt', type: 'ledger.posted', data } as never);
    }
    expect(await queue.queue.getJobCounts()).toMatchObject({ delayed: 0, waiting: 0 });
  });
});

describeWithRedis('a queue whose Redis is unavailable', () => {
  it('calls onError, and prints nothing', async () => {
    const consoleError = vi.spyOn(console, 'error').mockImplementation(() => {});
    const errors: string[] = [];
    const port = await freePort();
    const connection = { host: '127.0.0.1', port, retryStrategy: () => 50 };
    const queue = createGenQueue(connection, { onError: (error) => void errors.push(error.message) });
    await expect.poll(() => errors.length).toBeGreaterThan(0);
    expect(consoleError).not.toHaveBeenCalled();
    consoleError.mockRestore();
    queue.queue.disconnect().catch(() => {});
  });
});

async function enqueue({ queue }: QueueOnSandbox, name: string, calls: number, options = {}) {
  for (let index = 0; index < calls; index++)
    await queue.videos.create({ prompt: name }, { jobId: `${name}-${index}`, ...options });
}

/** Returns the prompts of the creates, in order. */
const createdPrompts = ({ sandbox }: QueueOnSandbox) =>
  sandbox.requests.filter(({ method }) => method === 'POST').map(({ body }) => String(JSON.parse(body ?? '{}').prompt));

describeWithRedis("a queue's creates", () => {
  const { open } = queuesOnSandboxes();

  it.each([1, 4])('precede a backlog if they have a higher priority (%i workers)', async (workers) => {
    const limits = { 'videos.create': { limit: WINDOW, windowMs: 1_000 } };
    const setup = open({ jobDurationMs: HOUR_MS, client: { limits, rateLimit: 'wait' } });
    await enqueue(setup, 'backlog', 80);
    for (let at = 0; at < workers; at++) setup.startWorker({ pollIntervalMs: HOUR_MS });
    await expect.poll(() => createdPrompts(setup).length).toBeGreaterThanOrEqual(2 * WINDOW);
    await enqueue(setup, 'urgent', 10, { priority: 1 });
    const createsBefore = createdPrompts(setup).length;
    const urgent = () => createdPrompts(setup).filter((prompt) => prompt === 'urgent');
    await expect.poll(() => urgent().length, { interval: 20 }).toBe(10);
    expect(createdPrompts(setup).lastIndexOf('urgent') - createsBefore).toBeLessThan(2 * WINDOW);
  });
});
