// Tests of an app that creates its own client: real HTTP, no mocks, and no waiting.
import { createSandbox } from 'gen-client/sandbox';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { makePoster } from './poster.js';

const sandbox = createSandbox({ jobDurationMs: 0 }); // a job ends before its create returns
let service: { url: string; close(): Promise<void> };

beforeAll(async () => {
  service = await sandbox.listen();
  vi.stubEnv('GEN_BASE_URL', service.url);
  vi.stubEnv('GEN_API_KEY', sandbox.apiKey);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await service.close();
});

test('a film has one poster, however often it is asked for', async () => {
  const first = await makePoster(7, 'a paper boat');
  expect(await makePoster(7, 'a paper boat')).toBe(first);
  expect(sandbox.jobs).toHaveLength(1);
});

test('a prompt that is refused is to be changed', async () => {
  sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_rejected' });
  expect(await makePoster(8, 'something forbidden')).toBe('no poster: change_request');
});
