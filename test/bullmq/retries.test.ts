// Failures other than the job's use no BullMQ attempts. The worker retries the step, and reports the failure once it gives up.
import { UnrecoverableError } from 'bullmq';
import { expect, it, vi } from 'vitest';
import { describeWithRedis, isCreate, PNG, queuesOnSandboxes } from './queue-on-sandbox.js';

const DAY_MS = 86_400_000;
const prompt = 'a fox at dawn';
const QUICK = { retryDelayMs: 20 };

describeWithRedis('a queued call', () => {
  const { open } = queuesOnSandboxes();

  it("retries its uploads without using BullMQ's attempts, and fails after timeoutMs with their error", async () => {
    const { sandbox, queue, startWorker, untilEnded, record, failures } = open({ client: { maxRetries: 0 } });
    sandbox.faults.add({ match: { method: 'POST', path: '/v1/uploads' }, status: 503, times: 8 });
    startWorker(QUICK);
    const params = { prompt, first_frame_upload_id: PNG };
    await queue.videos.create(params, { jobId: 'order-1' });
    await untilEnded();
    expect(await queue.queue.getCompletedCount()).toBe(1);
    expect((await record('order-1')).data.retryState).toBeUndefined();
    expect(failures).toEqual([]);

    const other = open({ client: { maxRetries: 0 } });
    other.sandbox.faults.add({ match: { method: 'POST', path: '/v1/uploads' }, status: 503, times: 1_000 });
    other.startWorker({ ...QUICK, timeoutMs: 200 });
    await other.queue.videos.create(params, { jobId: 'order-2' });
    await other.untilEnded();
    expect(other.failures).toMatchObject([{ name: 'UploadError' }]);
    expect((await other.record('order-2')).data.failure).toMatchObject({ name: 'UploadError' });
    expect(other.sandbox.jobs).toHaveLength(0);
  });

  it('retries a throwing onCompleted for a day without a poll, then fails with its error', async () => {
    const { sandbox, queue, startWorker, untilEnded, record, failures } = open();
    const jobIds: string[] = [];
    startWorker({
      ...QUICK,
      onCompleted: (job) => {
        jobIds.push(job.id);
        throw new Error('S3 is down');
      },
    });
    await queue.videos.create({ prompt }, { jobId: 'order-1' });
    await expect.poll(() => jobIds.length).toBeGreaterThan(6);
    expect(new Set(jobIds).size).toBe(1);
    const requestsBefore = sandbox.requests.length;
    expect(failures).toEqual([]);
    // A day passes. The clock continues, so that sleeping calls wake.
    const now = Date.now.bind(Date);
    const dateNow = vi.spyOn(Date, 'now').mockImplementation(() => now() + DAY_MS);
    try {
      await untilEnded();
    } finally {
      dateNow.mockRestore();
    }
    expect(sandbox.requests).toHaveLength(requestsBefore);
    expect(failures).toMatchObject([{ name: 'GenError', message: 'onCompleted failed: S3 is down' }]);
    expect((await record('order-1')).data.failure).toMatchObject({ message: 'onCompleted failed: S3 is down' });
  });

  it('calls onCompleted again if an operator restarts it after onCompleted has failed', async () => {
    const { sandbox, queue, startWorker, untilEnded, record } = open();
    const failures: string[] = [];
    let hasDisk = false;
    startWorker({
      onCompleted: () => {
        if (!hasDisk) throw new UnrecoverableError('no disk');
      },
      onFailed: (error) => void failures.push(error.message),
    });
    await queue.videos.create({ prompt }, { jobId: 'order-1' });
    await untilEnded();
    expect(failures).toEqual(['onCompleted failed: no disk']);
    hasDisk = true;
    await (await record('order-1')).retry();
    await expect.poll(() => queue.queue.getCompletedCount()).toBe(1);
    expect((await record('order-1')).data.failure).toBeUndefined();
    expect(sandbox.jobs).toHaveLength(1);
  });

  it('continues after a failure in the client, for example in apiKey', async () => {
    let failuresLeft = 12;
    const apiKey = () => {
      if (failuresLeft-- > 0) throw new Error('the vault is sealed');
      return sandbox.apiKey;
    };
    const errors: string[] = [];
    const { sandbox, queue, startWorker, untilEnded } = open({ client: { apiKey: () => apiKey(), maxRetries: 0 } });
    startWorker({ ...QUICK, onError: (error) => void errors.push(error.message) });
    await queue.videos.create({ prompt });
    await untilEnded();
    expect(await queue.queue.getCompletedCount()).toBe(1);
    expect(sandbox.jobs).toHaveLength(1);
  });

  it('uses no attempt when its worker closes', async () => {
    const { sandbox, queue, startWorker, record } = open({
      wrap: (fetch) => async (input, init) => {
        if (isCreate(input, init)) await new Promise((_, reject) => init?.signal?.addEventListener('abort', reject));
        return fetch(input, init);
      },
    });
    const errors: Error[] = [];
    for (let at = 0; at < 3; at++) {
      const worker = startWorker({ onError: (error) => void errors.push(error) });
      if (at === 0) await queue.videos.create({ prompt }, { jobId: 'order-1' });
      await expect.poll(() => queue.queue.getActiveCount()).toBe(1);
      await worker.close();
      expect((await record('order-1')).attemptsMade).toBe(0);
    }
    // Closing isn't reported as an error.
    expect(errors).toEqual([]);
    expect((await record('order-1')).data.retryState).toBeUndefined();
    expect(await queue.queue.getFailedCount()).toBe(0);
    expect(sandbox.jobs).toHaveLength(0);
  });
});
