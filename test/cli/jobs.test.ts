import { readdirSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { fileStore } from '../../src/adapters/node/index.js';
import type { ClientOptions } from '../../src/client/client-options.js';
import { cliOnSandbox, QUICK } from './cli-on-sandbox.js';
import { runCli } from './run-cli.js';

const fixture = cliOnSandbox();
const { sandbox, cli, pathOf } = fixture;
const NOTHING = { code: 0, stdout: 'Nothing to resume.\n' };
const unfinishedJobs = async () => JSON.parse((await cli('jobs', 'gen.store', '--json')).stdout).jobs;

/** Runs a program that crashes: one create without a response, one running job, and one that fails. */
async function crash(account?: string): Promise<void> {
  const store = fileStore(pathOf('gen.store'));
  const create = account === undefined ? fixture.options.createClient : sandbox.client;
  const client = create({ apiKey: sandbox.apiKey, store, account, maxRetries: 0 });
  sandbox.faults.add({ match: { path: '/v1/images' }, commitThenDrop: true });
  await client.images.create({ prompt: 'a fox' }, { label: 'user-7' }).catch(() => {});
  await client.videos.create({ prompt: 'a hare' });
  await client.images.create({ prompt: 'an owl [fail:generation_rejected]' });
  await store.close();
}

it('jobs lists unfinished creates, without an API key or a service', async () => {
  await crash();
  const { code, stdout } = await runCli(['jobs', 'gen.store'], { env: {}, cwd: fixture.folder });
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /^\S+Z {2}lost {6}images {2}[\w-]+ {2}user-7 {2}a fox\n\S+Z {2}accepted {2}videos {2}job_\w+ {2}a hare\n/,
  );
  const phases = (await unfinishedJobs()).map(({ phase }: { phase: string }) => phase);
  expect(phases).toEqual(['lost', 'accepted', 'accepted']);
});

describe('resume', () => {
  it("completes a crashed program's creates and saves the files, with one job per create", async () => {
    await crash();
    const { code, stdout } = await cli('resume', 'gen.store', '--out', 'out/', '--json', ...QUICK);
    expect(code).toBe(1);
    expect(JSON.parse(stdout).jobs).toHaveLength(3);
    expect(sandbox.jobs).toHaveLength(3);
    expect(readdirSync(pathOf('out'))).toHaveLength(2);
    expect(await cli('resume', 'gen.store', '--out', 'out/')).toMatchObject(NOTHING);
    expect(await unfinishedJobs()).toEqual([]);
  });

  it('requires --account for a program with the account option', async () => {
    await crash('shop');
    // Unlike the fixture's clients, which have their own account, this uses the default one like `gen-client`.
    const options = {
      ...fixture.options,
      createClient: (clientOptions: ClientOptions) => sandbox.client(clientOptions),
    };
    const resume = (...args: string[]) => runCli(['resume', 'gen.store', '--out', 'out/', ...QUICK, ...args], options);
    expect(await resume()).toMatchObject(NOTHING);
    expect(await resume('--account', 'blog')).toMatchObject(NOTHING);
    expect(sandbox.jobs).toHaveLength(3);
    expect((await resume('--account', 'shop')).stdout).toMatch(/job_\w+ {2}completed/);
    expect(readdirSync(pathOf('out'))).toHaveLength(2);
    expect(await unfinishedJobs()).toEqual([]);
  });
});

describe.each(['jobs', 'resume'])('%s', (command) => {
  it("fails with a usage error for a file that is missing or isn't a store", async () => {
    writeFileSync(pathOf('notes.txt'), 'milk\n');
    for (const file of ['none.store', 'notes.txt', '.']) {
      const { code, stderr } = await cli(command, file);
      expect({ file, code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining(file) });
    }
    expect(readdirSync(fixture.folder)).toEqual(['notes.txt']);
  });
});
