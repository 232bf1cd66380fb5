import { execFile } from 'node:child_process';
import { readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { VERSION } from '../../src/runtime/version.js';
import { createSandbox } from '../../src/sandbox/index.js';
import { describeMp4 } from '../sandbox-doors/mp4-boxes.js';
import { ROOT } from '../support/build.js';
import { type Consumer, createConsumer } from '../support/consumer.js';

const run = promisify(execFile);
let consumer: Consumer;
beforeAll(async () => {
  consumer = await createConsumer();
}, 240_000);
afterAll(() => consumer?.remove());
const path = `${join(ROOT, 'node_modules/.bin')}:${process.env.PATH}`;

it('the installed package brings the bin, which npx finds', async () => {
  const { stdout } = await run('npx', ['--no-install', 'gen-client', '--version'], {
    cwd: consumer.folder,
    env: { ...process.env, PATH: path },
  });
  expect(stdout.trim()).toBe(VERSION);
  // It is the consumer's own, and not one that npx has found further up.
  expect(realpathSync(join(consumer.folder, 'node_modules/.bin/gen-client'))).toBe(
    join(realpathSync(consumer.folder), 'node_modules/gen-client/dist/cli.js'),
  );
});

it('the example script makes a picture and a video of it, and pays for the video once when it runs twice', async () => {
  const sandbox = createSandbox({ jobDurationMs: 0 });
  const server = await sandbox.listen();
  const env = {
    ...process.env,
    PATH: path,
    GEN_API_KEY: sandbox.apiKey,
    GEN_BASE_URL: server.url,
  };
  const script = join(ROOT, 'examples/command-line.sh');
  const { stdout } = await run('sh', [script], { cwd: consumer.folder, env });
  expect(stdout).toMatch(/boat\.png {2}[\d.]+ MB\njob_\w+: 15 tokens\n$/);
  expect(describeMp4(readFileSync(join(consumer.folder, 'boat.mp4'))).seconds).toBe(5);
  await run('rm', ['boat.png'], { cwd: consumer.folder });
  await run('sh', [script], { cwd: consumer.folder, env });
  expect(sandbox.jobs.map(({ kind }) => kind).sort()).toEqual(['image', 'image', 'video']);
  expect(sandbox.ledger().entries.filter(({ type }) => type === 'charge')).toHaveLength(3);
  await server.close();
});
