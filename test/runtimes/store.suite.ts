// A file store that two processes share, or a process and its worker thread, in each runtime with a file system.
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeEntry } from './bundle.js';
import { NODES } from './nodes.js';
import { assertSteps, type Context, execute, type Suite, stepsIn, tool } from './suite.js';
import { inPnpApp } from './yarn-pnp.js';

const SCENARIO = fileURLToPath(new URL('./store-scenario.mjs', import.meta.url));
const STEPS = 5;

const AS_PROCESS = `
  import { spawn } from 'node:child_process';
  const fork = async () => {
    const child = spawn(process.execPath, [...flags, import.meta.filename, 'second'], { stdio: ['ignore', 'pipe', 'inherit'] });
    const lease = new Promise((resolve) => child.stdout.once('data', (text) => resolve(JSON.parse(String(text)).lease)));
    const kill = () => new Promise((resolve) => (child.once('exit', resolve), child.kill('SIGKILL')));
    return { lease, kill };
  };
  const role = process.argv[2];
  const report = (result) => console.log(JSON.stringify(result));`;

const AS_THREAD = `
  import { isMainThread, parentPort, Worker } from 'node:worker_threads';
  const fork = async () => {
    const thread = new Worker(new URL(import.meta.url));
    const lease = new Promise((resolve) => thread.once('message', (result) => resolve(result.lease)));
    return { lease, kill: () => thread.terminate() };
  };
  const role = isMainThread ? 'first' : 'second';
  const report = (result) => (isMainThread ? console.log(JSON.stringify(result)) : parentPort.postMessage(result));`;

interface Program {
  readonly project: string;
  /** Code that defines `fork`, `role`, and `report`. */
  readonly setup: string;
  readonly flags?: readonly string[];
}

async function runScenario({ project, setup, flags = [] }: Program, run: (entry: string) => Promise<string>) {
  const directory = mkdtempSync(join(tmpdir(), 'gen-runtime-'));
  copyFileSync(SCENARIO, join(project, 'store-scenario.mjs'));
  try {
    const entry = writeEntry(
      project,
      'store-entry.mjs',
      `import { fileStore } from 'gen-client/node';
       import { storeScenario } from './store-scenario.mjs';
       const flags = ${JSON.stringify(flags)};
       ${setup}
       const path = ${JSON.stringify(join(directory, 'gen.store'))};
       report(await storeScenario({ fileStore, fork, role, path }));
       if (role === 'second') setInterval(() => {}, 1000);
       else process.exit();`,
    );
    assertSteps(stepsIn(await run(entry)), STEPS);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

function storeIn(name: string, program: string, flags: readonly string[] = [], setup = AS_PROCESS): Suite {
  const run = ({ project }: Context) =>
    runScenario({ project, setup, flags }, (entry) => execute(program, [...flags, entry], project));
  return { name: `a file store in ${name}`, run };
}

const PERMISSIONS = [
  '--permission',
  '--allow-child-process',
  '--allow-fs-read=*',
  `--allow-fs-write=${join(tmpdir(), '*')}`,
];

export const suites: Suite[] = [
  ...Object.entries(NODES).flatMap(([name, program]) => [
    storeIn(name, program),
    storeIn(`${name}, with a thread`, program, [], AS_THREAD),
  ]),
  storeIn('Node with permissions', process.execPath, PERMISSIONS),
  storeIn('Bun', tool('bun')),
  storeIn('Deno', tool('deno'), ['run', '--allow-all', '--quiet']),
  {
    name: 'a file store in Yarn PnP',
    run: ({ project }) =>
      inPnpApp(project, (app, runNode) => runScenario({ project: app, setup: AS_THREAD }, (entry) => runNode([entry]))),
  },
];
