// What a wait ends with: the job, or an error that says how the job ended and what to do about it.
import { describe, expect, it } from 'vitest';
import { JobBlockedError, JobCanceledError, JobFailedError, WaitTimeoutError } from '../../src/errors/index.js';
import type { Job } from '../../src/schemas/job.js';
import { outcomeOf, timedOut } from '../../src/waiting/wait.js';

const job = (fields: object) => ({ id: 'job_1', ...fields }) as Job;

describe('a job that ended', () => {
  it.each([
    [{ status: 'failed' }, JobFailedError, 'Job job_1 failed.'],
    [{ status: 'canceled' }, JobCanceledError, 'Job job_1 was canceled.'],
    [{ status: 'blocked', errorMessage: 'No.' }, JobBlockedError, 'Job job_1 was blocked (No.).'],
    [{ status: 'failed', errorCode: 'x' }, JobFailedError, 'Job job_1 failed (x).'],
    [
      { status: 'failed', errorCode: 'reference_rejected', errorMessage: 'A face' },
      JobFailedError,
      'Job job_1 failed (reference_rejected: A face). Use another reference.',
    ],
    [
      { status: 'failed', errorCode: 'generation_rejected' },
      JobFailedError,
      'Job job_1 failed (generation_rejected). Change the prompt, references or options.',
    ],
    [
      { status: 'failed', errorCode: 'reference_asset_pending' },
      JobFailedError,
      'Job job_1 failed (reference_asset_pending). Wait errorData.retry_after seconds and send it again under a new idempotency key.',
    ],
    [
      { status: 'failed', errorCode: 'generation_timeout' },
      JobFailedError,
      'Job job_1 failed (generation_timeout). Send it again under a new idempotency key.',
    ],
    [
      { status: 'failed', errorCode: 'generation_unavailable' },
      JobFailedError,
      'Job job_1 failed (generation_unavailable). Try again later or with another model.',
    ],
  ])('%j throws its error, which says: %s %s', (fields, Class, message) => {
    const ended = job(fields);
    const thrown = (() => {
      try {
        return outcomeOf(ended);
      } catch (error) {
        return error;
      }
    })();
    expect(thrown).toBeInstanceOf(Class);
    expect(thrown).toMatchObject({ message, job: ended });
    expect(outcomeOf(ended, false)).toBe(ended);
  });

  it('completed is the result', () => {
    const ended = job({ status: 'completed' });
    expect(outcomeOf(ended)).toBe(ended);
  });
});

it.each([
  [undefined, 'it could not be read'],
  [job({ status: 'processing' }), 'it was processing when last read'],
  [job({ status: 'completed' }), 'it was completed when last read, but had no providerOutputUrl'],
])('a wait whose time is over says of the job that %j', (last, state) => {
  const cause = new Error('away');
  const error = timedOut({ id: 'job_1', job: last, timeoutMs: 500, cause });
  expect(error).toBeInstanceOf(WaitTimeoutError);
  expect(error).toMatchObject({
    message: `Job job_1 did not end within 500 ms (${state}). The job goes on: wait for it again, or raise timeoutMs.`,
    jobId: 'job_1',
    job: last,
    timeoutMs: 500,
    cause,
  });
});
