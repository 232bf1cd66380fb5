// Tests an app that creates a client: over HTTP, without mocks, and without waiting.
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

test('creates one poster per film', async () => {
  const first = await makePoster(7, 'a paper boat');
  expect(await makePoster(7, 'a paper boat')).toBe(first);
  expect(sandbox.jobs).toHaveLength(1);
});

test('returns the reason for a rejected prompt', async () => {
  sandbox.outcomes.next({ status: 'failed', errorCode: 'generation_rejected' });
  expect(await makePoster(8, 'something forbidden')).toBe('no poster: change_request');
});
