// The scenario in processes of Node 22, 24, and 26, Bun, and Deno.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../support/free-port.js';
import { NODES } from './nodes.js';
import { assertSteps, type Context, execute, ifMissing, type Suite, stepsIn, tool } from './suite.js';

/** Runs the scenario as an ES module. */
async function runAsModule({ project, service }: Context, program: string, ...args: readonly string[]): Promise<void> {
  const config = JSON.stringify({ ...service.config, unavailableUrl: `http://127.0.0.1:${await freePort()}` });
  writeFileSync(
    join(project, 'main.mjs'),
    `import { runScenario } from './scenario.mjs';\nconsole.log(JSON.stringify(await runScenario(${config})));\n`,
  );
  assertSteps(stepsIn(await execute(program, [...args, 'main.mjs'], project)));
}

/** Loads the CommonJS build. It contains ky and p-retry, so `require` works on every Node 22. */
async function runAsCommonJs({ project, service }: Context, program: string): Promise<void> {
  const { baseUrl, apiKey } = service.config;
  writeFileSync(
    join(project, 'main.cjs'),
    `const { GenClient } = require('gen-client');
     for (const entry of ['webhooks', 'node', 'sandbox', 'redis']) require('gen-client/' + entry);
     const client = new GenClient(${JSON.stringify({ baseUrl, apiKey })});
     client.videos.create({ prompt: 'a fox' }).then(({ job }) => console.log(job.id));\n`,
  );
  // Before Node 22.12, `require` of an ES module throws.
  const output = await execute(program, ['--no-experimental-require-module', 'main.cjs'], project);
  assert.equal(output.trim(), 'job_1');
}

const DENO_FLAGS = [
  '--no-remote',
  '--cached-only',
  '--allow-net=127.0.0.1',
  '--allow-env',
  '--allow-read',
  '--node-modules-dir=manual',
];

export const suites: Suite[] = [
  ...Object.entries(NODES).flatMap(([name, program]): Suite[] => [
    { name, skip: ifMissing(program), run: (context) => runAsModule(context, program) },
    { name: `${name}, by require`, skip: ifMissing(program), run: (context) => runAsCommonJs(context, program) },
  ]),
  { name: 'Bun', skip: ifMissing(tool('bun')), run: (context) => runAsModule(context, tool('bun')) },
  {
    name: 'Deno',
    skip: ifMissing(tool('deno')),
    run: (context) => runAsModule(context, tool('deno'), 'run', ...DENO_FLAGS),
  },
];
