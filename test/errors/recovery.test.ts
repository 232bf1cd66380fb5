import { describe, expect, it, test } from 'vitest';
import type { Recovery } from '../../src/errors/codes.js';
import * as gen from '../../src/index.js';

const jobId = 'job_1';
const job = { id: jobId, status: 'failed', errorCode: 'generation_rejected' };
const api = {
  status: 400,
  code: 'http_400',
  recovery: 'change_request',
  method: 'POST',
  url: 'https://a.test',
} as const;

/** Errors of every class whose recovery doesn't come from the service's code. */
const ERRORS: readonly (readonly [Recovery, gen.GenError])[] = [
  ['fix_setup', new gen.GenError('an option is wrong')],
  ['change_request', new gen.PreflightError('no', { code: 'prompt_required', param: 'prompt' })],
  ['retry', new gen.ConnectionError('no')],
  ['retry', new gen.TimeoutError('no')],
  ['retry', new gen.ResponseError('no')],
  ['wait_again', new gen.WaitTimeoutError('no', { jobId, timeoutMs: 1 })],
  ['change_request', new gen.JobFailedError('no', { job })],
  ['none', new gen.JobCanceledError('no', { job: { id: jobId, status: 'canceled' } })],
  ['none', new gen.JobBlockedError('no', { job: { id: jobId, status: 'blocked' } })],
  [
    'top_up',
    new gen.BudgetExceededError('no', {
      estimateTokens: 1,
      leftTokens: 0,
      resetsAt: null,
      scope: 'all',
      reason: 'spent',
    }),
  ],
  ['retry', new gen.UploadError('no', { step: 'put' })],
  ['change_reference', new gen.UploadError('no', { step: 'prepare' })],
  ['change_request', new gen.UploadError('no', { step: 'create', cause: new gen.BadRequestError('no', api) })],
  ['retry', new gen.DownloadError('no', { jobId, code: 'interrupted' })],
  ['wait_again', new gen.DownloadError('no', { jobId, code: 'job_not_finished' })],
  ['none', new gen.DownloadError('no', { jobId, code: 'output_expired' })],
  ['fix_setup', new gen.DownloadError('no', { jobId, code: 'cannot_write' })],
  ['retry', new gen.StorageError('no', { code: 'SlowDown', status: 503, store: 's3' })],
  ['fix_credentials', new gen.StorageError('no', { code: 'AccessDenied', status: 403, store: 's3' })],
  ['change_request', new gen.StorageError('no', { code: 'object_exists', store: 's3' })],
  ['none', new gen.WebhookVerificationError('no', { reason: 'signature_mismatch' })],
  ['fix_setup', new gen.WebhookVerificationError('no', { reason: 'secret_missing' })],
];

describe('every error has a recovery', () => {
  test.each(ERRORS.map(([recovery, error]) => [error.name, recovery, error] as const))(
    '%s has the recovery %s',
    (_name, recovery, error) => {
      expect(error.recovery).toBe(recovery);
      expect(error.toJSON().recovery).toBe(recovery);
    },
  );

  test('the table contains every exported error class with a recovery of its own', () => {
    const classes = Object.values(gen).filter(
      (value) => typeof value === 'function' && (value === gen.GenError || value.prototype instanceof gen.GenError),
    );
    // The recovery of these depends on the code: see request-errors and job-errors.
    const dependsOnCode = (value: unknown) =>
      value === gen.JobError || value === gen.APIError || Object.getPrototypeOf(value) === gen.APIError;
    const tested = new Set<unknown>(ERRORS.map(([, error]) => error.constructor));
    expect(classes.filter((value) => !tested.has(value) && !dependsOnCode(value))).toEqual([]);
  });
});

it('extra returns undocumented fields of a result', () => {
  const result = { ...job, queue_position: 3 };
  expect(gen.extra(result).queue_position).toBe(3);
  expect(gen.extra(result).other_field).toBeUndefined();
});
