// What is in the queue already: records of a newer version, and orders that have ended.

import { GenError } from 'gen-client';
import { createGenQueue, type GenJobData } from 'gen-client/bullmq';
import { describe, expect, it } from 'vitest';
import { noRedis, queuesOnSandboxes } from './queue-on-sandbox.js';

const prompt = 'a fox at dawn';

describe.skipIf(noRedis !== undefined)('a record of a newer version', () => {
  const { open } = queuesOnSandboxes();
  const call = 'videos' as const;

  it.each<[string, object]>([
    ['with a newer run', { call, run: { version: 2, step: { type: 'dance' } } }],
    ['of a newer form', { version: 2, call }],
    ['of a call that this version does not know', { call: 'songs' }],
  ])('%s is left for another worker, costs no call of the service, and is reported once', async (_, newer) => {
    const { sandbox, queue, work } = open();
    const errors: string[] = [];
    const failures: unknown[] = [];
    const data = { params: { prompt }, ...newer } as unknown as GenJobData;
    await queue.queue.add('videos', data, { jobId: 'order-1' });
    work({ onError: ({ message }) => void errors.push(message), onFailed: (error) => void failures.push(error) });
    for (let at = 0; at < 3; at++) {
      await expect.poll(() => queue.queue.getDelayedCount(), { timeout: 10_000 }).toBe(1);
      await (await queue.queue.getJob('order-1'))?.promote();
    }
    await expect.poll(() => queue.queue.getDelayedCount(), { timeout: 10_000 }).toBe(1);
    expect(errors).toEqual([expect.stringContaining('"order-1" was written by a newer version of gen-client')]);
    expect((await queue.queue.getJob('order-1'))?.data).toEqual(data);
    expect(sandbox.requests).toHaveLength(0);
    expect(failures).toEqual([]);
  });
});

describe.skipIf(noRedis !== undefined)('an order that has ended', () => {
  const { open } = queuesOnSandboxes();

  it('says so when it is queued again, and completes anew under a new key with again: true', async () => {
    const { sandbox, queue, work, ended, record, keys } = open();
    work();
    await queue.videos.create({ prompt }, { jobId: 'order-1' });
    await ended();
    const asked = queue.videos.create({ prompt }, { jobId: 'order-1' });
    await expect(asked).rejects.toThrow('queue.videos.create: "order-1" has completed, so it was not queued again.');
    await expect(asked).rejects.toBeInstanceOf(GenError);
    const other = { prompt: 'a fox at noon', duration: 4 } as const;
    await queue.videos.create(other, { jobId: 'order-1', again: true });
    await expect.poll(() => sandbox.jobs.length).toBe(2);
    await ended();
    expect(keys()).toEqual(['order-1', 'order-1:r2']);
    expect((await record('order-1')).returnvalue.tries).toHaveLength(2);
    expect(JSON.parse(sandbox.requests.filter(({ method }) => method === 'POST').at(-1)?.body ?? '')).toMatchObject(
      other,
    );
  });

  it('says why it failed, and goes on as after retry() with again: true', async () => {
    const { sandbox, queue, work, ended, keys } = open();
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_rejected' });
    work();
    await queue.videos.create({ prompt }, { jobId: 'order-1' });
    await ended();
    await expect(queue.videos.create({ prompt }, { jobId: 'order-1' })).rejects.toThrow(
      /"order-1" has failed \(JobFailedError: .*generation_rejected.*\).*again: true/,
    );
    await queue.videos.create({ prompt }, { jobId: 'order-1', again: true });
    await expect.poll(() => queue.queue.getCompletedCount(), { timeout: 10_000 }).toBe(1);
    expect(keys()).toEqual(['order-1', 'order-1:r2']);
  });

  it('is queued once while it has not ended, with again: true too', async () => {
    const { sandbox, queue, work, ended } = open();
    for (const again of [false, true, true]) await queue.videos.create({ prompt }, { jobId: 'order-1', again });
    work();
    await ended();
    expect(sandbox.jobs).toHaveLength(1);
  });

  it('cannot be repeated by the engine, with the way that there is', async () => {
    const { queue } = open();
    const repeated = queue.videos.create({ prompt }, { repeat: { every: 1000 } } as never);
    await expect(repeated).rejects.toThrow('queue.queue.upsertJobScheduler');
  });
});

describe('a queue that cannot work', () => {
  const asBullMq = (given: string) =>
    `takes the connection as BullMQ does, not ${given}: pass { url: 'redis://…' }, or a client of Redis.`;
  const ONE_NODE =
    ": on a Redis Cluster, all keys of a queue have to be on one node. Pass a prefix with a hash tag to the queue and to every worker: { prefix: '{gen}' }.";
  it.each<[string, unknown, object, string]>([
    ['a URL as text', 'redis://:secret@host:6379', {}, ` ${asBullMq('a string')}`],
    ['a URL', new URL('redis://:secret@host:6379'), {}, ` ${asBullMq('a URL')}`],
    ['nothing', undefined, {}, ` ${asBullMq('nothing')}`],
    ['null', null, {}, ` ${asBullMq('nothing')}`],
    ['a function', () => {}, {}, ` ${asBullMq('a function')}`],
    ['a Redis Cluster', { isCluster: true }, {}, ONE_NODE],
    ['a Redis Cluster with a prefix without a hash tag', { isCluster: true }, { prefix: 'gen' }, ONE_NODE],
    ['a Redis Cluster with an empty hash tag', { isCluster: true }, { prefix: '{}gen{' }, ONE_NODE],
  ])('is refused for %s, before anything is opened', async (_, connection, location, message) => {
    const { createGenWorker } = await import('gen-client/bullmq');
    const before = process.getActiveResourcesInfo().length;
    for (const make of [
      () => createGenQueue(connection as never, location),
      () => createGenWorker(connection as never, { withOptions: () => {} } as never, location),
    ]) {
      expect(make).toThrow(message);
      expect(make).not.toThrow('secret');
      expect(make).toThrow(expect.objectContaining({ recovery: 'fix_setup' }));
    }
    expect(process.getActiveResourcesInfo()).toHaveLength(before);
  });

  it('is refused without a client, before anything is opened', async () => {
    const { createGenWorker } = await import('gen-client/bullmq');
    const before = process.getActiveResourcesInfo().length;
    const make = () => createGenWorker({ host: '127.0.0.1', port: 1 }, undefined as never);
    expect(make).toThrow('createGenWorker: client must be a GenClient');
    expect(make).toThrow(expect.objectContaining({ recovery: 'fix_setup' }));
    expect(process.getActiveResourcesInfo()).toHaveLength(before);
  });
});
