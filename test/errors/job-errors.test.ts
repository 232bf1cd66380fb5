import { describe, expect, it } from 'vitest';
import { GenError, type Job, JobBlockedError, JobCanceledError, JobError, JobFailedError } from '../../src/index.js';
import jobFailed from '../fixtures/bodies/job-failed.json' with { type: 'json' };
import jobErrors from '../fixtures/job-errors.json' with { type: 'json' };
import { json, rejection, stubbed } from '../transport/support.js';

/** Returns the error that a wait for a final job throws. */
async function errorOfWait(job: Job): Promise<JobError> {
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
    const error = await errorOfWait(job);
    expect(error).toBeInstanceOf(JobFailedError);
    expect(error).toMatchObject({ name: 'JobFailedError', code, recovery, data: { retry_after: 5 }, job });
    expect(error.message).toContain(condition.replace(/\.$/, ''));
    // Under the same key, the service would return the failed job again.
    const isRetryable = ['wait_and_retry', 'retry_with_new_key', 'retry_later'].includes(recovery);
    expect(error.message.includes('under a new idempotency key')).toBe(isRetryable);
  });

  it('is recognized in the documented form', async () => {
    expect(await errorOfWait(jobFailed.data.job)).toMatchObject({
      code: 'reference_asset_pending',
      recovery: 'wait_and_retry',
      data: { retry_after: 30 },
    });
  });

  it('may have an unknown code, or none', async () => {
    expect(await errorOfWait({ id: 'j', status: 'failed', errorCode: 'moon_phase_wrong' })).toMatchObject({
      code: 'moon_phase_wrong',
      recovery: 'none',
    });
    expect(await errorOfWait({ id: 'j', status: 'failed', errorCode: null, errorMessage: null })).toMatchObject({
      code: undefined,
      recovery: 'none',
    });
    expect((await errorOfWait({ id: 'j', status: 'failed' })).message).toContain('j');
  });
});

describe('a job that did not fail', () => {
  it.each([
    ['canceled', JobCanceledError],
    ['blocked', JobBlockedError],
  ] as const)('but was %s has its own error class', async (status, Class) => {
    const error = await errorOfWait({ id: 'j', status });
    expect(error).toBeInstanceOf(Class);
    expect(JobFailedError.isInstance(error)).toBe(false);
    expect(GenError.isInstance(error)).toBe(true);
  });
});
