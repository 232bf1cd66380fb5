// The scenario in processes of Node 22, 24, and 26, Bun, and Deno.
import { existsSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NODES } from './nodes.js';
import { type Context, execute, judge, type Step, type Suite, tool } from './suite.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Runs the scenario as a file of this program, and checks its output. */
async function inProcess({ project, service }: Context, program: string, ...args: readonly string[]): Promise<void> {
  const config = JSON.stringify({ ...service.config, away: `http://127.0.0.1:${await closedPort()}` });
  writeFileSync(
    join(project, 'main.mjs'),
    `import { runScenario } from './scenario.mjs';\nconsole.log(JSON.stringify(await runScenario(${config})));\n`,
  );
  const printed = await execute(program, [...args, 'main.mjs'], project);
  judge(JSON.parse(printed.trim().split('\n').at(-1) ?? '[]') as Step[]);
}

/** Returns an unused port. */
function closedPort(): Promise<number> {
  const server = createServer();
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

/** Runs the scenario with `require`. The CommonJS build bundles ky and p-retry, so it loads on every Node 22. */
async function byRequire({ project, service }: Context, program: string): Promise<void> {
  const config = JSON.stringify(service.config);
  writeFileSync(
    join(project, 'main.cjs'),
    `const { GenClient } = require('gen-client');
     for (const door of ['webhooks', 'node', 'sandbox', 'redis']) require('gen-client/' + door);
     const { baseUrl, apiKey } = ${config};
     new GenClient({ baseUrl, apiKey }).videos.create({ prompt: 'a fox' }).then(({ job }) => console.log(job.id));\n`,
  );
  // Simulates Node 22 before 22.12, where `require` of an ES module throws.
  const printed = await execute(program, ['--no-experimental-require-module', 'main.cjs'], project);
  if (printed.trim() !== 'job_1') throw new Error(`printed ${printed}`);
}

const absent = (program: string) =>
  existsSync(program) ? undefined : `${program.slice(ROOT.length)} is not installed`;

export const suites: Suite[] = [
  ...Object.entries(NODES).flatMap(([name, program]): Suite[] => [
    { name, missing: absent(program), run: (context) => inProcess(context, program) },
    { name: `${name}, by require`, missing: absent(program), run: (context) => byRequire(context, program) },
  ]),
  { name: 'Bun', missing: absent(tool('bun')), run: (context) => inProcess(context, tool('bun')) },
  {
    name: 'Deno',
    missing: absent(tool('deno')),
    run: (context) =>
      inProcess(
        context,
        tool('deno'),
        'run',
        '--no-remote',
        '--cached-only',
        '--allow-net=127.0.0.1',
        '--allow-env',
        '--allow-read',
        '--node-modules-dir=manual',
      ),
  },
];
