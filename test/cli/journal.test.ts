import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { fileJournal } from '../../src/adapters/node/index.js';
import { cliOnSandbox } from './cli-on-sandbox.js';

const place = cliOnSandbox();
const { sandbox, cli } = place;
const QUICK = ['--poll', '100ms'];
/** A program that has crashed: one create without an answer, one job that runs, one that fails. */
async function crash(): Promise<void> {
  const client = sandbox.client({ journal: fileJournal(join(place.folder, 'jobs.jsonl')), maxRetries: 0 });
  sandbox.faults.add({ match: { path: '/v1/images' }, commitThenDrop: true });
  await client.images.create({ prompt: 'a fox' }, { label: 'user-7' }).catch(() => {});
  await client.videos.create({ prompt: 'a hare' });
  await client.images.create({ prompt: 'an owl [fail:generation_rejected]' });
}

describe('jobs', () => {
  it('lists a journal without a key and a service', async () => {
    await crash();
    const { code, stdout } = await cli('jobs', 'jobs.jsonl');
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^\S+Z {2}open {6}images {2}user-7 {2}a fox\n\S+Z {2}accepted {2}videos {2}job_\w+ {2}15 tokens {2}a hare\n/,
    );
    const { jobs } = JSON.parse((await cli('jobs', 'jobs.jsonl', '--json')).stdout);
    expect(jobs.map(({ state }: { state: string }) => state)).toEqual(['open', 'accepted', 'accepted']);
    expect((await cli('jobs', 'none.jsonl')).stdout).toBe('The journal is empty.\n');
  });
});

describe('resume', () => {
  it('ends what a journal has left open and saves the files: one job for each create', async () => {
    await crash();
    const { code, stdout } = await cli('resume', 'jobs.jsonl', '--out', 'out/', '--json', ...QUICK);
    expect(code).toBe(1);
    const { jobs } = JSON.parse(stdout);
    expect(jobs).toHaveLength(3);
    expect(sandbox.jobs).toHaveLength(3);
    expect(readdirSync(join(place.folder, 'out'))).toHaveLength(2);
    expect(await cli('resume', 'jobs.jsonl', '--out', 'out/')).toMatchObject({
      code: 0,
      stdout: 'Nothing is left to do.\n',
    });
    const listed = JSON.parse((await cli('jobs', 'jobs.jsonl', '--json')).stdout).jobs;
    expect(listed.map(({ state }: { state: string }) => state)).toEqual(['stored', 'stored', 'failed']);
  });

  it('takes a file that was saved before a crash for saved', async () => {
    await crash();
    await cli('resume', 'jobs.jsonl', '--out', 'out/', ...QUICK);
    const path = join(place.folder, 'jobs.jsonl');
    const lines = readFileSync(path, 'utf8').split('\n');
    writeFileSync(path, lines.filter((entry) => !entry.includes('"stored"')).join('\n'));
    const { jobs } = JSON.parse((await cli('resume', 'jobs.jsonl', '--out', 'out/', '--json', ...QUICK)).stdout);
    expect(jobs.map(({ file }: { file: { existed: boolean } }) => file.existed)).toEqual([true, true]);
  });

  it('names a journal that cannot be read', async () => {
    const { code, stderr } = await cli('resume', '.');
    expect({ code, stderr }).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/The journal ".*" could not be read/),
    });
  });
});
