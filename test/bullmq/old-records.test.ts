import type { GenJobData } from 'gen-client/bullmq';
import { describe, expect, it } from 'vitest';
import { loadRun } from '../../src/bullmq/stored-run.js';
import type { RunRules } from '../../src/polling/run-state.js';
import { noRedis, queuesOnSandboxes } from './queue-on-sandbox.js';

const prompt = 'a fox at dawn';
const RULES: RunRules = {
  timeoutMs: 86_400_000,
  resubmitPending: true,
  recover: {},
  persistent: true,
  stores: false,
  pollMs: 10_000,
  retryMs: 30_000,
};
/** The step at which a record of version 0.1 is taken up. */
const stepOf = (more: Partial<GenJobData>) =>
  loadRun({ id: 'order-1', data: { call: 'videos', params: { prompt }, ...more } }, RULES).step;

describe('a record that version 0.1 has written', () => {
  it.each<[string, Partial<GenJobData>, object]>([
    ['of a call that was not made', {}, { type: 'create', key: 'order-1' }],
    ['of a running job', { jobId: 'job_1' }, { type: 'read', jobId: 'job_1' }],
    ['of a resubmission', { resubmissions: 2 }, { type: 'create', key: 'order-1:r3' }],
    ['of a resubmission that runs', { resubmissions: 1, jobId: 'job_2' }, { type: 'read', jobId: 'job_2' }],
    [
      'of a refusal: the key that may have been sent comes first',
      { refusals: 2 },
      { type: 'create', key: 'order-1:w2' },
    ],
    ['of both', { resubmissions: 1, refusals: 1 }, { type: 'create', key: 'order-1:r2:w1' }],
    [
      'of a failed job that is tried again',
      { jobId: 'job_1', failure: { name: 'JobFailedError', message: 'no', code: 'generation_timeout' } },
      { type: 'create', key: 'order-1:r2' },
    ],
    [
      'of a reference that was pending for too long',
      {
        jobId: 'job_6',
        resubmissions: 5,
        failure: { name: 'JobFailedError', message: 'no', code: 'reference_asset_pending' },
      },
      { type: 'create', key: 'order-1:r7' },
    ],
    [
      'of a canceled job that is tried again',
      { jobId: 'job_1', failure: { name: 'JobCanceledError', message: 'no' } },
      { type: 'create', key: 'order-1:r2' },
    ],
    [
      'of a refusal that is tried again',
      { failure: { name: 'InsufficientBalanceError', message: 'no', status: 402 } },
      { type: 'create', key: 'order-1:w1' },
    ],
    [
      'of a time-out that is tried again',
      { jobId: 'job_1', failure: { name: 'WaitTimeoutError', message: 'late' } },
      { type: 'read', jobId: 'job_1' },
    ],
    [
      'of a read that was refused',
      { jobId: 'job_1', failure: { name: 'AuthenticationError', message: 'no', status: 401 } },
      { type: 'read', jobId: 'job_1' },
    ],
    [
      'of a call that preflight refused',
      { failure: { name: 'PreflightError', message: 'no', code: 'prompt_required' } },
      { type: 'create', key: 'order-1' },
    ],
    [
      'of a create that got no answer',
      { failure: { name: 'ServerError', message: 'no', status: 503 } },
      { type: 'create', key: 'order-1' },
    ],
  ])('%s goes on where it stood', (_, more, step) => {
    expect(stepOf(more)).toMatchObject(step);
  });
});

describe.skipIf(noRedis !== undefined)('a queue that version 0.1 has filled', () => {
  const { open } = queuesOnSandboxes();

  it('is worked off: no job is lost, and none is made twice', async () => {
    const { sandbox, client, queue, work, ended, keys } = open();
    const running = await client.videos.create({ prompt }, { idempotencyKey: 'order-1' });
    const accepted = await client.videos.create({ prompt }, { idempotencyKey: 'order-2:w1' });
    const add = (id: string, more: Partial<GenJobData>, delay = 0) =>
      queue.queue.add('videos', { call: 'videos', params: { prompt }, ...more }, { jobId: id, delay });
    await add('order-1', { jobId: running.job.id }, 100);
    // Accepted, and killed before its id was stored.
    await add('order-2', { refusals: 1 }, 100);
    await add('order-3', {});
    work();
    await ended(3);
    expect(await queue.queue.getCompletedCount()).toBe(3);
    expect(sandbox.jobs).toHaveLength(3);
    expect(keys()).toEqual(['order-1', 'order-2:w1', 'order-3', 'order-2:w1']);
    expect((await queue.queue.getJob('order-2'))?.returnvalue.id).toBe(accepted.job.id);
  });
});
