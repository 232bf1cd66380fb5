import { GenError, InsufficientBalanceError } from 'gen-client';
import { expect, it } from 'vitest';
import { deferred } from '../support/deferred.js';
import { describeWithRedis, eventOf, isCreate, queuesOnSandboxes } from './queue-on-sandbox.js';

const HOUR_MS = 3_600_000;
const prompt = 'a fox at dawn';
const REJECTION = { status: 402, code: 'insufficient_balance', recovery: 'top_up', method: 'POST', url: 'x' } as const;
const PENDING = { status: 409, code: 'character_pending', retryAfterS: 0.05 } as const;

/** A lock that expires while its worker runs. */
const SHORT_LOCK = { lockDuration: 300, stalledInterval: 100, skipLockRenewal: true } as const;

type Fetch = typeof globalThis.fetch;

/** Returns a fetch that repeats each rejection for its key, as the service may do. */
function withRepeatedRejections(fetch: Fetch): Fetch {
  const rejections = new Map<string, Response>();
  return async (input, init) => {
    const request = new Request(input, init);
    const key = request.headers.get('idempotency-key');
    const rejection = key && rejections.get(key);
    if (rejection) return rejection.clone();
    const response = await fetch(request);
    if (key && response.status >= 400 && response.status < 500) rejections.set(key, response.clone());
    return response;
  };
}

