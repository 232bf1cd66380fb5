import { JobFailedError, PreflightError } from 'gen-client';
import { createGenQueue } from 'gen-client/bullmq';
import { expect, it } from 'vitest';
import { describeWithRedis, eventOf, isCreate, queuesOnSandboxes } from './queue-on-sandbox.js';

const HOUR_MS = 3_600_000;
const prompt = 'a fox at dawn';

describeWithRedis('calls queued on BullMQ', () => {
  const { open } = queuesOnSandboxes();

  it('return the completed job, report its status and cost as progress, and use their ID as the key', async () => {
    const { sandbox, queue, startWorker, untilEnded, record, keys } = open();
    const completed: string[] = [];
    startWorker({ onCompleted: (job, queueJob) => void completed.push(`${queueJob.id}:${job.status}`) });
    await queue.videos.create({ prompt, model: 'svc-video-pro' }, { jobId: 'order-17' });
    await untilEnded();
    const { returnvalue, progress } = await record('order-17');
    const [job] = sandbox.jobs;
    expect(returnvalue).toMatchObject({ id: job?.id, status: 'completed', modelId: 'svc-video-pro' });
    expect(returnvalue.tries).toEqual([
      { jobId: job?.id, idempotencyKey: 'order-17', model: 'svc-video-pro', status: 'completed' },
    ]);
    const { quotedTokenCost, finalTokenCost } = job ?? {};
    expect(progress).toEqual({ jobId: job?.id, status: 'completed', quotedTokenCost, finalTokenCost });
    const { logs } = await queue.queue.getJobLogs('order-17');
    expect(logs).toEqual([`${job?.id} was accepted under order-17: ${quotedTokenCost} tokens.`]);
    expect(completed).toEqual(['order-17:completed']);
    expect(keys()).toEqual(['order-17']);
  });

  it('fail with the typed error, stored in the record', async () => {
    const { sandbox, queue, startWorker, untilEnded, record, failures } = open();
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_rejected' });
    startWorker();
    await queue.videos.create({ prompt }, { jobId: 'order-19' });
    await untilEnded();
    const failed = await record('order-19');
    expect(failures[0]).toBeInstanceOf(JobFailedError);
    expect(failures).toHaveLength(1);
    expect(failed.failedReason).toContain('generation_rejected');
    expect(failed.data.failure).toMatchObject({ name: 'JobFailedError', code: 'generation_rejected' });
    expect(failed.attemptsMade).toBe(1);
  });

  it('are validated before they are queued', async () => {
    const { sandbox, queue, startWorker, untilEnded, failures } = open();
    startWorker();
    const invalid = { prompt, duration: 7 as never };
    await expect(queue.videos.create(invalid)).rejects.toBeInstanceOf(PreflightError);
    await expect(queue.images.create({ prompt: '' })).rejects.toMatchObject({ param: 'prompt' });
    await expect(queue.videoEdits.create({ prompt } as never)).rejects.toBeInstanceOf(PreflightError);
    await expect(queue.characters.create({ name: 'a' } as never)).rejects.toBeInstanceOf(PreflightError);
    expect(await queue.queue.getJobCounts()).toMatchObject({ prioritized: 0, waiting: 0, failed: 0 });
    // Without preflight, the service validates the params.
    await queue.videos.create(invalid, { preflight: false });
    await untilEnded();
    expect(failures[0]).toMatchObject({ name: 'BadRequestError', code: 'duration_not_supported' });
    expect(sandbox.requests).toHaveLength(1);
  });

  it('sleep as delayed jobs, not in the worker', async () => {
    const { queue, startWorker, untilAsleep } = open({ jobDurationMs: HOUR_MS });
    startWorker({ concurrency: 1, pollIntervalMs: HOUR_MS });
    await Promise.all(Array.from({ length: 5 }, () => queue.videos.create({ prompt })));
    await untilAsleep(5);
    expect(await queue.queue.getActiveCount()).toBe(0);
  });

  it('wake on a webhook long before their next poll', async () => {
    const { sandbox, queue, startWorker, untilEnded, untilAsleep } = open({ clock: 'manual', jobDurationMs: 1000 });
    startWorker({ pollIntervalMs: HOUR_MS });
    await queue.videos.create({ prompt });
    await untilAsleep();
    await sandbox.advance(1000);
    await queue.wake(eventOf(sandbox));
    await untilEnded();
  });

  it('store a webhook that arrives during a poll, and poll once more', async () => {
    let duringPoll: (() => Promise<void>) | undefined;
    const { sandbox, queue, startWorker, untilEnded, untilAsleep } = open({
      clock: 'manual',
      jobDurationMs: 1000,
      wrap: (fetch) => async (input, init) => {
        const response = await fetch(input, init);
        if (!isCreate(input, init)) await duringPoll?.();
        return response;
      },
    });
    duringPoll = async () => {
      duringPoll = undefined;
      await sandbox.advance(1000);
      await queue.wake(eventOf(sandbox));
    };
    startWorker({ pollIntervalMs: HOUR_MS });
    await queue.videos.create({ prompt });
    await untilAsleep();
    await queue.wake(eventOf(sandbox));
    await untilEnded();
    expect(sandbox.requests.filter((request) => request.method === 'GET')).toHaveLength(2);
  });

  it('store a webhook that arrives before the job ID', async () => {
    const { sandbox, queue, startWorker, untilEnded } = open({
      clock: 'manual',
      jobDurationMs: 1000,
      wrap: (fetch) => async (input, init) => {
        const response = await fetch(input, init);
        if (sandbox.jobs.length === 1 && sandbox.jobs[0]?.status === 'processing') {
          await sandbox.advance(1000);
          await queue.wake(eventOf(sandbox));
        }
        return response;
      },
    });
    startWorker({ pollIntervalMs: HOUR_MS });
    await queue.videos.create({ prompt });
    await untilEnded();
  });

  it('poll after a webhook, so a spurious webhook costs one poll', async () => {
    const { sandbox, queue, startWorker, untilAsleep, record } = open({ jobDurationMs: HOUR_MS });
    startWorker({ pollIntervalMs: HOUR_MS });
    const { id } = await queue.videos.create({ prompt });
    await untilAsleep();
    await queue.wake(eventOf(sandbox));
    await expect.poll(() => sandbox.requests.length).toBe(2);
    await untilAsleep();
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(sandbox.requests).toHaveLength(2);
    expect((await record(id ?? '')).data.jobId).toBe(sandbox.jobs[0]?.id);
  });

  it('survive service and connection failures, and are charged once', async () => {
    const { sandbox, queue, startWorker, untilEnded } = open();
    sandbox.faults.add({ match: { method: 'POST' }, commitThenDrop: true, times: 1 });
    sandbox.faults.add({ match: { method: 'GET' }, status: 500, times: 1 });
    startWorker({ retryDelayMs: 20 });
    await queue.videos.create({ prompt });
    await untilEnded();
    expect(await queue.queue.getCompletedCount()).toBe(1);
    expect(sandbox.jobs).toHaveLength(1);
  });

  it("recover with their rules, or with the worker's", async () => {
    const { sandbox, queue, startWorker, untilEnded, record, keys } = open();
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_unavailable' });
    startWorker({ recover: { generation_timeout: 1 } });
    const recover = { generation_unavailable: { models: ['svc-video-mini'] } };
    await queue.videos.create({ prompt, model: 'svc-video-pro' }, { jobId: 'order-21', recover });
    await untilEnded(1);
    expect((await record('order-21')).returnvalue).toMatchObject({ modelId: 'svc-video-mini', tries: [{}, {}] });
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_timeout' });
    await queue.videos.create({ prompt }, { jobId: 'order-22' });
    await untilEnded(2);
    expect(await queue.queue.getCompletedCount()).toBe(2);
    expect(keys()).toEqual(['order-21', 'order-21:r2', 'order-22', 'order-22:r2']);
  });

  it("are rejected before anything is charged if a recover model doesn't support the params", async () => {
    const { sandbox, queue, startWorker, untilEnded, failures } = open();
    const recover = { generation_failed: { models: ['svc-image-pro'] } };
    const rejected = { name: 'PreflightError', param: 'recover', code: 'model_not_found' };
    await expect(queue.videos.create({ prompt }, { recover })).rejects.toMatchObject(rejected);
    startWorker({ recover });
    await queue.videos.create({ prompt });
    await untilEnded();
    expect(failures).toMatchObject([rejected]);
    expect(sandbox.requests).toEqual([]);
  });

  it("fail with their job's error if the service rejects its replacement", async () => {
    let creates = 0;
    const { sandbox, queue, startWorker, untilEnded, failures } = open({
      wrap: (fetch) => async (input, init) => {
        if (!isCreate(input, init) || ++creates === 1) return fetch(input, init);
        return Response.json({ error: { code: 'insufficient_balance' } }, { status: 402 });
      },
    });
    sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_failed' });
    startWorker({ recover: { generation_failed: 1 } });
    await queue.videos.create({ prompt }, { jobId: 'order-1' });
    await untilEnded();
    expect(failures).toMatchObject([
      { name: 'JobFailedError', code: 'generation_failed', cause: { name: 'InsufficientBalanceError' } },
    ]);
    expect([creates, sandbox.jobs.length]).toEqual([2, 1]);
  });

  it('fail after timeoutMs with the job in the error, and the job continues', async () => {
    const { sandbox, queue, startWorker, untilEnded, failures } = open({ jobDurationMs: HOUR_MS });
    startWorker({ timeoutMs: 100 });
    await queue.videos.create({ prompt });
    await untilEnded();
    const [job] = sandbox.jobs;
    const timedOut = { name: 'WaitTimeoutError', timeoutMs: 100, jobId: job?.id, job: { id: job?.id } };
    expect(failures[0]).toMatchObject(timedOut);
    expect(job?.status).toBe('processing');
  });

  it('send nothing until retryDelayMs after a 503, even if the client has retries', async () => {
    const { sandbox, queue, startWorker, untilAsleep } = open({ client: { maxRetries: 3 } });
    sandbox.faults.add({ match: { method: 'POST' }, status: 503 });
    startWorker({ retryDelayMs: HOUR_MS });
    await queue.images.create({ prompt });
    await untilAsleep();
    expect(sandbox.requests).toHaveLength(1);
  });

  it("accept BullMQ's worker options, such as autorun: false", async () => {
    const { queue, sandbox, startWorker } = open();
    const { worker } = startWorker({ worker: { autorun: false, removeOnComplete: { count: 0 } } });
    void worker.run();
    await queue.videos.create({ prompt });
    await expect.poll(() => sandbox.jobs.length).toBe(1);
  });

  it.each(['', 'a:b', '17', '-17', 17, null, 'delayed', 'über', 'x'.repeat(256)])(
    'are rejected with the ID %j',
    async (jobId) => {
      const { queue } = open();
      await expect(queue.videos.create({ prompt }, { jobId: jobId as never })).rejects.toThrow(/must be/);
      await expect(queue.videos.create({ prompt, idempotency_key: jobId as never })).rejects.toThrow(/must be/);
      expect(await queue.queue.getPrioritizedCount()).toBe(0);
    },
  );

  it.each([
    ['repeat', { every: 1000 }, 'upsertJobScheduler'],
    ['attempts', 1, "don't count as attempts"],
    ['backoff', 10, 'retryDelayMs to createGenWorker'],
  ])('are rejected with the BullMQ option %s, and the error states an alternative', async (name, value, message) => {
    const { queue } = open();
    const requested = queue.videos.create({ prompt }, { [name]: value } as never);
    await expect(requested).rejects.toThrow(`queue.videos.create has no option "${name}"`);
    await expect(requested).rejects.toThrow(message);
    expect(await queue.queue.getPrioritizedCount()).toBe(0);
  });

  it('are rejected with an unknown option, as are queues and workers', async () => {
    const { queue, startWorker, connection } = open();
    await expect(queue.videos.create({ prompt }, { job_id: 'a' } as never)).rejects.toThrow(
      'queue.videos.create has no option "job_id". Did you mean "jobId"?',
    );
    expect(() => startWorker({ onComplete: () => {} } as never)).toThrow('Did you mean "onCompleted"?');
    for (const concurrency of [0, 1.5, Number.POSITIVE_INFINITY, '3'])
      expect(() => startWorker({ concurrency } as never)).toThrow(/^concurrency must be a whole number above 0, not /);
    expect(() => startWorker({ timeoutMs: -1 })).toThrow('timeoutMs must be a number of milliseconds above 0, not -1.');
    expect(() => createGenQueue(connection, { queue: 'x' } as never)).toThrow('createGenQueue has no option "queue"');
  });
});
