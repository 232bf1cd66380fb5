// Overlapping requests in one isolate. On Workers, promises, timers, and streams end with their request.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type DelayedService, startDelayedService } from '../support/delayed-service.js';
import { bundle, startWorkerd, type Worker, whyNoWorkerd } from './workerd.js';

/** Compatibility dates before and after October 2024, when Cloudflare began to run a promise's callbacks in the waiting request. */
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

    const send = async (path: string): Promise<{ status?: string; error?: string; ms: number }> => {
      const start = performance.now();
      const response = await worker.dispatchFetch(`http://worker.test${path}`);
      return { ...((await response.json()) as { status?: string }), ms: performance.now() - start };
    };
    const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
    const until = async (check: () => boolean) => {
      for (const end = performance.now() + 5_000; !check(); await pause(10))
        if (performance.now() > end) throw new Error('the condition was not met within 5 s');
    };

    test.each([
      ['same', ''],
      ['other', '&client=two'],
    ])('a webhook in another request wakes a wait (%s client)', async (id, client) => {
      const wait = send(`/wait?id=${id}`);
      await until(() => service.polls(id) === 1);
      service.complete(id);
      await send(`/notify?id=${id}${client}`);
      const { status, ms } = await wait;
      expect(status).toBe('completed');
      expect(ms).toBeLessThan(8_000);
    });

    test("a wait that times out during a shared poll doesn't affect the other wait", async () => {
      service.delay('slow');
      const [shortWait, longWait] = [send('/wait?id=slow&timeoutMs=600'), send('/wait?id=slow')];
      await until(() => service.polls('slow') > 0);
      expect(await shortWait).toMatchObject({ error: 'WaitTimeoutError' });
      service.complete('slow');
      service.respond('slow');
      expect(await longWait).toMatchObject({ status: 'completed' });
      expect((await longWait).ms).toBeLessThan(8_000);
    });

    test("a wait that is aborted during a shared poll doesn't affect the others", async () => {
      service.delay('aborted');
      const [aborted, one, two] = ['&abortMs=400', '', '&client=two'].map((query) => send(`/wait?id=aborted${query}`));
      await until(() => service.polls('aborted') > 0);
      expect(await aborted).toMatchObject({ error: 'TimeoutError' });
      service.complete('aborted');
      service.respond('aborted');
      expect(await one).toMatchObject({ status: 'completed' });
      expect(await two).toMatchObject({ status: 'completed' });
    });

    test('the request that created the scheduler can end while its wait is in flight', async () => {
      await send('/leave?id=left&client=scheduler');
      const waits = [send('/wait?id=left&client=scheduler'), send('/wait?id=left-2&client=scheduler')];
      await until(() => service.polls('left-2') === 1);
      for (const id of ['left', 'left-2']) {
        service.complete(id);
        await send(`/notify?id=${id}&client=scheduler`);
      }
      for (const wait of waits) {
        expect(await wait).toMatchObject({ status: 'completed' });
        expect((await wait).ms).toBeLessThan(8_000);
      }
    });

    // Tested with one date, because it takes five seconds until the abandoned call counts as lost.
    test.skipIf(compatibilityDate !== TODAY)(
      'a shared queue continues after the request of a queued call ends',
      async () => {
        const first = [send('/create?client=narrow'), send('/create?client=narrow')];
        await Promise.all(first);
        await send('/leave-queue?client=narrow');
        const creates = await Promise.all(Array.from({ length: 4 }, () => send('/create?client=narrow')));
        expect(creates.map(({ status }) => status)).toEqual(creates.map(() => expect.stringContaining('job_')));
        const times = service.createdAt.slice(-6);
        for (let index = 2; index < times.length; index++)
          expect(times[index]! - times[index - 2]!).toBeGreaterThan(590);
      },
    );

    test("no request awaits another request's API key", async () => {
      service.delay('vault');
      const [first, second] = [send('/wait?id=keyed&client=vault&timeoutMs=500'), send('/get?id=keyed&client=vault')];
      await until(() => service.polls('vault') === 2);
      expect(await first).toMatchObject({ error: 'WaitTimeoutError' });
      service.respond('vault');
      expect(await second).toMatchObject({ status: 'processing' });
      const creates = await Promise.all([1, 2, 3].map(() => send('/create?client=vault')));
      expect(creates.map(({ status }) => status)).toEqual(creates.map(() => expect.stringContaining('job_')));
    });

    test('twelve requests that wait for four jobs get their outcomes', async () => {
      const waits = Array.from({ length: 12 }, (_, index) =>
        send(`/wait?id=many-${index % 4}&client=${index % 2 ? 'one' : 'two'}`),
      );
      await until(() => service.polls('many-3') > 0);
      await Promise.all(
        Array.from({ length: 4 }, (_, index) => {
          service.complete(`many-${index}`);
          return send(`/notify?id=many-${index}`);
        }),
      );
      const outcomes = await Promise.all(waits);
      expect(outcomes.filter(({ status }) => status === 'completed')).toHaveLength(12);
    });
  },
);