describeWithRedis('a queued call is paid once and never lost', () => {
  const { open } = queuesOnSandboxes();

  it.each([
    ['a plain GenError', new GenError('no')],
    ["another call's rejection", new InsufficientBalanceError('no', REJECTION)],
    ['undefined', undefined],
  ])('if onCompleted throws %s', async (_, reason) => {
    const { sandbox, queue, startWorker, untilEnded, failures } = open();
    let calls = 0;
    startWorker({
      retryDelayMs: 20,
      onCompleted: async () => {
        calls++;
        if (calls < 3) throw reason;
      },
    });
    await queue.videos.create({ prompt });
    await untilEnded();
    expect(calls).toBe(3);
    expect(await queue.queue.getCompletedCount()).toBe(1);
    expect(failures).toEqual([]);
    // Only the callback is repeated.
    expect(sandbox.requests.filter(({ method }) => method === 'POST')).toHaveLength(1);
  });

  it('if onFailed throws and is then called again with the same error', async () => {
    const { sandbox, queue, startWorker, untilEnded, record } = open();
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_rejected' });
    const failures: string[] = [];
    startWorker({
      onFailed: async (error) => {
        failures.push(error.name);
        if (failures.length === 1) throw new Error('no database');
      },
    });
    await queue.videos.create({ prompt }, { jobId: 'order-1' });
    await untilEnded();
    expect(failures).toEqual(['JobFailedError', 'JobFailedError']);
    expect((await record('order-1')).data.failure).toMatchObject({ name: 'JobFailedError' });
  });

  it('if it starts late, because its timeout starts with the create', async () => {
    const { queue, startWorker, untilEnded, sandbox } = open({ jobDurationMs: 100 });
    startWorker({ timeoutMs: 400 });
    await queue.videos.create({ prompt }, { delay: 700 });
    await untilEnded();
    expect(await queue.queue.getCompletedCount()).toBe(1);
    expect(sandbox.jobs).toHaveLength(1);
  });

  it("if it times out before its next create, which isn't sent", async () => {
    const { sandbox, queue, startWorker, untilEnded, keys, untilAsleep, failures } = open();
    sandbox.outcomes.next({ status: 'failed', errorCode: 'reference_asset_pending', errorData: { retry_after: 1 } });
    startWorker({ timeoutMs: 1500 });
    await queue.videos.create({ prompt }, { jobId: 'order-1' });
    await untilAsleep();
    await queue.queue.pause();
    await new Promise((resolve) => setTimeout(resolve, 1600));
    await queue.queue.resume();
    await untilEnded();
    expect(failures).toMatchObject([{ name: 'JobFailedError', code: 'reference_asset_pending' }]);
    expect(keys()).toEqual(['order-1']);
  });

  it('if an operator restarts it after a failed job, with a new key', async () => {
    const { sandbox, queue, startWorker, untilEnded, record, keys } = open();
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_timeout' });
    sandbox.outcomes.next({ status: 'canceled' });
    startWorker();
    await queue.videos.create({ prompt }, { jobId: 'order-1' });
    await untilEnded();
    await (await record('order-1')).retry();
    await expect.poll(() => sandbox.jobs.length).toBe(2);
    await untilEnded();
    await (await record('order-1')).retry();
    await expect.poll(() => queue.queue.getCompletedCount()).toBe(1);
    expect(keys()).toEqual(['order-1', 'order-1:r2', 'order-1:r3']);
    const { data, returnvalue } = await record('order-1');
    expect(data.failure).toBeUndefined();
    expect(returnvalue.tries).toHaveLength(3);
  });

  it('if it was rejected, restarted, completed, and removed, and its order is redelivered', async () => {
    const { sandbox, queue, startWorker, untilEnded, record, keys } = open({ balanceTokens: 0 });
    const completed: string[] = [];
    startWorker({ onCompleted: ({ id }) => void completed.push(id) });
    await queue.videos.create({ prompt }, { jobId: 'order-17', removeOnComplete: true });
    await untilEnded();
    sandbox.topUp(20);
    await (await record('order-17')).retry();
    await expect.poll(() => completed.length).toBe(1);
    await expect.poll(() => queue.queue.getJob('order-17')).toBeUndefined();
    await queue.videos.create({ prompt }, { jobId: 'order-17', removeOnComplete: true });
    await expect.poll(() => completed.length).toBe(2);
    expect(sandbox.jobs).toHaveLength(1);
    expect(new Set(completed).size).toBe(1);
    expect(keys()).toEqual(['order-17', 'order-17', 'order-17']);
  });

  it('if an operator restarts it after a rejection that the service repeats, with a new key', async () => {
    const { sandbox, queue, startWorker, untilEnded, record, keys } = open({
      balanceTokens: 0,
      wrap: withRepeatedRejections,
    });
    startWorker();
    await queue.videos.create({ prompt }, { jobId: 'order-2' });
    await untilEnded();
    expect((await record('order-2')).data.failure).toMatchObject({ code: 'insufficient_balance' });
    await (await record('order-2')).retry();
    for (const creates of [2, 3]) {
      await expect.poll(() => keys().length).toBe(creates);
      await untilEnded();
      if (creates === 3) sandbox.topUp(20);
      await (await record('order-2')).retry();
    }
    await expect.poll(() => queue.queue.getCompletedCount()).toBe(1);
    // The service repeats a rejection for its key, so each restart uses a new key.
    expect(keys()).toEqual(['order-2', 'order-2:w1', 'order-2:w2', 'order-2:w3']);
    expect(sandbox.jobs).toHaveLength(1);
  });

  it('if an operator restarts it after a timeout, with the same job and a new timeout', async () => {
    const { sandbox, queue, startWorker, untilEnded, record, untilAsleep } = open({
      clock: 'manual',
      jobDurationMs: 1000,
    });
    const worker = startWorker({ timeoutMs: 200 });
    await queue.videos.create({ prompt }, { jobId: 'order-1' });
    await untilEnded();
    expect((await record('order-1')).data.failure).toMatchObject({ name: 'WaitTimeoutError' });
    await worker.close();
    await (await record('order-1')).retry();
    startWorker({ timeoutMs: HOUR_MS, pollIntervalMs: HOUR_MS });
    await untilAsleep();
    expect((await record('order-1')).data.run).toMatchObject({ elapsedMs: 0, step: { type: 'wait' } });
    await sandbox.advance(1000);
    await queue.wake(eventOf(sandbox));
    await expect.poll(() => queue.queue.getCompletedCount()).toBe(1);
    expect(sandbox.jobs).toHaveLength(1);
  });

  it('if it is queued again after a review and the loss of its record', async () => {
    for (const wrap of [(fetch: Fetch) => fetch, withRepeatedRejections]) {
      const { sandbox, queue, startWorker, untilEnded, record } = open({ wrap });
      sandbox.faults.add({ match: { method: 'POST' }, ...PENDING, times: 1 });
      startWorker();
      await queue.videos.create({ prompt }, { jobId: 'order-1' });
      await untilEnded();
      await (await record('order-1')).remove();
      await queue.videos.create({ prompt }, { jobId: 'order-1' });
      await untilEnded();
      expect(await queue.queue.getCompletedCount()).toBe(1);
      expect(sandbox.jobs).toHaveLength(1);
    }
  });

  it('if a worker freezes during a create and another one continues', async () => {
    const { promise: frozen, resolve: thaw } = deferred();
    let creates = 0;
    const errors: string[] = [];
    const { sandbox, queue, startWorker, untilEnded, record } = open({
      wrap: (fetch) => async (input, init) => {
        const isFirst = isCreate(input, init) && creates++ === 0;
        const response = await fetch(input, init);
        if (isFirst) await frozen;
        return response;
      },
    });
    sandbox.faults.add({ match: { method: 'POST' }, ...PENDING, times: 1 });
    startWorker({ worker: SHORT_LOCK, onError: (error) => void errors.push(error.message) });
    await queue.videos.create({ prompt }, { jobId: 'order-1' });
    await expect.poll(() => creates).toBe(1);
    // The lock expires, and another worker continues.
    startWorker({ worker: SHORT_LOCK });
    await untilEnded();
    const dataBefore = (await record('order-1')).data;
    thaw();
    await expect.poll(() => errors.join()).toContain('lock');
    expect((await record('order-1')).data).toEqual(dataBefore);
    expect(sandbox.jobs).toHaveLength(1);
    expect(creates).toBe(2);
  });

  it.each([
    ['a lost response', () => new TypeError('terminated')],
    ['a failing API key function', undefined],
  ])(
    'if a worker freezes during a poll, another one continues, and the first one wakes to %s',
    async (_, pollError) => {
      const { promise: frozen, resolve: thaw } = deferred();
      let polls = 0;
      let keys = 0;
      const errors: string[] = [];
      const { sandbox, queue, startWorker, untilEnded, record } = open({
        client: {
          // The first poll requests the API key for the second time.
          apiKey: async () => {
            if (pollError === undefined && ++keys === 2) {
              await frozen;
              throw new Error('the vault is sealed');
            }
            return sandbox.apiKey;
          },
        },
        wrap: (fetch) => async (input, init) => {
          if (pollError !== undefined && !isCreate(input, init) && polls++ === 0) {
            await frozen;
            throw pollError();
          }
          return fetch(input, init);
        },
      });
      startWorker({ worker: SHORT_LOCK, onError: (error) => void errors.push(error.message) });
      await queue.images.create({ prompt }, { jobId: 'order-1' });
      await expect.poll(() => (pollError === undefined ? keys > 1 : polls > 0)).toBe(true);
      // The lock expires, and another worker continues.
      startWorker({ worker: SHORT_LOCK });
      await untilEnded();
      const dataBefore = (await record('order-1')).data;
      thaw();
      await expect.poll(() => errors.join()).toContain('lock');
      expect((await record('order-1')).data).toEqual(dataBefore);
      expect(await queue.queue.getCompletedCount()).toBe(1);
      expect(sandbox.jobs).toHaveLength(1);
    },
  );

  it('if the service requests an immediate retry, which the worker delays', async () => {
    const { sandbox, queue, startWorker, keys } = open();
    sandbox.faults.add({ match: { method: 'POST' }, status: 409, code: 'character_pending', retryAfterS: 0 });
    startWorker();
    await queue.videos.create({ prompt }, { jobId: 'order-1' });
    await new Promise((resolve) => setTimeout(resolve, 1500));
    expect(keys()).toEqual(['order-1']);
  });
});
