// Records of newer versions, calls that have ended, used IDs, queues that share an account, and invalid queues.
import { GenError } from 'gen-client';
import { createGenQueue, createGenWorker } from 'gen-client/bullmq';
import { describe, expect, it } from 'vitest';
import type { GenJobData } from '../../src/adapters/bullmq/call-record.js';
import { describeWithRedis, PNG, queuesOnSandboxes } from './queue-on-sandbox.js';

const prompt = 'a fox at dawn';
const webhook_url = 'https://example.com/new-hook';

describeWithRedis('a record of a newer version', () => {
  const { open } = queuesOnSandboxes();
  const call = 'videos' as const;

  it.each<[string, object]>([
    ['with a newer run', { call, run: { version: 2, step: { type: 'dance' } } }],
    ['of a newer format', { version: 2, call }],
    ['of an unknown call', { call: 'songs' }],
    ['at an unknown step', { call, run: { version: 1, step: { type: 'review' } } }],
    [
      'that waits for an unknown step',
      {
        call,
        run: { version: 1, step: { type: 'wait', jobId: null, ms: 1, onTimeout: null, next: { type: 'review' } } },
      },
    ],
  ])('%s is reported and skipped without a request', async (_, fields) => {
    const { sandbox, queue, startWorker, untilAsleep, failures } = open();
    const errors: string[] = [];
    const data = { params: { prompt }, ...fields } as unknown as GenJobData;
    await queue.queue.add('videos', data, { jobId: 'order-1' });
    startWorker({ onError: ({ message }) => void errors.push(message) });
    for (let at = 0; at < 3; at++) {
      await untilAsleep();
      await (await queue.queue.getJob('order-1'))?.promote();
    }
    await untilAsleep();
    expect(errors).toContainEqual(expect.stringContaining('"order-1" was written by a newer version of gen-client'));
    expect((await queue.queue.getJob('order-1'))?.data).toEqual(data);
    expect(sandbox.requests).toHaveLength(0);
    expect(failures).toEqual([]);
  });
});

describeWithRedis('a call that has ended', () => {
  const { open } = queuesOnSandboxes();

  it('is rejected with call_ended when it is queued again', async () => {
    const { queue, startWorker, untilEnded, keys } = open();
    startWorker();
    await queue.videos.create({ prompt }, { jobId: 'order-1' });
    await untilEnded();
    const repeatedCreate = queue.videos.create({ prompt }, { jobId: 'order-1' });
    await expect(repeatedCreate).rejects.toThrow(
      'queue.videos.create: "order-1" has completed, so it was not queued again. Its job is the result of its record, queue.queue.getJob("order-1"). Pass another jobId to create another one.',
    );
    await expect(repeatedCreate).rejects.toBeInstanceOf(GenError);
    // A source with at-least-once delivery can ignore this code.
    await expect(repeatedCreate).rejects.toMatchObject({ code: 'call_ended', recovery: 'none' });
    expect(keys()).toEqual(['order-1']);
  });

  it('is rejected with its failure, and the message suggests retry() or another ID', async () => {
    const { sandbox, queue, startWorker, untilEnded, record, keys } = open();
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_rejected' });
    startWorker();
    await queue.videos.create({ prompt }, { jobId: 'order-1' });
    await untilEnded();
    const repeatedCreate = queue.videos.create({ prompt }, { jobId: 'order-1' });
    await expect(repeatedCreate).rejects.toThrow(
      /"order-1" has failed \(JobFailedError: .*generation_rejected.*\).*retry\(\) on its record.*another jobId/,
    );
    await expect(repeatedCreate).rejects.toMatchObject({ code: 'call_ended' });
    await (await record('order-1')).retry();
    await expect.poll(() => queue.queue.getCompletedCount()).toBe(1);
    expect(keys()).toEqual(['order-1', 'order-1:r2']);
  });
});

describeWithRedis('a used ID', () => {
  const { open } = queuesOnSandboxes();
  const reusedError = (message: string) =>
    expect.objectContaining({
      name: 'PreflightError',
      code: 'idempotency_key_reused',
      message: expect.stringContaining(message),
    });

  it('is rejected for another call or other params before, during, and after the first call', async () => {
    const { sandbox, queue, startWorker, untilEnded, record, untilAsleep } = open({
      clock: 'manual',
      jobDurationMs: 1000,
    });
    const params = { prompt, duration: 4 } as const;
    await queue.videos.create(params, { jobId: 'order-1' });
    const expectRejections = async (jobHint: string) => {
      await expect(queue.images.create({ prompt }, { jobId: 'order-1' })).rejects.toEqual(
        reusedError(
          `"order-1" already identifies a videos.create call, so this call was not queued. Pass another jobId, for example "images-order-1".${jobHint}`,
        ),
      );
      await expect(queue.videos.create({ prompt: 'a fox at noon' }, { jobId: 'order-1' })).rejects.toEqual(
        reusedError(`queue.videos.create: "order-1" was queued with other params, so this call was not queued`),
      );
    };
    await expectRejections('');
    const repeated = await queue.videos.create({ duration: 4, prompt }, { jobId: 'order-1' });
    expect(repeated.data.params).toEqual(params);
    startWorker();
    await expect.poll(async () => (await record('order-1')).data.jobId).toBeDefined();
    await expectRejections(` Its job is ${sandbox.jobs[0]?.id}.`);
    await untilAsleep();
    await sandbox.advance(1000);
    await untilEnded();
    await expectRejections(` Its job is ${sandbox.jobs[0]?.id}.`);
    expect(sandbox.jobs).toHaveLength(1);
  });

  it('is accepted for one of several concurrent calls', async () => {
    const { queue, startWorker, untilEnded, sandbox } = open();
    const results = await Promise.allSettled(
      [1, 2, 3].map((at) => queue.videos.create({ prompt: `film ${at}` }, { jobId: 'order-1' })),
    );
    const queued = results.filter((result) => result.status === 'fulfilled');
    expect(results.filter((result) => result.status === 'rejected').map(({ reason }) => reason)).toEqual([
      reusedError('was queued with other params'),
      reusedError('was queued with other params'),
    ]);
    startWorker();
    await untilEnded();
    expect(queued.map(({ value }) => value.data.params.prompt)).toEqual(sandbox.jobs.map(({ prompt }) => prompt));
  });

  it('is accepted for the same call after a deploy that changed the webhook URL', async () => {
    const { queue } = open();
    for (const version of ['v1', 'v2'])
      await queue.videos.create({ prompt, webhook_url: `https://${version}.example.com/` }, { jobId: 'order-1' });
    expect(await queue.queue.getPrioritizedCount()).toBe(1);
  });

  it('is accepted for the same call with the same file', async () => {
    const { queue } = open();
    for (let call = 0; call < 2; call++) {
      const copy = new Blob([PNG], { type: PNG.type });
      await queue.videos.create({ prompt, first_frame_upload_id: copy }, { jobId: 'order-1' });
    }
    expect(await queue.queue.getPrioritizedCount()).toBe(1);
  });
});

