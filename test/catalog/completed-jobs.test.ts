import { expect, test } from 'vitest';
import { isCompleted, type Job } from '../../src/index.js';

const job = (fields: Partial<Job>): Job => ({ id: 'job_1', status: 'processing', ...fields });
const LINK = 'https://api.example.test/v1/jobs/job_1/output';

test("a job is completed if it has the status and a file, because a completed job's link is a string", () => {
  expect(isCompleted(job({ status: 'completed', providerOutputUrl: LINK }))).toBe(true);
  expect(isCompleted(job({ status: 'completed', providerOutputUrl: null }))).toBe(false);
  expect(isCompleted(job({ status: 'completed' }))).toBe(false);
  for (const status of ['created', 'queued', 'processing', 'failed', 'canceled', 'blocked', 'Completed', 'rendering']) {
    expect(isCompleted(job({ status, providerOutputUrl: LINK })), status).toBe(false);
  }
});
