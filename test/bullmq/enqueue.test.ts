// What a queue does with a call before a worker has it.
import { Queue } from 'bullmq';
import { GenClient } from 'gen-client';
import { createGenQueue, createGenWorker } from 'gen-client/bullmq';
import { describe, expect, it } from 'vitest';
import { queueNames } from '../../src/adapters/bullmq/connection.js';
import { openNotes } from '../../src/adapters/bullmq/notes.js';
import { eventOf, noRedis, queuesOnSandboxes } from './queue-on-sandbox.js';

const prompt = 'a fox at dawn';

describe.skipIf(noRedis !== undefined)('a queue', () => {
  const { open } = queuesOnSandboxes();

  it.each([{ removeOnComplete: { count: 0 } }, { autorun: false }])(
    'has its videos made by a worker with the options %j',
    async (options) => {
      const { queue, sandbox, work } = open();
      const { worker } = work({ worker: options });
      if ('autorun' in options) void worker.run();
      await queue.videos.create({ prompt });
      await expect.poll(() => sandbox.jobs.length, { timeout: 10_000 }).toBe(1);
    },
  );

  it('closes its connections', async () => {
    const { queue } = open();
    await queue.close();
    await expect(queue.queue.getJobCounts()).rejects.toThrow('Connection is closed');
  });

  it('keeps in its records only what was asked for', async () => {
    const { queue, record } = open();
    await queue.videos.create({ prompt }, { jobId: 'plain' });
    expect(Object.keys((await record('plain')).data).sort()).toEqual(['call', 'params', 'version']);
    await queue.videos.create(
      { prompt },
      { jobId: 'rich', cleanup: 'after-job', budgetScope: 'tenant-1', preflight: false },
    );
    const { cleanup, budgetScope, preflight } = (await record('rich')).data;
    expect({ cleanup, budgetScope, preflight }).toEqual({
      cleanup: 'after-job',
      budgetScope: 'tenant-1',
      preflight: false,
    });
  });

  it('wakes nobody for a job that it does not know, and remembers the webhook under a name of its own', async () => {
    const { sandbox, queue, work, ended, name, connection } = open();
    work();
    await queue.images.create({ prompt });
    await ended();
    const notes = openNotes(connection, { name });
    await queue.wake(eventOf(sandbox));
    const jobId = sandbox.jobs[0]?.id ?? '';
    const records = new Queue(queueNames(connection, { name }).notes, { connection });
    await notes.own('another', 'order-1');
    expect((await records.getJobs(['delayed', 'waiting'])).map((each) => each.name).sort()).toEqual(['owner', 'wake']);
    expect([await notes.takeWake(jobId), await notes.takeWake(jobId)]).toEqual([true, false]);
    await records.close();
    await notes.close();
  });

  it('leaves repeats to the engine: a request that was answered 503 is not sent again before retryDelayMs', async () => {
    const { sandbox, queue, work } = open({ client: { maxRetries: 3 } });
    sandbox.faults.add({ match: { method: 'POST' }, status: 503 });
    work({ retryDelayMs: 3_600_000 });
    await queue.images.create({ prompt });
    await expect.poll(() => queue.queue.getDelayedCount()).toBe(1);
    expect(sandbox.requests).toHaveLength(1);
  });
});

describe('a queue and a worker', () => {
  const connection = { host: '127.0.0.1', port: 1 };
  const client = new GenClient({ apiKey: 'sk_test' });

  it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '3'])('refuse the concurrency %s', (concurrency) => {
    expect(() => createGenWorker(connection, client, { concurrency } as never)).toThrow(
      /^concurrency must be a whole number above 0, not /,
    );
  });

  it.each([
    [() => createGenQueue(null as never), /^createGenQueue takes the connection as BullMQ does, not nothing/],
    [() => createGenQueue('redis://x' as never), /^createGenQueue takes the connection as BullMQ does, not a string/],
    [() => createGenWorker(null as never, client), /^createGenWorker takes the connection as BullMQ does, not nothing/],
    [() => createGenWorker(connection, client, { unknown: 1 } as never), /^createGenWorker .*"unknown"/],
    [() => createGenWorker(connection, {} as never), /^createGenWorker/],
  ])('say which of them was given what it cannot take: %o', (make, message) => {
    expect(make).toThrow(message);
  });
});

describe.skipIf(noRedis !== undefined)('the id of a call', () => {
  const { open } = queuesOnSandboxes();

  it.each(['', 'a:b', '17', '-17', 17, null, 'delayed', 'meta'])(
    'must be a name that the engine takes: %j',
    async (jobId) => {
      const { queue } = open();
      const create = queue.images.create({ prompt }, { jobId: jobId as never });
      await expect(create).rejects.toThrow(/^jobId must be a string without a colon/);
      const given = { prompt, idempotency_key: jobId as never };
      await expect(queue.images.create(given)).rejects.toThrow(/^jobId must be a string without a colon/);
      expect(await queue.queue.getPrioritizedCount()).toBe(0);
    },
  );
});
