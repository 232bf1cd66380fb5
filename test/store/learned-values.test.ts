import { expect, test } from 'vitest';
import { accountFor } from '../../src/store/account.js';
import { JobDurations, LearnedValues } from '../../src/store/learned-values.js';
import { BASE_URL, created, freshKey, json, stubbed } from '../transport/support.js';

test('LearnedValues retains the last thousand values', () => {
  const values = new LearnedValues<number>();
  for (let at = 0; at < 1_001; at++) values.learn(`price ${at}`, at);
  expect([values.get('price 0'), values.get('price 1'), values.get('price 1000')]).toEqual([undefined, 1, 1_000]);
});

test("JobDurations estimates a job's duration from jobs of its class", () => {
  const durations = new JobDurations();
  durations.created('job_1', { call: 'videos', model: 'svc-video-fast', duration: 5 });
  const name = durations.classOf('job_1') ?? '';
  expect([name === '', durations.classOf('job_2'), durations.expectedMs(name)]).toEqual([false, undefined, undefined]);
  for (const ms of [40_000, 50_000, 60_000]) durations.learn(name, ms);
  expect(durations.expectedMs(name)).toBe(50_000);
});

test.each(['completed', 'failed', 'canceled'])('JobDurations removes a job that is %s', async (status) => {
  const apiKey = freshKey();
  const steps = [() => json(created()), () => json({ data: { job: { id: 'job_1', status } } })];
  const { client } = stubbed(steps, { apiKey });
  const { durations } = accountFor(BASE_URL, apiKey).learned;
  await client.videos.create({ prompt: 'a fox at dawn' });
  expect(durations.classOf('job_1')).toBeDefined();
  await client.jobs.get('job_1');
  expect(durations.classOf('job_1')).toBeUndefined();
});
