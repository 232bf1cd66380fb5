// Jest with CommonJS and no configuration: the test in docs/testing.md, and a wait that never ends.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Context, execute, type Suite, tool } from './suite.js';

const NODE = fileURLToPath(new URL('../../node_modules/.bin/node', import.meta.url));

/** Maximum duration of a test that creates a job and waits for it. */
const MAX_MS = 200;
const REPEATS = 8;

const VIDEO = `
const { createSandbox } = require('gen-client/sandbox');

test('a video is made', async () => {
  const client = createSandbox().client();
  const job = await client.videos.createAndWait({ prompt: 'a fox at dawn' });
  expect(job.status).toBe('completed');
});`;

const PENDING = `
const { createSandbox } = require('gen-client/sandbox');
test('a wait is left pending', async () => {
  const client = createSandbox({ clock: 'manual' }).client();
  client.videos.createAndWait({ prompt: 'a fox' });
  const { job } = await client.videos.create({ prompt: 'a fox' });
  client.waitForJob(job);
  expect(job.status).toBe('processing');
});`;

interface Report {
  readonly success: boolean;
  readonly testResults: readonly { readonly assertionResults: readonly { title: string; duration: number }[] }[];
}

async function inJest({ project }: Context): Promise<void> {
  const app = join(project, 'jest-app');
  mkdirSync(app, { recursive: true });
  writeFileSync(join(app, 'package.json'), '{ "name": "jest-app", "private": true }');
  const [head = '', ...body] = VIDEO.split(/(?=^test\()/m);
  const again = Array.from({ length: REPEATS }, () => body.join(''));
  writeFileSync(join(app, 'guide.test.js'), head + again.join(''));
  writeFileSync(join(app, 'pending.test.js'), PENDING);
  // Must exit without --forceExit. `execute` kills a process that hangs.
  const reported = await execute(NODE, [tool('jest'), '--ci', '--json', '--rootDir', app], app);
  const report = JSON.parse(reported) as Report;
  const tests = report.testResults.flatMap(({ assertionResults }) => assertionResults);
  if (!report.success || tests.length !== REPEATS + 1) throw new Error(reported);
  // Uses the fastest test, because the machine may be busy.
  const fastest = Math.min(...tests.filter(({ title }) => title === 'a video is made').map(({ duration }) => duration));
  if (!(fastest <= MAX_MS)) throw new Error(`the fastest test took ${fastest} ms`);
}

export const suites: Suite[] = [{ name: 'Jest, CommonJS', run: inJest }];
