// The uploads of a batch that crashed before the service accepted its jobs.
import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { dimensionsFor, renderMedia } from '../../src/sandbox/media/index.js';
import { cliOnSandbox } from './cli-on-sandbox.js';

const image = { kind: 'image', ...dimensionsFor({ kind: 'image' }), seed: 1, label: 'fox', prompt: 'a fox' } as const;
const place = cliOnSandbox({ 'fox.png': renderMedia(image) });
const { sandbox, cli, start } = place;
const WORDS = ['batch', 'p.jsonl', '--poll', '100ms', '--out'];
const created = (path: string) => sandbox.requests.filter((it) => it.method === 'POST' && it.path === path);

/** Runs two rows with one file, and copies the batch's directory while the service is down, as a crash leaves it. */
async function crashed(own: object = {}): Promise<void> {
  const row = { call: 'images', reference_upload_ids: ['fox.png'] };
  const rows = [
    { ...row, prompt: 'a fox', ...own },
    { ...row, prompt: 'two foxes' },
  ];
  writeFileSync(join(place.folder, 'p.jsonl'), rows.map((it) => JSON.stringify(it)).join('\n'));
  const down = sandbox.faults.add({ match: { method: 'POST', path: '/v1/images' }, reset: true, times: 99 });
  const run = start(...WORDS, 'out/', '--concurrency', '1');
  await expect.poll(() => created('/v1/images').length, { timeout: 10_000, interval: 5 }).toBeGreaterThan(0);
  cpSync(join(place.folder, 'out'), join(place.folder, 'copy'), { recursive: true });
  run.interrupt();
  await run.ended;
  sandbox.faults.remove(down);
  expect([created('/v1/uploads').length, sandbox.jobs.length]).toEqual([1, 0]);
}

const uploadId = () =>
  sandbox.requests
    .findLast((it) => it.path.startsWith('/storage/'))
    ?.path.split('/')
    .at(-1);

describe('the next run of a batch that crashed', () => {
  it('uses its upload, also for other rows with the file', async () => {
    await crashed();
    expect(await cli(...WORDS, 'copy/')).toMatchObject({ code: 0, stderr: '' });
    expect([created('/v1/uploads').length, sandbox.jobs.length]).toEqual([1, 2]);
  });

  it('uploads the file again if the upload is gone', async () => {
    await crashed();
    const headers = { authorization: `Bearer ${sandbox.apiKey}` };
    await sandbox.fetch(`${sandbox.baseUrl}/v1/uploads/${uploadId()}`, { method: 'DELETE', headers });
    expect(await cli(...WORDS, 'copy/')).toMatchObject({ code: 0 });
    expect([created('/v1/uploads').length, sandbox.jobs.length]).toEqual([2, 2]);
  });

  it("uploads the file again for a row's own key, which doesn't change with the file", async () => {
    await crashed({ idempotency_key: 'fox' });
    expect(await cli(...WORDS, 'copy/')).toMatchObject({ code: 0 });
    expect([created('/v1/uploads').length, sandbox.jobs.length]).toEqual([2, 2]);
  });
});
