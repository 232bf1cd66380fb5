// Operations on a queue: deduplication, several accounts, raised budgets, queue names, foreign records, and resume().
import { createBudget, GenClient } from 'gen-client';
import { createGenQueue } from 'gen-client/bullmq';
import { createSandbox } from 'gen-client/sandbox';
import { expect, it, vi } from 'vitest';
import type { GenJobData } from '../../src/adapters/bullmq/call-record.js';
import { describeWithRedis, queuesOnSandboxes } from './queue-on-sandbox.js';

const HOUR_MS = 3_600_000;
const prompt = 'a fox at dawn';
const PARAMS = { prompt, duration: 4 } as const;
const video = { call: 'videos', params: { prompt } } satisfies GenJobData;

describeWithRedis('deduplication', () => {
  const { open } = queuesOnSandboxes();

  it.each([{ ttl: 60_000, extend: true, replace: true }, { replace: true }])(
    'with `replace` is rejected, because it could remove a paid call (%o)',
    async (deduplication) => {
      const { queue } = open();
      const requested = queue.images.create({ prompt }, { deduplication: { id: 'doc', ...deduplication } } as never);
      await expect(requested).rejects.toThrow('deduplication.replace is not supported');
      await expect(requested).rejects.toMatchObject({ name: 'GenError', recovery: 'fix_setup' });
      expect(await queue.queue.getPrioritizedCount()).toBe(0);
    },
  );

  it('queues one of two calls with the same deduplication ID', async () => {
    const { queue } = open();
    const options = { deduplication: { id: 'doc', ttl: 60_000, extend: true } };
    await queue.images.create({ prompt: 'one' }, { jobId: 'one', ...options });
    await queue.images.create({ prompt: 'two' }, { jobId: 'two', ...options });
    expect(await queue.queue.getPrioritizedCount()).toBe(1);
  });
});

describeWithRedis('a call', () => {
  const { open } = queuesOnSandboxes();

  it("is processed by a worker of its account, and skipped by other accounts' workers", async () => {
    const staging = open({ jobDurationMs: 100 });
    const { queue, sandbox, startWorker, untilEnded } = staging;
    // The service accepts the create, but its response is lost.
    sandbox.faults.add({ match: { method: 'POST', path: '/v1/images' }, commitThenDrop: true, times: 1 });
    const worker = startWorker({ retryDelayMs: 20 });
    await queue.images.create({ prompt }, { jobId: 'order-1' });
    await expect.poll(() => sandbox.jobs.length).toBe(1);
    await worker.close();

    const production = createSandbox({ limits: 'off' });
    const errors: string[] = [];
    const otherWorker = startWorker({ onError: ({ message }) => void errors.push(message) }, production.client());
    await expect.poll(() => errors.length).toBe(1);
    expect(errors[0]).toContain('"order-1" belongs to another account');
    expect(errors[0]).toContain('pass a name or a prefix');
    await staging.untilAsleep();
    expect(production.requests).toEqual([]);
    await otherWorker.close();

    await (await staging.record('order-1')).promote();
    startWorker();
    await untilEnded();
    expect(await queue.queue.getCompletedCount()).toBe(1);
    expect(sandbox.jobs).toHaveLength(1);
  });

  it('is assigned to the account of the worker that processes it first', async () => {
    const { queue, startWorker, sandbox, untilEnded, record } = open();
    await queue.images.create({ prompt }, { jobId: 'order-1' });
    startWorker();
    await untilEnded();
    expect((await record('order-1')).data.account).toMatch(/^[0-9a-f]{32}$/);
    expect(JSON.stringify((await record('order-1')).data)).not.toContain(sandbox.apiKey);
  });
});

