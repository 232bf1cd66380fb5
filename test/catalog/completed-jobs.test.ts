import { expect, test } from 'vitest';
import { isCompleted, type Job } from '../../src/index.js';

const job = (fields: Partial<Job>): Job => ({ id: 'job_1', status: 'processing', ...fields });
const LINK = 'https://api.example.test/v1/jobs/job_1/output';

test('a job is completed when its status says so and its file is there', () => {
  expect(isCompleted(job({ status: 'completed', providerOutputUrl: LINK }))).toBe(true);
});

test('a job without a file is not completed, because a completed job has a string as its link', () => {
  expect(isCompleted(job({ status: 'completed', providerOutputUrl: null }))).toBe(false);
  expect(isCompleted(job({ status: 'completed' }))).toBe(false);
});

test('no other job is completed, whatever its link', () => {
  for (const status of ['created', 'queued', 'processing', 'failed', 'canceled', 'blocked', 'Completed', 'rendering']) {
    expect(isCompleted(job({ status, providerOutputUrl: LINK })), status).toBe(false);
  }
});
