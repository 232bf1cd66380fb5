import { GenClient } from 'gen-client';
import { expect, it } from 'vitest';

it.each([
  ['a job', { id: 'job_1', status: 'processing' }, 'not an object. Pass its id'],
  ['a promise', Promise.resolve('job_1'), 'not a promise. Await it'],
  ['undefined', undefined, 'not undefined'],
  ['an empty string', '', 'not an empty one'],
])('an ID that is %s is rejected with a hint', async (_name, id, hint) => {
  const fetch = () => Promise.reject(new Error('nothing is sent'));
  const client = new GenClient({ apiKey: 'key', baseUrl: 'https://service.test', fetch, maxRetries: 0 });
  await expect(client.jobs.get(id as string)).rejects.toThrow(`An ID must be a non-empty string, ${hint}.`);
});
