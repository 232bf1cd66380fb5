// Redis outages, calls that BullMQ fails, and calls that an operator removes.
import { FlowProducer, type Queue } from 'bullmq';
import { ConnectionError } from 'gen-client';
import { createGenQueue, type GenQueueJob } from 'gen-client/bullmq';
import { expect, it } from 'vitest';
import { openJobIndex } from '../../src/adapters/bullmq/connection.js';
import { startRedis } from '../redis/real-redis.js';
import { describeWithRedis, queuesOnSandboxes } from './queue-on-sandbox.js';

const prompt = 'a fox at dawn';

describeWithRedis('while Redis is unavailable, a queue', () => {
  it.each(['from the start', 'after it was available'])(
    'rejects creates and closes in bounded time (%s)',
    async (when) => {
      const redis = await startRedis();
      const queue = createGenQueue({ host: '127.0.0.1', port: redis.port });
      try {
        if (when !== 'from the start') await queue.images.create({ prompt });
        await redis.stop();
        const create = queue.videos.create({ prompt }, { jobId: 'order-1', timeoutMs: 300 });
        await expect(create).rejects.toThrow(
          'queue.videos.create: Redis did not respond within 300 ms (timeoutMs), so "order-1" may or may not be queued. Queue it again with the same ID.',
        );
        await expect(create).rejects.toMatchObject({
          name: 'ConnectionError',
          idempotencyKey: 'order-1',
          recovery: 'retry',
        });
        await expect(create).rejects.toBeInstanceOf(ConnectionError);
        const reason = new Error('the user left');
        const abortedCreate = queue.videos.create({ prompt }, { signal: AbortSignal.timeout(50), jobId: 'order-2' });
        await expect(abortedCreate).rejects.toMatchObject({ name: 'TimeoutError' });
        await expect(queue.videos.create({ prompt }, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
        await redis.restart();
        await queue.videos.create({ prompt }, { jobId: 'order-1' });
        expect(await queue.queue.getPrioritizedCount()).toBe(1);
        await redis.stop();
        const startMs = performance.now();
        await queue.close();
        expect(performance.now() - startMs).toBeLessThan(6_000);
      } finally {
        await redis.close();
      }
    },
  );
});

describeWithRedis('a call that BullMQ fails', () => {
  const { open } = queuesOnSandboxes();

  it('calls onFailed until it succeeds, and stores the failure', async () => {
    const { queue, startWorker, untilEnded, record, name, connection } = open();
    const failures: [string, string | undefined][] = [];
    startWorker({
      onFailed: ({ message }, { id }) => {
        failures.push([message, id]);
        if (failures.length === 1) throw new Error('no database');
      },
    });
    const flows = new FlowProducer({ connection });
    const failing = { version: 1, call: 'videos', params: { prompt: 'x [fail:generation_rejected]' } };
    const opts = { failParentOnFailure: true, attempts: 1 };
    await flows.add({
      name: 'videos',
      queueName: name,
      data: { version: 1, call: 'videos', params: { prompt } },
      opts: { jobId: 'parent' },
      children: [{ name: 'videos', queueName: name, data: failing, opts: { ...opts, jobId: 'child' } }],
    });
    await untilEnded(2);
    const reported = () => failures.filter(([, id]) => id === 'parent').map(([message]) => message);
    await expect.poll(() => reported().length).toBe(failures[0]?.[1] === 'parent' ? 2 : 1);
    expect(reported()[0]).toMatch(/^BullMQ has failed "parent": .*child.* failed/);
    await expect.poll(async () => (await record('parent')).data.failure).toMatchObject({ name: 'GenError' });
    await flows.close();
    expect(await queue.queue.getFailedCount()).toBe(2);
  });
});

describeWithRedis('a queue', () => {
  const { open } = queuesOnSandboxes();

  it('polls a new job at the usual interval after an operator removed hundreds of running calls', async () => {
    const { queue, startWorker, untilEnded, name, connection, sandbox, untilAsleep } = open({
      clock: 'manual',
      jobDurationMs: 1000,
    });
    const jobIndex = openJobIndex(connection, { name });
    await Promise.all(Array.from({ length: 600 }, (_, index) => jobIndex.add(`job_${index}`, `removed-${index}`)));
    startWorker({ pollIntervalMs: undefined });
    await queue.images.create({ prompt }, { jobId: 'order-1' });
    await untilAsleep();
    await sandbox.advance(1000);
    const [call] = (await (queue.queue as Queue).getDelayed()) as GenQueueJob[];
    expect(call?.delay).toBeLessThan(5_000);
    await untilEnded();
    // A sweep removes a hundred entries.
    await expect.poll(() => jobIndex.size()).toBeLessThanOrEqual(500);
    await jobIndex.close();
  });
});
