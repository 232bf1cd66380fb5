// Existing records: of a newer version, of an ended order, or with a used ID.
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
  ])('%s is reported and left for another worker, without a request', async (_, newer) => {
    const { sandbox, queue, work, asleep, failures } = open();
    const errors: string[] = [];
    const data = { params: { prompt }, ...newer } as unknown as GenJobData;
    await queue.queue.add('videos', data, { jobId: 'order-1' });
    work({ onError: ({ message }) => void errors.push(message) });
    for (let at = 0; at < 3; at++) {
      await asleep();
      await (await queue.queue.getJob('order-1'))?.promote();
    }
    await asleep();
    expect(errors).toContainEqual(expect.stringContaining('"order-1" was written by a newer version of gen-client'));
    expect((await queue.queue.getJob('order-1'))?.data).toEqual(data);
    expect(sandbox.requests).toHaveLength(0);
    expect(failures).toEqual([]);
  });
});

describeWithRedis('an order that has ended', () => {
  const { open } = queuesOnSandboxes();

  it('throws call_ended when it is queued again', async () => {
    const { queue, work, ended, keys } = open();
    work();
    await queue.videos.create({ prompt }, { jobId: 'order-1' });
    await ended();
    const requested = queue.videos.create({ prompt }, { jobId: 'order-1' });
    await expect(requested).rejects.toThrow(
      'queue.videos.create: "order-1" has completed, so it was not queued again. Its job is the result of its record, queue.queue.getJob("order-1"). Pass another jobId to create another one.',
    );
    await expect(requested).rejects.toBeInstanceOf(GenError);
    // A source with at-least-once delivery recognizes the repetition by its code.
    await expect(requested).rejects.toMatchObject({ code: 'call_ended', recovery: 'none' });
    expect(keys()).toEqual(['order-1']);
  });

  it('throws its failure, and suggests retry() or another ID', async () => {
    const { sandbox, queue, work, ended, record, keys } = open();
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_rejected' });
    work();
    await queue.videos.create({ prompt }, { jobId: 'order-1' });
    await ended();
    const requested = queue.videos.create({ prompt }, { jobId: 'order-1' });
    await expect(requested).rejects.toThrow(
      /"order-1" has failed \(JobFailedError: .*generation_rejected.*\).*retry\(\) on its record.*another jobId/,
    );
    await expect(requested).rejects.toMatchObject({ code: 'call_ended' });
    await (await record('order-1')).retry();
    await expect.poll(() => queue.queue.getCompletedCount()).toBe(1);
    expect(keys()).toEqual(['order-1', 'order-1:r2']);
  });

  it.each([
    ['repeat', { every: 1000 }, 'upsertJobScheduler'],
    ['attempts', 1, "don't count as attempts"],
    ['backoff', 10, 'retryDelayMs to createGenWorker'],
    ['again', true, 'queue.videos.create has no option "again"'],
  ])('rejects the option %s', async (name, value, message) => {
    const { queue } = open();
    const requested = queue.videos.create({ prompt }, { [name]: value } as never);
    await expect(requested).rejects.toThrow(`queue.videos.create has no option "${name}"`);
    await expect(requested).rejects.toThrow(message);
    expect(await queue.queue.getPrioritizedCount()).toBe(0);
  });
});

describeWithRedis('a used ID', () => {
  const { open } = queuesOnSandboxes();
  const reused = (message: string) =>
    expect.objectContaining({
      name: 'PreflightError',
      code: 'idempotency_key_reused',
      message: expect.stringContaining(message),
    });

  it('is rejected for another call and for other params while the first one waits, runs, and has ended', async () => {
    const { sandbox, queue, work, ended, record, asleep } = open({ clock: 'manual', jobDurationMs: 1000 });
    const film = { prompt, duration: 4 } as const;
    await queue.videos.create(film, { jobId: 'order-1' });
    const expectRejected = async (job: string) => {
      await expect(queue.images.create({ prompt }, { jobId: 'order-1' })).rejects.toEqual(
        reused(
          `"order-1" already identifies a videos.create call, so this call was not queued. Pass another jobId, for example "images-order-1".${job}`,
        ),
      );
      await expect(queue.videos.create({ prompt: 'a fox at noon' }, { jobId: 'order-1' })).rejects.toEqual(
        reused(`queue.videos.create: "order-1" was queued with other params, so this call was not queued`),
      );
    };
    await expectRejected('');
    const again = await queue.videos.create({ duration: 4, prompt }, { jobId: 'order-1' });
    expect(again.data.params).toEqual(film);
    work();
    await expect.poll(async () => (await record('order-1')).data.jobId).toBeDefined();
    await expectRejected(` Its job is ${sandbox.jobs[0]?.id}.`);
    await asleep();
    await sandbox.advance(1000);
    await ended();
    await expectRejected(` Its job is ${sandbox.jobs[0]?.id}.`);
    expect(sandbox.jobs).toHaveLength(1);
  });

  it('is rejected for all but one of several concurrent calls', async () => {
    const { queue, work, ended, sandbox } = open();
    const requested = await Promise.allSettled(
      [1, 2, 3].map((at) => queue.videos.create({ prompt: `film ${at}` }, { jobId: 'order-1' })),
    );
    const queued = requested.filter((each) => each.status === 'fulfilled');
    expect(requested.filter((each) => each.status === 'rejected').map(({ reason }) => reason)).toEqual([
      reused('was queued with other params'),
      reused('was queued with other params'),
    ]);
    work();
    await ended();
    expect(queued.map(({ value }) => value.data.params.prompt)).toEqual(sandbox.jobs.map(({ prompt }) => prompt));
  });

  it('accepts the same call again after a deploy that changed its webhook URL', async () => {
    const { queue } = open();
    for (const version of ['v1', 'v2'])
      await queue.videos.create({ prompt, webhook_url: `https://${version}.example.com/` }, { jobId: 'order-1' });
    expect(await queue.queue.getPrioritizedCount()).toBe(1);
  });

  it('accepts the same call with the same file again', async () => {
    const { queue } = open();
    for (let time = 0; time < 2; time++) {
      const copy = new Blob([PNG], { type: PNG.type });
      await queue.videos.create({ prompt, first_frame_upload_id: copy }, { jobId: 'order-1' });
    }
    expect(await queue.queue.getPrioritizedCount()).toBe(1);
  });
});

