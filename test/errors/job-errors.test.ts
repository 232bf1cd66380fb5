import { describe, expect, it } from 'vitest';
import { GenError, type Job, JobBlockedError, JobCanceledError, JobError, JobFailedError } from '../../src/index.js';
import jobFailed from '../fixtures/bodies/job-failed.json' with { type: 'json' };
import jobErrors from '../fixtures/job-errors.json' with { type: 'json' };
import { json, rejection, stubbed } from '../transport/support.js';

/** Returns the error that waiting for a final job throws. */
async function ended(job: Job): Promise<JobError> {
  const { client, requests } = stubbed(() => json({}));
  const error = await rejection(client.waitForJob(job));
  expect(requests).toEqual([]);
  if (!JobError.isInstance(error)) throw error;
  return error;
}

describe('a failed job', () => {
  it.each(jobErrors)('$code has the recovery $recovery', async ({ code, recovery, condition }) => {
    const job = {
      id: 'job_1',
      status: 'failed',
      errorCode: code,
      errorMessage: condition,
      errorData: { retry_after: 5 },
    };
    const error = await ended(job);
    expect(error).toBeInstanceOf(JobFailedError);
    expect(error).toMatchObject({ name: 'JobFailedError', code, recovery, data: { retry_after: 5 }, job });
    expect(error.message).toContain(condition.replace(/\.$/, ''));
    // Under the same key, the service would return the failed job again.
    const isSentAgain = ['wait_and_retry', 'retry_with_new_key', 'retry_later'].includes(recovery);
    expect(error.message.includes('under a new idempotency key')).toBe(isSentAgain);
  });

  it('matches the fixture', async () => {
    expect(await ended(jobFailed.data.job)).toMatchObject({
      code: 'reference_asset_pending',
      recovery: 'wait_and_retry',
      data: { retry_after: 30 },
    });
  });

  it('retains an unknown code, and works without one', async () => {
    expect(await ended({ id: 'j', status: 'failed', errorCode: 'moon_phase_wrong' })).toMatchObject({
      code: 'moon_phase_wrong',
      recovery: 'none',
    });
    expect(await ended({ id: 'j', status: 'failed', errorCode: null, errorMessage: null })).toMatchObject({
      code: undefined,
      recovery: 'none',
    });
    expect((await ended({ id: 'j', status: 'failed' })).message).toContain('j');
  });
});

describe('a job that ended without a failure', () => {
  it.each([
    ['canceled', JobCanceledError],
    ['blocked', JobBlockedError],
  ] as const)('%s has its own class', async (status, Class) => {
    const error = await ended({ id: 'j', status });
    expect(error).toBeInstanceOf(Class);
    expect(JobFailedError.isInstance(error)).toBe(false);
    expect(GenError.isInstance(error)).toBe(true);
  });
});
