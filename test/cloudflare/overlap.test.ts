// Overlapping requests in one isolate. On Workers, promises, timers, and streams end with their request.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type DelayedService, startDelayedService } from '../support/delayed-service.js';
import { bundle, startWorkerd, type Worker, whyNoWorkerd } from './workerd.js';

/** Compatibility dates: before Cloudflare ran a promise's callbacks in the waiting request (October 2024), and today. */
const TODAY = '2026-07-01';
const DATES = ['2024-09-01', TODAY];

describe.skipIf(whyNoWorkerd !== undefined).each(DATES)(
  'overlapping requests in workerd with the date %s',
  (compatibilityDate) => {
    let service: DelayedService;
    let worker: Worker;
    beforeAll(async () => {
      service = await startDelayedService();
      worker = await startWorkerd({
        modules: true,
        script: await bundle({ file: 'overlap-worker.ts' }),
        compatibilityDate,
        bindings: { BASE_URL: service.baseUrl },
      });
    });
    afterAll(async () => {
      await worker.dispose();
      service.close();
    });

    const ask = async (path: string): Promise<{ status?: string; error?: string; ms: number }> => {
      const start = performance.now();
      const response = await worker.dispatchFetch(`http://worker.test${path}`);
      return { ...((await response.json()) as { status?: string }), ms: performance.now() - start };
    };
    const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
    const until = async (isTrue: () => boolean) => {
      for (const end = performance.now() + 5_000; !isTrue(); await pause(10))
        if (performance.now() > end) throw new Error('late');
    };

    test('a webhook in another request wakes a wait', async () => {
      const wait = ask('/wait?id=notified');
      await until(() => service.polls('notified') === 1);
      service.complete('notified');
      await ask('/notify?id=notified');
      const { status, ms } = await wait;
      expect(status).toBe('completed');
      expect(ms).toBeLessThan(8_000);
    });

    test('a webhook in another request wakes a wait even if it arrived before the wait', async () => {
      const wait = ask('/wait?id=other-client');
      await until(() => service.polls('other-client') === 1);
      service.complete('other-client');
      await ask('/notify?id=other-client&client=two');
      expect(await wait).toMatchObject({ status: 'completed' });
      expect((await wait).ms).toBeLessThan(8_000);
    });

    test("a wait that times out during a slow shared poll doesn't affect the remaining wait", async () => {
      service.delay('slow');
      const [short, long] = [ask('/wait?id=slow&timeoutMs=600'), ask('/wait?id=slow')];
      await until(() => service.polls('slow') > 0);
      expect(await short).toMatchObject({ error: 'WaitTimeoutError' });
      service.complete('slow');
      service.respond('slow');
      expect(await long).toMatchObject({ status: 'completed' });
      expect((await long).ms).toBeLessThan(8_000);
    });

    test("a wait whose request is aborted during a slow shared poll doesn't affect the others", async () => {
      service.delay('aborted');
      const [gone, one, two] = ['&abortMs=400', '', '&client=two'].map((more) => ask(`/wait?id=aborted${more}`));
      await until(() => service.polls('aborted') > 0);
      expect(await gone).toMatchObject({ error: 'TimeoutError' });
      service.complete('aborted');
      service.respond('aborted');
      expect(await one).toMatchObject({ status: 'completed' });
      expect(await two).toMatchObject({ status: 'completed' });
    });

    test('the request that created the scheduler can end while its wait is in flight', async () => {
      await ask('/leave?id=left&client=scheduler');
      const waits = [ask('/wait?id=left&client=scheduler'), ask('/wait?id=left-2&client=scheduler')];
      await until(() => service.polls('left-2') === 1);
      for (const id of ['left', 'left-2']) {
        service.complete(id);
        await ask(`/notify?id=${id}&client=scheduler`);
      }
      for (const wait of waits) {
        expect(await wait).toMatchObject({ status: 'completed' });
        expect((await wait).ms).toBeLessThan(8_000);
      }
    });

    // Once is enough: the abandoned wait counts as lost after five seconds.
    test.skipIf(compatibilityDate !== TODAY)(
      'a shared queue continues after the request of its first call has ended',
      async () => {
        const first = [ask('/create?client=narrow'), ask('/create?client=narrow')];
        await Promise.all(first);
        await ask('/leave-queue?client=narrow');
        const rest = await Promise.all(Array.from({ length: 4 }, () => ask('/create?client=narrow')));
        expect(rest.map(({ status }) => status)).toEqual(rest.map(() => expect.stringContaining('job_')));
        const times = service.createdAt.slice(-6);
        for (let at = 2; at < times.length; at++) expect(times[at]! - times[at - 2]!).toBeGreaterThan(590);
      },
    );

    test('no request waits for another request to fetch a key', async () => {
      service.delay('vault');
      const [first, second] = [ask('/wait?id=keyed&client=vault&timeoutMs=500'), ask('/read?id=keyed&client=vault')];
      await until(() => service.polls('vault') === 2);
      expect(await first).toMatchObject({ error: 'WaitTimeoutError' });
      service.respond('vault');
      expect(await second).toMatchObject({ status: 'processing' });
      const creates = await Promise.all([1, 2, 3].map(() => ask('/create?client=vault')));
      expect(creates.map(({ status }) => status)).toEqual(creates.map(() => expect.stringContaining('job_')));
    });

    test('twelve requests that wait for four jobs all end', async () => {
      const waits = Array.from({ length: 12 }, (_, at) =>
        ask(`/wait?id=many-${at % 4}&client=${at % 2 ? 'one' : 'two'}`),
      );
      await until(() => service.polls('many-3') > 0);
      await Promise.all(
        Array.from({ length: 4 }, (_, at) => {
          service.complete(`many-${at}`);
          return ask(`/notify?id=many-${at}`);
        }),
      );
      const ended = await Promise.all(waits);
      expect(ended.filter(({ status }) => status === 'completed')).toHaveLength(12);
    });
  },
);
