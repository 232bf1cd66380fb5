import { readdirSync, writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { cliOnSandbox, QUICK } from './cli-on-sandbox.js';

const fixture = cliOnSandbox();
const { sandbox, cli, start } = fixture;

it('Ctrl-C during a wait prints a command that continues the wait', async () => {
  const run = start('video', 'a [slow:2s]', '--out', 'fox.mp4', ...QUICK);
  await run.shows('processing');
  run.interrupt();
  const { code, stdout, stderr } = await run.ended;
  expect({ code, stdout }).toEqual({ code: 130, stdout: '' });
  const [, args = ''] = /Interrupted\. Job job_\w+ continues\. .* with: gen-client (.*)\n$/.exec(stderr) ?? [];
  expect(args).toMatch(/^wait job_\w+ --out fox\.mp4$/);
  expect((await cli(...args.split(' '), ...QUICK)).code).toBe(0);
  expect(readdirSync(fixture.folder)).toEqual(['fox.mp4']);
  expect(sandbox.jobs).toHaveLength(1);
});

it('Ctrl-C before the response prints the idempotency key that resumes the create without a second charge', async () => {
  sandbox.faults.add({ match: { path: '/v1/videos' }, commitThenDrop: true });
  sandbox.faults.add({ match: { path: '/v1/videos' }, latencyMs: 60_000, times: 9 });
  const run = start('video', 'a', ...QUICK);
  // The service drops the first response after the commit, and the second attempt hangs.
  await expect.poll(() => sandbox.requests.length, { timeout: 10_000 }).toBe(2);
  run.interrupt();
  const { code, stderr } = await run.ended;
  expect(code).toBe(130);
  const [, key = ''] = /--idempotency-key ([\w-]+)/.exec(stderr) ?? [];
  sandbox.faults.clear();
  expect((await cli('video', 'a', '--idempotency-key', key, ...QUICK)).code).toBe(0);
  expect(sandbox.jobs).toHaveLength(1);
});

it('Ctrl-C during an upload reports that nothing was created', async () => {
  sandbox.faults.add({ match: { method: 'POST', path: '/v1/uploads' }, latencyMs: 60_000 });
  writeFileSync(fixture.pathOf('fox.png'), Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'));
  const run = start('video', 'a', '--image', 'fox.png');
  await expect.poll(() => sandbox.requests.length, { timeout: 10_000 }).toBe(1);
  run.interrupt();
  const stderr = expect.stringMatching(/Interrupted\. Nothing was created\.\n$/);
  expect(await run.ended).toMatchObject({ code: 130, stderr });
  expect(sandbox.jobs).toEqual([]);
});

it('Ctrl-C with --json prints one JSON document with the command that continues', async () => {
  const run = start('video', 'a [slow:60s]', '--json', ...QUICK);
  await expect.poll(() => sandbox.requests.some(({ method }) => method === 'GET'), { timeout: 10_000 }).toBe(true);
  run.interrupt();
  const { code, stdout, stderr } = await run.ended;
  expect({ code, stderr }).toEqual({ code: 130, stderr: '' });
  const message = expect.stringContaining('gen-client wait');
  expect(JSON.parse(stdout).error).toMatchObject({ name: 'Interrupted', message });
});
