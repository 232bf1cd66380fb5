// Jest with CommonJS and no configuration: the test in docs/testing.md, and a test that leaves a wait pending.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { NODE } from './nodes.js';
import { type Context, execute, type Suite, tool } from './suite.js';

/** Maximum duration of a test that creates a job and waits for it. */
const MAX_MS = 200;
const REPEATS = 8;

const VIDEO = `
const { createSandbox } = require('gen-client/sandbox');

test('creates a video', async () => {
  const client = createSandbox().client();
  const job = await client.videos.createAndWait({ prompt: 'a fox at dawn' });
  expect(job.status).toBe('completed');
});`;

const PENDING = `
const { createSandbox } = require('gen-client/sandbox');
test('leaves a wait pending', async () => {
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

async function runInJest({ project }: Context): Promise<void> {
  const app = join(project, 'jest-app');
  mkdirSync(app, { recursive: true });
  writeFileSync(join(app, 'package.json'), '{ "name": "jest-app", "private": true }');
  const [head = '', ...body] = VIDEO.split(/(?=^test\()/m);
  writeFileSync(join(app, 'guide.test.js'), head + body.join('').repeat(REPEATS));
  writeFileSync(join(app, 'pending.test.js'), PENDING);
  // Jest exits without --forceExit. `execute` kills a process that hangs.
  const output = await execute(NODE, [tool('jest'), '--ci', '--json', '--rootDir', app], app);
  const report = JSON.parse(output) as Report;
  const tests = report.testResults.flatMap(({ assertionResults }) => assertionResults);
  assert.ok(report.success, output);
  assert.equal(tests.length, REPEATS + 1);
  // The fastest test, because the machine may be busy.
  const fastestMs = Math.min(
    ...tests.filter(({ title }) => title === 'creates a video').map(({ duration }) => duration),
  );
  assert.ok(fastestMs <= MAX_MS, `the fastest test took ${fastestMs} ms`);
}

export const suites: Suite[] = [{ name: 'Jest, CommonJS', run: runInJest }];
