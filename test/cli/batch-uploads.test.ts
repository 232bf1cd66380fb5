// The uploads of a batch that crashed before the service accepted its jobs.
import { cpSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { batchOn, cliOnSandbox, FOX_PNG, QUICK } from './cli-on-sandbox.js';

const fixture = cliOnSandbox({ 'fox.png': FOX_PNG });
const { sandbox, cli, start, pathOf } = fixture;
const { prompts } = batchOn(fixture);
const ARGS = ['batch', 'prompts.jsonl', ...QUICK, '--out'];
const posts = (path: string) =>
  sandbox.requests.filter((request) => request.method === 'POST' && request.path === path);

/** Runs two rows with one file, and copies the batch's directory while the service is down, as after a crash. */
async function crash(fields: object = {}): Promise<void> {
  const row = { call: 'images', reference_upload_ids: ['fox.png'] };
  prompts({ ...row, prompt: 'a fox', ...fields }, { ...row, prompt: 'two foxes' });
  const outage = sandbox.faults.add({ match: { method: 'POST', path: '/v1/images' }, reset: true, times: 99 });
  const run = start(...ARGS, 'out/', '--concurrency', '1');
  await expect.poll(() => posts('/v1/images').length, { timeout: 10_000, interval: 5 }).toBeGreaterThan(0);
  cpSync(pathOf('out'), pathOf('copy'), { recursive: true });
  run.interrupt();
  await run.ended;
  sandbox.faults.remove(outage);
  expect([posts('/v1/uploads').length, sandbox.jobs.length]).toEqual([1, 0]);
}

const uploadId = () =>
  sandbox.requests
    .findLast((request) => request.path.startsWith('/storage/'))
    ?.path.split('/')
    .at(-1);

describe('the next run of a batch that crashed', () => {
  it('reuses its upload, including for other rows with the file', async () => {
    await crash();
    expect(await cli(...ARGS, 'copy/')).toMatchObject({ code: 0, stderr: '' });
    expect([posts('/v1/uploads').length, sandbox.jobs.length]).toEqual([1, 2]);
  });

  it('uploads the file again if the upload was deleted', async () => {
    await crash();
    const headers = { authorization: `Bearer ${sandbox.apiKey}` };
    await sandbox.fetch(`${sandbox.baseUrl}/v1/uploads/${uploadId()}`, { method: 'DELETE', headers });
    expect(await cli(...ARGS, 'copy/')).toMatchObject({ code: 0 });
    expect([posts('/v1/uploads').length, sandbox.jobs.length]).toEqual([2, 2]);
  });

  it("uploads the file again for a row's own idempotency key, which doesn't change with the file", async () => {
    await crash({ idempotency_key: 'fox' });
    expect(await cli(...ARGS, 'copy/')).toMatchObject({ code: 0 });
    expect([posts('/v1/uploads').length, sandbox.jobs.length]).toEqual([2, 2]);
  });
});
