// Node 22, 24 and 26, Bun and Deno: the scenario as it stands, in a process of the runtime.
import { existsSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NODES } from './nodes.js';
import { type Context, execute, judge, type Step, type Suite, tool } from './suite.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Runs the scenario in a program that takes a file, and judges what it prints. */
async function inProcess({ project, service }: Context, program: string, ...args: readonly string[]): Promise<void> {
  const config = JSON.stringify({ ...service.config, away: `http://127.0.0.1:${await closedPort()}` });
  writeFileSync(
    join(project, 'main.mjs'),
    `import { runScenario } from './scenario.mjs';\nconsole.log(JSON.stringify(await runScenario(${config})));\n`,
  );
  const printed = await execute(program, [...args, 'main.mjs'], project);
  judge(JSON.parse(printed.trim().split('\n').at(-1) ?? '[]') as Step[]);
}

/** A port on which nobody listens. */
function closedPort(): Promise<number> {
  const server = createServer();
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

/** The same through `require`: the CommonJS build has ky and p-retry inside, so it opens on every Node 22. */
async function byRequire({ project, service }: Context, program: string): Promise<void> {
  const config = JSON.stringify(service.config);
  writeFileSync(
    join(project, 'main.cjs'),
    `const { GenClient } = require('gen-client');
     for (const door of ['webhooks', 'node', 'sandbox', 'redis']) require('gen-client/' + door);
     const { baseUrl, apiKey } = ${config};
     new GenClient({ baseUrl, apiKey }).videos.create({ prompt: 'a fox' }).then(({ job }) => console.log(job.id));\n`,
  );
  // Without the flag, Node 22 before 22.12: there `require` of an ES module throws.
  const printed = await execute(program, ['--no-experimental-require-module', 'main.cjs'], project);
  if (printed.trim() !== 'job_1') throw new Error(`printed ${printed}`);
}

const absent = (program: string) =>
  existsSync(program) ? undefined : `${program.slice(ROOT.length)} is not installed`;

/** All server runtimes. */
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
