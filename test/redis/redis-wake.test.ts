// A webhook that lands in one process wakes the waits in others, over a real Redis.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { GenClient } from '../../src/index.js';
import { redisWake } from '../../src/redis/index.js';
import { createWebhookHandler, signWebhook } from '../../src/webhooks/index.js';
import { completedEvent } from '../support/completed-event.js';
import { type HeldService, startHeldService } from '../support/held-service.js';
import { type RealRedis, startCluster, startRedis, whyNoRedis } from './real-redis.js';
import { startUpstash } from './upstash-bridge.js';

const secret = 'whsec_test';

describe.skipIf(whyNoRedis())('a wake over Redis', () => {
  let redis: RealRedis;
  let service: HeldService;
  beforeAll(async () => {
    [redis, service] = await Promise.all([startRedis(), startHeldService()]);
  });
  afterAll(async () => {
    service.close();
    await redis.close();
  });

  const clientFor = (wake = redisWake(redis.ioredis), apiKey = 'key-of-receiver') =>
    new GenClient({ apiKey, baseUrl: service.baseUrl, wake });
  /** The webhook of a job, as it reaches one receiver. */
  const deliver = async (client: GenClient, id: string) => {
    const receive = createWebhookHandler({ client, secret });
    const { body, headers } = await signWebhook(completedEvent(id, service.baseUrl), { secret });
    return receive(new Request('https://me.test/hook', { method: 'POST', body, headers }));
  };
  const subscribed = async () =>
    String(await redis.ioredis.call('PUBSUB', 'CHANNELS'))
      .split(',')
      .filter(Boolean);
  const untilRead = (id: string, times = 1) => vi.waitFor(() => expect(service.reads(id)).toBe(times), 5_000);
  const untilSubscribed = (id: string) =>
    vi.waitFor(async () => expect(await subscribed()).toContain(`gen-client:wake:${id}`));

  describe('between processes', () => {
    const folder = mkdtempSync(join(tmpdir(), 'gen-client-wake-'));
    let processes: ChildProcess[] = [];
    const said = async (child: ChildProcess) => (await once(child, 'message'))[0] as unknown;
    beforeAll(async () => {
      const outfile = join(folder, 'waiting.mjs');
      await build({
        entryPoints: [fileURLToPath(new URL('waiting-process.ts', import.meta.url))],
        outfile,
        bundle: true,
        platform: 'node',
        format: 'esm',
        banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' },
      });
      processes = ['ioredis', 'node-redis', 'ioredis'].map((kind) =>
        fork(outfile, [service.baseUrl, String(redis.port), kind]),
      );
      await Promise.all(processes.map(said));
    });
    afterAll(async () => {
      // They end by themselves: nothing of the client keeps a process alive.
      const ended = processes.map((child) => once(child, 'exit'));
      for (const child of processes) child.send('end');
      expect((await Promise.all(ended)).map(([code]) => code)).toEqual([0, 0, 0]);
      rmSync(folder, { recursive: true });
    });

    test('a webhook in one process wakes the waits of three others within a second', async () => {
      for (const child of processes) child.send('job_far');
      const woken = processes.map(said);
      await untilRead('job_far', 3);
      await untilSubscribed('job_far');
      service.complete('job_far');
      const began = performance.now();
      expect((await deliver(clientFor(), 'job_far')).status).toBe(200);
      expect(await Promise.all(woken)).toEqual(['completed', 'completed', 'completed']);
      expect(performance.now() - began).toBeLessThan(1_000);
      expect(service.reads('job_far')).toBe(6);
    });

    test('ten thousand notices of other jobs cost them nothing', async () => {
      const [child] = processes;
      if (!child) return expect.unreachable();
      child.send('job_own');
      const woken = said(child);
      await untilRead('job_own');
      await untilSubscribed('job_own');
      const wake = redisWake(redis.ioredis);
      const sent = await Promise.all(Array.from({ length: 10_000 }, (_, at) => wake.publish(`job_foreign_${at}`)));
      // What Redis answers: how many connections it has sent each notice to.
      expect(new Set(sent)).toEqual(new Set([0]));
      expect(service.reads('job_own')).toBe(1);
      service.complete('job_own');
      expect(await wake.publish('job_own')).toBe(1);
      expect(await woken).toBe('completed');
    });
  });

  describe.each([
    ['ioredis', () => redis.ioredis],
    ['node-redis', () => redis.nodeRedis],
  ])('of %s', (name, clientOf) => {
    afterEach(async () => {
      // With the last wait the connection is gone.
      await vi.waitFor(async () => expect(await redis.ioredis.call('CLIENT', 'LIST', 'TYPE', 'pubsub')).toBe(''));
    });

    test('a lost notice costs one poll interval', async () => {
      const id = `job_lost_${name}`;
      const wait = clientFor(redisWake(clientOf())).waitForJob(id, { pollIntervalMs: 300 });
      await untilRead(id);
      service.complete(id);
      expect((await wait).status).toBe('completed');
      expect(service.reads(id)).toBe(2);
    });

    test('a Redis that was restarted wakes again', async () => {
      const id = `job_restart_${name}`;
      const wait = clientFor(redisWake(clientOf())).waitForJob(id);
      await untilRead(id);
      await untilSubscribed(id);
      await redis.restart();
      await untilSubscribed(id);
      service.complete(id);
      const began = performance.now();
      clientFor(redisWake(redis.nodeRedis), 'key-of-another').notify({ data: { job: { id } } });
      expect((await wait).status).toBe('completed');
      expect(performance.now() - began).toBeLessThan(1_000);
    });

    test('a wait that ends while the connection is being made leaves nothing behind', async () => {
      const wake = redisWake(clientOf());
      for (let times = 0; times < 20; times++) wake.listen('job_short', () => {})();
      const stop = wake.listen('job_short', () => {});
      await untilSubscribed('job_short');
      stop();
    });

    test('each listener of a job is called once, and none after it has stopped', async () => {
      const wake = redisWake(clientOf(), { prefix: 'mine:' });
      const fire = vi.fn();
      const [stop, stay] = [wake.listen('job_two', fire), wake.listen('job_two', fire)];
      const other = wake.listen('job_three', fire);
      await vi.waitFor(async () => expect((await subscribed()).sort()).toEqual(['mine:job_three', 'mine:job_two']));
      await wake.publish('job_two');
      await vi.waitFor(() => expect(fire).toHaveBeenCalledTimes(2));
      stop();
      stop();
      await wake.publish('job_two');
      await vi.waitFor(() => expect(fire).toHaveBeenCalledTimes(3));
      other();
      await vi.waitFor(async () => expect(await subscribed()).toEqual(['mine:job_two']));
      stay();
    });
  });

  test('a cluster wakes, too', async () => {
    const cluster = await startCluster();
    for (const client of [cluster.ioredis, cluster.nodeRedis]) {
      const wake = redisWake(client);
      const fire = vi.fn();
      const stop = wake.listen('job_cluster', fire);
      await vi.waitFor(
        async () => {
          await wake.publish('job_cluster');
          expect(fire).toHaveBeenCalled();
        },
        { interval: 50, timeout: 5_000 },
      );
      stop();
    }
    await cluster.close();
  });

  test('a Redis that is away fails no wait and no notify', async () => {
    const onError = vi.fn();
    const gone = redis.ioredis.duplicate({ port: 1, maxRetriesPerRequest: 0, retryStrategy: () => null });
    gone.on('error', () => {});
    const client = clientFor(redisWake(gone, { onError }));
    const wait = client.waitForJob('job_away', { pollIntervalMs: 200 });
    service.complete('job_away');
    expect((await wait).status).toBe('completed');
    client.notify({ data: { job: { id: 'job_away' } } });
    await vi.waitFor(() => expect(onError).toHaveBeenCalled());
  });

  test('a client that cannot do pub/sub is refused at once, and so is an option that does not exist', async () => {
    const upstash = await startUpstash(redis.ioredis);
    const message = /^client must be a connected client of ioredis or redis \(node-redis\), not .*\. Pub\/sub needs/;
    // @ts-expect-error an HTTP client has no connection to duplicate
    expect(() => redisWake(upstash.client())).toThrow(message);
    // @ts-expect-error what JavaScript callers pass
    for (const client of [undefined, 'redis://localhost', {}]) expect(() => redisWake(client)).toThrow(message);
    // @ts-expect-error what JavaScript callers pass
    expect(() => redisWake(redis.ioredis, { channel: 'x' })).toThrow('redisWake has no option "channel".');
    // @ts-expect-error what JavaScript callers pass
    expect(() => new GenClient({ wake: redis.ioredis })).toThrow(
      'wake must be an object with the methods publish, listen',
    );
    upstash.close();
  });
});
