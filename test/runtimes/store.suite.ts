// A file store shared by two processes, or by a process and its worker thread, in each runtime with files.
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeEntry } from './bundle.js';
import { NODES } from './nodes.js';
import { type Context, execute, type Step, type Suite, tool } from './suite.js';
import { inPnpApp } from './yarn-pnp.js';

const SCENARIO = fileURLToPath(new URL('./store-scenario.mjs', import.meta.url));
const STEPS = 5;

const AS_PROCESS = `
  import { spawn } from 'node:child_process';
  const fork = async () => {
    const child = spawn(process.execPath, [...flags, import.meta.filename, 'second'], { stdio: ['ignore', 'pipe', 'inherit'] });
    const own = new Promise((resolve) => child.stdout.once('data', (text) => resolve(JSON.parse(String(text)).own)));
    const kill = () => new Promise((resolve) => (child.once('exit', resolve), child.kill('SIGKILL')));
    return { own, kill };
  };
  const role = process.argv[2];
  const tell = (told) => console.log(JSON.stringify(told));`;

const AS_THREAD = `
  import { isMainThread, parentPort, Worker } from 'node:worker_threads';
  const fork = async () => {
    const thread = new Worker(new URL(import.meta.url));
    const own = new Promise((resolve) => thread.once('message', (told) => resolve(told.own)));
    return { own, kill: () => thread.terminate() };
  };
  const role = isMainThread ? 'first' : 'second';
  const tell = (told) => (isMainThread ? console.log(JSON.stringify(told)) : parentPort.postMessage(told));`;

/** Runs the scenario as a program, and checks its steps. */
async function share(
  project: string,
  starter: string,
  flags: readonly string[],
  run: (entry: string) => Promise<string>,
) {
  const directory = mkdtempSync(join(tmpdir(), 'gen-runtime-'));
  copyFileSync(SCENARIO, join(project, 'store-scenario.mjs'));
  try {
    const entry = writeEntry(
      project,
      'store-entry.mjs',
      `import { fileStore } from 'gen-client/node';
       import { storeScenario } from './store-scenario.mjs';
       const flags = ${JSON.stringify(flags)};
       ${starter}
       const told = await storeScenario({ fileStore, fork, role, path: ${JSON.stringify(join(directory, 'gen.store'))} });
       tell(told);
       if (role === 'second') setInterval(() => {}, 1000);
       else process.exit();`,
    );
    const steps = JSON.parse((await run(entry)).trim().split('\n').at(-1) ?? '[]') as Step[];
    const failed = steps.flatMap(({ name, error }) => (error === undefined ? [] : [`${name}: ${error}`]));
    if (failed.length > 0 || steps.length !== STEPS) throw new Error(`${steps.length} steps ran. ${failed.join('\n')}`);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

function shared(name: string, program: string, flags: readonly string[] = [], starter = AS_PROCESS): Suite {
  const run = ({ project }: Context) =>
    share(project, starter, flags, (entry) => execute(program, [...flags, entry], project));
  return { name: `a file store in ${name}`, run };
}

const PERMISSIONS = [
  '--permission',
  '--allow-child-process',
  '--allow-fs-read=*',
  `--allow-fs-write=${join(tmpdir(), '*')}`,
];
const DENO = ['run', '--allow-all', '--quiet'];

export const suites: Suite[] = [
  ...Object.entries(NODES).flatMap(([name, program]) => [
    shared(name, program),
    shared(`${name}, with a thread`, program, [], AS_THREAD),
  ]),
  shared('Node with permissions', process.execPath, PERMISSIONS),
  shared('Bun', tool('bun')),
  shared('Deno', tool('deno'), DENO),
  {
    name: 'a file store in Yarn PnP',
    run: ({ project }) => inPnpApp(project, (app, runNode) => share(app, AS_THREAD, [], (entry) => runNode([entry]))),
  },
];