describeWithRedis('a call over budget', () => {
  const { open, store } = queuesOnSandboxes();

  it('retries after at most five minutes, so a raised budget takes effect', async () => {
    const sharedStore = store();
    const smallBudget = createBudget({ maxTokens: 10, per: 'month', scope: 'team', store: sharedStore });
    const { sandbox, queue, startWorker, untilEnded, untilAsleep, record, failures } = open({
      prices: 10,
      client: { store: sharedStore, budget: smallBudget },
    });
    const worker = startWorker();
    await queue.videos.create(PARAMS, { jobId: 'one' });
    await untilEnded();
    await queue.videos.create(PARAMS, { jobId: 'two' });
    await untilAsleep();
    expect((await record('two')).delay).toBeLessThanOrEqual(5 * 60_000);
    await worker.close();

    // A deploy raises the budget.
    const raisedBudget = createBudget({ maxTokens: 2_000, per: 'month', scope: 'team', store: sharedStore });
    startWorker({}, sandbox.client({ store: sharedStore, budget: raisedBudget, rateLimit: 'off' }));
    await (await record('two')).promote();
    await untilEnded(2);
    expect(failures).toEqual([]);
    expect(sandbox.jobs).toHaveLength(2);
  });
});

describeWithRedis('queue names and manually added records', () => {
  const { open } = queuesOnSandboxes();

  it('a worker never removes the calls of a queue with a similar name', async () => {
    const { sandbox, connection } = open();
    for (const name of ['film', 'film-notes', 'film-jobs', 'film-index']) {
      const queue = createGenQueue(connection, { name });
      await queue.images.create({ prompt }, { jobId: `order-${name}` });
      await queue.close();
    }
    const { startWorker } = open({ sandbox });
    const completedIds = new Set<string>();
    const now = Date.now.bind(Date);
    const nowSpy = vi.spyOn(Date, 'now').mockImplementation(() => now() + 2 * HOUR_MS);
    try {
      // The worker sweeps the expired entries of its index.
      startWorker({ name: 'film', onCompleted: (_, { id = '' }) => void completedIds.add(id) });
      await expect.poll(() => completedIds.size).toBe(1);
    } finally {
      nowSpy.mockRestore();
    }
    for (const name of ['film-notes', 'film-jobs', 'film-index'])
      startWorker({ name, onCompleted: (_, { id = '' }) => void completedIds.add(id) });
    await expect.poll(() => completedIds.size).toBe(4);
  });

  it('a record without an ID fails before its create, because BullMQ reuses its number', async () => {
    const { queue, startWorker, untilEnded, failures, keys } = open();
    startWorker();
    await queue.queue.add('videos', video);
    await untilEnded();
    expect(failures).toMatchObject([
      {
        name: 'GenError',
        message: expect.stringMatching(/^"1" is a number that BullMQ assigned to the record.*Pass a jobId/),
      },
    ]);
    expect(keys()).toEqual([]);
  });

  it("another program's record fails immediately", async () => {
    const { sandbox, queue, startWorker, untilEnded, record } = open();
    const errors: string[] = [];
    startWorker({ onError: ({ message }) => void errors.push(message) });
    await queue.queue.add('mail', { to: 'a@example.com' } as never, { jobId: 'mail-1' });
    await untilEnded();
    expect(errors).toEqual(['"mail-1" is not a record of createGenQueue. Add it to another queue.']);
    expect((await record('mail-1')).failedReason).toContain('not a record of createGenQueue');
    expect((await record('mail-1')).data).toEqual({ to: 'a@example.com' });
    expect(sandbox.requests).toEqual([]);
  });
});

describeWithRedis('client.resume() with a queue', () => {
  const { open, store } = queuesOnSandboxes();

  it('ignores sleeping and finished calls', async () => {
    const client = { store: store() };
    const { sandbox, queue, startWorker, untilEnded, untilAsleep } = open({
      clock: 'manual',
      jobDurationMs: 1000,
      client,
    });
    const resumedKeys = async () => {
      const { apiKey, baseUrl, fetch } = sandbox;
      const otherClient = new GenClient({ apiKey, baseUrl, fetch, store: store(), rateLimit: 'off' });
      const keys: string[] = [];
      for await (const { idempotencyKey } of otherClient.resume({ timeoutMs: 3_000 })) keys.push(idempotencyKey);
      return keys;
    };
    const completed: string[] = [];
    startWorker({ onCompleted: (_, { id = '' }) => void completed.push(id) });
    for (let index = 0; index < 3; index++) await queue.videos.create({ prompt }, { jobId: `order-${index}` });
    await untilAsleep(3);
    expect(await resumedKeys()).toEqual([]);
    await sandbox.advance(1000);
    await untilEnded(3);
    expect(completed).toHaveLength(3);
    for (const job of await queue.queue.getCompleted()) await job.remove();
    expect(await resumedKeys()).toEqual([]);
  });
});
