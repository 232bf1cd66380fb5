// Jest with CommonJS and no configuration: the test of docs/testing.md, and a wait that nobody ends.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Context, execute, type Suite } from './suite.js';

const NODE = fileURLToPath(new URL('../../node_modules/.bin/node', import.meta.url));
const JEST = fileURLToPath(new URL('./node_modules/jest/bin/jest.js', import.meta.url));
const GUIDE = fileURLToPath(new URL('../../docs/testing.md', import.meta.url));

/** How long a test may take that creates a job and waits for it. */
const LONGEST_MS = 200;

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
  const [, guide = ''] = /```js check-only\n([\s\S]*?)```/.exec(readFileSync(GUIDE, 'utf8')) ?? [];
  if (!guide.includes('createAndWait')) throw new Error('docs/testing.md shows no test of Jest');
  mkdirSync(app, { recursive: true });
  writeFileSync(join(app, 'package.json'), '{ "name": "jest-app", "private": true }');
  // The first test of a file loads the package's code for this kind of call; the second one is what a suite is made of.
  writeFileSync(
    join(app, 'guide.test.js'),
    `${guide}\n${guide.replace(/^const .*$/m, '').replace('a video is', 'another is')}`,
  );
  writeFileSync(join(app, 'pending.test.js'), PENDING);
  // Ends by itself: there is no --forceExit, and a process that hangs is killed by `execute`.
  const told = await execute(NODE, [JEST, '--ci', '--json', '--rootDir', app], app);
  const report = JSON.parse(told) as Report;
  const tests = report.testResults.flatMap(({ assertionResults }) => assertionResults);
  if (!report.success || tests.length !== 3) throw new Error(told);
  const slow = tests.filter(({ duration }) => duration > LONGEST_MS);
  if (slow.length > 0) throw new Error(slow.map(({ title, duration }) => `${title}: ${duration} ms`).join('\n'));
}

/** The runner that most CommonJS projects have. */
export const suites: Suite[] = [{ name: 'Jest, CommonJS', run: inJest }];