describeWithRedis('two queues of one account', () => {
  const { open, store } = queuesOnSandboxes();

  it.each(['in one process', 'with a store'])(
    "reject each other's IDs, and find the job of a repeated call despite changed params (%s)",
    async (place) => {
      const client = () => (place === 'with a store' ? { store: store() } : {});
      const films = open({ clock: 'manual', jobDurationMs: 1000, client: client() });
      const posters = open({ sandbox: films.sandbox, client: client() });
      films.startWorker();
      posters.startWorker();
      await films.queue.videos.create({ prompt }, { jobId: 'order-1' });
      await films.untilAsleep();
      await posters.queue.images.create({ prompt }, { jobId: 'order-1' });
      await posters.untilEnded();
      await films.sandbox.advance(1000);
      await films.untilEnded();
      // Both queues use the ID 1b. One must not receive the other's video.
      await posters.queue.videos.create({ prompt: 'a fox at noon' }, { jobId: 'order-1b' });
      await posters.untilAsleep();
      await films.queue.videos.create({ prompt: 'a fox at night' }, { jobId: 'order-1b' });
      await films.untilEnded(2);
      // The order is redelivered after its record was removed and a deploy changed its params.
      const { jobId } = (await films.record('order-1')).data;
      await (await films.record('order-1')).remove();
      await films.queue.videos.create({ prompt: 'a fox at dusk', webhook_url }, { jobId: 'order-1' });
      await films.sandbox.advance(1000);
      await films.untilEnded(2);
      const reused = { name: 'PreflightError', code: 'idempotency_key_reused' };
      expect([films.failures, posters.failures]).toMatchObject([[reused], [reused]]);
      expect((await films.record('order-1')).data).toMatchObject({ jobId });
      expect((await films.record('order-1b')).data.failure).toMatchObject(reused);
      expect((await posters.record('order-1')).data.failure).toMatchObject(reused);
      expect(films.sandbox.jobs.map(({ prompt }) => prompt)).toEqual([prompt, 'a fox at noon']);
    },
  );
});

describe('an invalid queue or worker', () => {
  const CLIENT = { withOptions: () => {} };
  const connectionError = (value: string) =>
    `connection must be what BullMQ accepts, not ${value}. Pass { url: 'redis://…' }, or a Redis client.`;
  const CLUSTER_ERROR =
    ": prefix needs a hash tag, because a Redis Cluster must keep all keys of a queue on one node. Pass { prefix: '{gen}' } to the queue and to every worker.";
  it.each<[string, unknown, object, string]>([
    ['a URL string', 'redis://:secret@host:6379', {}, `: ${connectionError('a string')}`],
    ['a URL', new URL('redis://:secret@host:6379'), {}, `: ${connectionError('a URL')}`],
    ['undefined', undefined, {}, `: ${connectionError('nothing')}`],
    ['a Redis Cluster', { isCluster: true }, {}, CLUSTER_ERROR],
    ['a Redis Cluster with an empty hash tag', { isCluster: true }, { prefix: '{}gen{' }, CLUSTER_ERROR],
    ["the name of another queue's index", { port: 1 }, { name: 'film.gen-client-jobs' }, ': name must not end with'],
  ])('with %s is rejected before a connection is opened', (_, connection, location, message) => {
    const resourcesBefore = process.getActiveResourcesInfo().length;
    for (const create of [
      () => createGenQueue(connection as never, location),
      () => createGenWorker(connection as never, CLIENT as never, location),
    ]) {
      expect(create).toThrow(message);
      expect(create).not.toThrow('secret');
      expect(create).toThrow(expect.objectContaining({ recovery: 'fix_setup' }));
    }
    expect(process.getActiveResourcesInfo()).toHaveLength(resourcesBefore);
  });

  it.each<[string, unknown, object, string]>([
    ['without a client', undefined, {}, 'createGenWorker: client must be a GenClient'],
    // A crash must not fail a paid call.
    ['with maxStalledCount', CLIENT, { maxStalledCount: 0 }, 'worker.maxStalledCount is not supported'],
  ])('%s is rejected before a connection is opened', (_, client, worker, message) => {
    const resourcesBefore = process.getActiveResourcesInfo().length;
    const create = () => createGenWorker({ host: '127.0.0.1', port: 1 }, client as never, { worker });
    expect(create).toThrow(message);
    expect(create).toThrow(expect.objectContaining({ recovery: 'fix_setup' }));
    expect(process.getActiveResourcesInfo()).toHaveLength(resourcesBefore);
  });
});