describeWithRedis('two queues of one account', () => {
  const { open, store } = queuesOnSandboxes();

  it.each(['in one process', 'over a store'])(
    "%s: reject each other's IDs, and find the job of a redelivery with other params",
    async (where) => {
      const client = () => (where.endsWith('store') ? { store: store() } : {});
      const films = open({ clock: 'manual', jobDurationMs: 1000, client: client() });
      const posters = open({ sandbox: films.sandbox, client: client() });
      films.work();
      posters.work();
      await films.queue.videos.create({ prompt }, { jobId: 'order-1' });
      await films.asleep();
      await posters.queue.images.create({ prompt }, { jobId: 'order-1' });
      await posters.ended();
      await films.sandbox.advance(1000);
      await films.ended();
      // The other queue's own order 1b must not get this one's video.
      await posters.queue.videos.create({ prompt: 'a fox at noon' }, { jobId: 'order-1b' });
      await posters.asleep();
      await films.queue.videos.create({ prompt: 'a fox at night' }, { jobId: 'order-1b' });
      await films.ended(2);
      // A source redelivers an order after its record was removed and a deploy changed its params.
      const { jobId } = (await films.record('order-1')).data;
      await (await films.record('order-1')).remove();
      await films.queue.videos.create({ prompt: 'a fox at dusk', webhook_url }, { jobId: 'order-1' });
      await films.sandbox.advance(1000);
      await films.ended(2);
      const reused = { name: 'PreflightError', code: 'idempotency_key_reused' };
      expect([films.failures, posters.failures]).toMatchObject([[reused], [reused]]);
      expect((await films.record('order-1')).data).toMatchObject({ jobId });
      expect((await films.record('order-1b')).data.failure).toMatchObject(reused);
      expect((await posters.record('order-1')).data.failure).toMatchObject(reused);
      expect(films.sandbox.jobs.map(({ prompt }) => prompt)).toEqual([prompt, 'a fox at noon']);
    },
  );
});

describe('an invalid queue', () => {
  const asBullMq = (value: string) =>
    `connection must be what BullMQ accepts, not ${value}. Pass { url: 'redis://…' }, or a Redis client.`;
  const ONE_NODE =
    ": prefix needs a hash tag, because a Redis Cluster must keep all keys of a queue on one node. Pass { prefix: '{gen}' } to the queue and to every worker.";
  it.each<[string, unknown, object, string]>([
    ['a URL string', 'redis://:secret@host:6379', {}, `: ${asBullMq('a string')}`],
    ['a URL', new URL('redis://:secret@host:6379'), {}, `: ${asBullMq('a URL')}`],
    ['undefined', undefined, {}, `: ${asBullMq('nothing')}`],
    ['a Redis Cluster', { isCluster: true }, {}, ONE_NODE],
    ['a Redis Cluster with an empty hash tag', { isCluster: true }, { prefix: '{}gen{' }, ONE_NODE],
    ["the name of another queue's index", { port: 1 }, { name: 'film.gen-client-jobs' }, ': name must not end with'],
  ])('throws for %s before it opens a connection', (_, connection, location, message) => {
    const before = process.getActiveResourcesInfo().length;
    for (const create of [
      () => createGenQueue(connection as never, location),
      () => createGenWorker(connection as never, { withOptions: () => {} } as never, location),
    ]) {
      expect(create).toThrow(message);
      expect(create).not.toThrow('secret');
      expect(create).toThrow(expect.objectContaining({ recovery: 'fix_setup' }));
    }
    expect(process.getActiveResourcesInfo()).toHaveLength(before);
  });

  it('throws without a client before it opens a connection', () => {
    const before = process.getActiveResourcesInfo().length;
    const create = () => createGenWorker({ host: '127.0.0.1', port: 1 }, undefined as never);
    expect(create).toThrow('createGenWorker: client must be a GenClient');
    expect(create).toThrow(expect.objectContaining({ recovery: 'fix_setup' }));
    expect(process.getActiveResourcesInfo()).toHaveLength(before);
  });
});
